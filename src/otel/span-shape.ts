import type { KeyFacts, Place, RowIndex } from './row-index.ts';
import type { Attributes } from './conventions/values.ts';
import type { Group, Vocabulary } from './conventions/vocabulary.ts';

/** What the names of a span's attributes mean, whatever their values: found out once for the spans of a kind. */
export interface SpanShape {
  /** The vocabularies that are spoken, in the order of precedence. */
  readonly spoken: readonly Vocabulary[];
  /** By group, the rows that have something to read, in the order of precedence. */
  readonly rows: ReadonlyMap<Group, readonly Place[]>;
  /** By the name by which rows read them, attributes that are parts of something. */
  readonly parts: ReadonlyMap<string, readonly string[]>;
  /** The attributes that have told all they have to tell. */
  readonly spent: ReadonlySet<string>;
}

/** Of names in the order in which spans have them: one more name leads to the next node. */
interface Node {
  /** The vocabularies that may be spoken where there are the names up to here, as bits. */
  readonly speakers: number;
  /** The name that came next the last time, which is nearly always the one that comes now. */
  lastName: string | undefined;
  last: Node | undefined;
  next: Map<string, Node> | undefined;
  /** By the vocabularies that are spoken, as bits. */
  shapes: Map<number, SpanShape> | undefined;
}

/** Spans of one kind have the same names in the same order. Beyond these numbers each span is looked at by itself. */
const NODES_MAX = 10_000;
const NAMES_MAX = 200;

/** The shapes of spans, each made once as long as it is among those that are kept. */
export class SpanShapes {
  readonly #index: RowIndex;
  #root = newNode(0);
  #nodes = 0;

  constructor(index: RowIndex) {
    this.#index = index;
  }

  /** That of a span with these attributes, `names` being their names. */
  of(names: readonly string[], attributes: Attributes): SpanShape {
    if (names.length > NAMES_MAX) return this.#make(names, this.#index.spokenOf(this.#speakersOf(names), attributes));
    if (this.#nodes > NODES_MAX) this.#forget();
    let node = this.#root;
    for (const name of names) node = node.lastName === name ? (node.last as Node) : this.#after(node, name);
    const spoken = this.#index.spokenOf(node.speakers, attributes);
    const known = node.shapes?.get(spoken);
    if (known !== undefined) return known;
    const shape = this.#make(names, spoken);
    node.shapes ??= new Map();
    node.shapes.set(spoken, shape);
    return shape;
  }

  #after(node: Node, name: string): Node {
    let next = node.next?.get(name);
    if (next === undefined) {
      next = newNode(node.speakers | this.#index.factsOf(name).speakers);
      node.next ??= new Map();
      node.next.set(name, next);
      this.#nodes++;
    }
    node.lastName = name;
    node.last = next;
    return next;
  }

  #forget(): void {
    this.#root = newNode(0);
    this.#nodes = 0;
  }

  #speakersOf(names: readonly string[]): number {
    return names.reduce((bits, name) => bits | this.#index.factsOf(name).speakers, 0);
  }

  #make(names: readonly string[], spoken: number): SpanShape {
    const rows = new Map<Group, Place[]>();
    const parts = new Map<string, string[]>();
    const spent = new Set<string>();
    for (const name of names) {
      const facts = this.#index.factsOf(name);
      if ((facts.spentFor & spoken) !== 0) spent.add(name);
      addRows(name, facts, spoken, rows, parts);
    }
    for (const places of rows.values()) places.sort((one, other) => one.order - other.order);
    return { spoken: this.#index.vocabulariesOf(spoken), rows, parts, spent };
  }
}

function newNode(speakers: number): Node {
  return { speakers, lastName: undefined, last: undefined, next: undefined, shapes: undefined };
}

/** The parts of something are read together, by the rows of the whole. */
function addRows(
  name: string,
  { group, places }: KeyFacts,
  spoken: number,
  rows: Map<Group, Place[]>,
  parts: Map<string, string[]>,
): void {
  if (group !== undefined) {
    const known = parts.get(group);
    if (known !== undefined) {
      known.push(name);
      return;
    }
    parts.set(group, [name]);
  }
  for (const place of places) {
    if ((spoken & (1 << place.rank)) === 0) continue;
    const present = rows.get(place.group);
    if (present === undefined) rows.set(place.group, [place]);
    else present.push(place);
  }
}
