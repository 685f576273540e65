import type { Attributes } from './conventions/values.ts';
import type { Group, Row, Vocabulary } from './conventions/vocabulary.ts';

/** Where a row stands. */
export interface Place {
  readonly row: Row;
  readonly group: Group;
  /** Of its vocabulary, in the order of precedence. */
  readonly rank: number;
  /** Among the rows of all vocabularies: those that come first are tried first. */
  readonly order: number;
}

const NOWHERE: readonly Place[] = [];

const GROUPS: readonly Group[] = ['inputs', 'outputs', 'usage', 'parameters', 'metadata', 'tags', 'times'];

/** The name of a flattened list ends before its first place: `llm.input_messages` of `llm.input_messages.0.message.role`. */
const FIRST_PLACE = /\.\d+(?=\.|$)/;

/** What is known of the name of an attribute. */
export interface KeyFacts {
  /** A bit for each vocabulary, by its rank, that may be spoken where there is such a name. */
  readonly speakers: number;
  /** The name by which rows read an attribute that is a part of something; undefined when it stands for itself. */
  readonly group: string | undefined;
  /** The rows that read it, or its group. */
  readonly places: readonly Place[];
  /** The vocabularies for which it has told all it has to tell. */
  readonly spentFor: number;
}

/** Names are few, but for those with numbers and ids in them. */
const FACTS_MAX = 5_000;

/** Finds the rows that read an attribute, and the vocabularies that a span speaks. Made once, of all tables. */
export class RowIndex {
  readonly #vocabularies: readonly Vocabulary[];
  readonly #places = new Map<string, Place[]>();
  readonly #lists = new Set<string>();
  readonly #prefixes = new Set<string>();
  #prefixLengthMax = 0;
  readonly #speakers = new Map<string, number>();
  readonly #spent = new Map<string, number>();
  readonly #facts = new Map<string, KeyFacts>();

  constructor(vocabularies: readonly Vocabulary[]) {
    this.#vocabularies = vocabularies;
    let order = 0;
    for (const [rank, vocabulary] of vocabularies.entries()) {
      const bit = 1 << rank;
      for (const root of vocabulary.roots) this.#speakers.set(root, (this.#speakers.get(root) ?? 0) | bit);
      for (const key of vocabulary.spent ?? []) this.#spent.set(key, (this.#spent.get(key) ?? 0) | bit);
      for (const group of GROUPS) {
        for (const row of vocabulary[group] ?? []) this.#add({ row, group, rank, order: order++ });
      }
    }
  }

  /** Found out once for each name, as long as it is among those that are kept. */
  factsOf(key: string): KeyFacts {
    const known = this.#facts.get(key);
    if (known !== undefined) return known;
    const group = this.#groupOf(key);
    const facts: KeyFacts = {
      group,
      speakers: this.#speakers.get(firstWord(key)) ?? 0,
      places: this.#places.get(group ?? key) ?? NOWHERE,
      spentFor: this.#spent.get(key) ?? 0,
    };
    if (this.#facts.size >= FACTS_MAX) this.#facts.clear();
    this.#facts.set(key, facts);
    return facts;
  }

  /** Of these vocabularies, given as bits, those that the attributes speak. */
  spokenOf(speakers: number, attributes: Attributes): number {
    let spoken = speakers;
    for (let rank = 0; rank < this.#vocabularies.length; rank++) {
      const bit = 1 << rank;
      if ((speakers & bit) !== 0 && this.#vocabularies[rank]?.isSpoken?.(attributes) === false) spoken &= ~bit;
    }
    return spoken;
  }

  /** In the order of precedence. */
  vocabulariesOf(bits: number): readonly Vocabulary[] {
    return this.#vocabularies.filter((_, rank) => (bits & (1 << rank)) !== 0);
  }

  isList(name: string): boolean {
    return this.#lists.has(name);
  }

  #add(place: Place): void {
    const [attribute, , , manner] = place.row;
    this.#places.set(attribute, [...(this.#places.get(attribute) ?? NOWHERE), place]);
    if (manner === 'list') this.#lists.add(attribute);
    if (manner !== 'below') return;
    this.#prefixes.add(attribute);
    this.#prefixLengthMax = Math.max(this.#prefixLengthMax, attribute.length);
  }

  #groupOf(key: string): string | undefined {
    const at = key.search(FIRST_PLACE);
    const name = at < 0 ? undefined : key.slice(0, at);
    return name !== undefined && this.#lists.has(name) ? name : this.#prefixOf(key);
  }

  #prefixOf(key: string): string | undefined {
    if (this.#places.has(key)) return undefined;
    // From where the longest may end: names that are made of data, of headers for example, may be long.
    for (let dot = key.lastIndexOf('.', this.#prefixLengthMax); dot > 0; dot = key.lastIndexOf('.', dot - 1)) {
      const name = key.slice(0, dot);
      if (this.#prefixes.has(name)) return name;
    }
    return undefined;
  }
}

function firstWord(key: string): string {
  const dot = key.indexOf('.');
  return dot < 0 ? key : key.slice(0, dot);
}
