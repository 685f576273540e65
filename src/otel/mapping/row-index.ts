import { aiSdk, aiSdkBesideGenAi } from '../conventions/ai-sdk.ts';
import { claudeCode } from '../conventions/claude-code.ts';
import { codex } from '../conventions/codex.ts';
import { adk, mastra, pydanticAi, strands } from '../conventions/frameworks.ts';
import { genAi } from '../conventions/genai.ts';
import { generalAttributes, runspanAttributes } from '../conventions/general.ts';
import { langfuse } from '../conventions/langfuse.ts';
import { langSmith } from '../conventions/langsmith.ts';
import { openInference } from '../conventions/openinference.ts';
import { database, http, mcp, messaging } from '../conventions/protocols.ts';
import { type SpanVocabulary, vocabularyOf } from '../conventions/span-vocabulary.ts';
import { traceloop } from '../conventions/traceloop.ts';
import type { Attributes } from '../conventions/values.ts';
import { type Group, type Row, type Vocabulary, WHOLE } from '../conventions/vocabulary.ts';

/**
 * runspan's mapping tables, in order of precedence. Later tables never change a field that is already set. Protocol
 * attributes come last, so that explicit attributes override values derived from a URL.
 */
export const vocabularies: readonly Vocabulary[] = [
  runspanAttributes,
  langSmith,
  openInference,
  aiSdk,
  mastra,
  adk,
  pydanticAi,
  strands,
  claudeCode,
  codex,
  genAi,
  aiSdkBesideGenAi,
  traceloop,
  langfuse,
  generalAttributes,
  mcp,
  http,
  database,
  messaging,
];

/** A table row and its position among the rows of all mapping tables. */
export interface Place {
  readonly row: Row;
  readonly group: Group;
  readonly rank: number;
  readonly order: number;
}

/** What the mapping tables specify for one attribute name. */
export interface NameFacts {
  /** Bit mask of the tables that a span with this attribute may use. Bit n stands for the table with rank n. */
  readonly candidates: number;
  /** Prefix of the flattened list or object that contains the attribute, if any. */
  readonly prefix: string | undefined;
  readonly isList: boolean;
  readonly places: readonly Place[];
  /** Bit mask of the tables that exclude the attribute from the metadata. */
  readonly ignoredBy: number;
  /** Whether the value is a URL that may contain credentials. */
  readonly isCleaned: boolean;
}

/** Maximum number of attribute names to cache. Names that contain ids rarely recur. */
const FACTS_MAX = 5_000;

const GROUPS: readonly Group[] = ['inputs', 'outputs', 'usage', 'parameters', 'metadata', 'tags', 'times'];

/** Matches the first index in a flattened name. The list name comes before the index. */
const FIRST_INDEX = /\.\d+(?=\.|$)/;

/** Matches the second word of a name. */
const MIDDLE = /\.[^.]+\./;

/** Finds the rows that read an attribute, in all mapping tables. The application's own tables take precedence. */
export class RowIndex {
  readonly #own: readonly Vocabulary[];
  readonly #vocabularies: readonly Vocabulary[];
  readonly #places = new Map<string, Place[]>();
  readonly #lists = new Set<string>();
  readonly #prefixes = new Set<string>();
  #prefixLengthMax = 0;
  readonly #candidates = new Map<string, number>();
  readonly #ignored = new Map<string, number>();
  readonly #cleaned = new Set<string>();
  readonly #parameters = new Set<string>();
  readonly #ofOwnKinds: ReadonlySet<string>;
  readonly #facts = new Map<string, NameFacts>();
  readonly #byBits = new Map<number, readonly Vocabulary[]>();

  constructor(own: readonly SpanVocabulary[] = []) {
    this.#own = own.map((given) => vocabularyOf('own', given));
    this.#ofOwnKinds = new Set(own.flatMap(({ attribute = '', nameFrom = '' }) => [attribute, nameFrom]));
    this.#vocabularies = [...this.#own, ...vocabularies];
    let order = 0;
    for (const [rank, vocabulary] of this.#vocabularies.entries()) {
      const bit = 1 << rank;
      for (const root of vocabulary.namespaces) this.#candidates.set(root, (this.#candidates.get(root) ?? 0) | bit);
      for (const name of vocabulary.ignored ?? []) this.#ignored.set(name, (this.#ignored.get(name) ?? 0) | bit);
      for (const name of vocabulary.cleaned ?? []) this.#cleaned.add(name);
      for (const group of GROUPS) {
        for (const row of vocabulary[group] ?? []) this.#add({ row, group, rank, order: order++ });
      }
    }
  }

  factsOf(name: string): NameFacts {
    const known = this.#facts.get(name);
    if (known !== undefined) return known;
    const prefix = this.#prefixOf(name);
    const facts: NameFacts = {
      candidates: this.#candidates.get(name.split('.', 1)[0] as string) ?? 0,
      prefix,
      isList: prefix !== undefined && this.#lists.has(prefix),
      places: this.#places.get(prefix ?? name) ?? this.#places.get(name.replace(MIDDLE, '.*.')) ?? [],
      ignoredBy: this.#ignored.get(name) ?? 0,
      isCleaned: this.#cleaned.has(name),
    };
    if (this.#facts.size >= FACTS_MAX) this.#facts.clear();
    this.#facts.set(name, facts);
    return facts;
  }

  /** Returns whether any row reads the attribute as part of the inputs or outputs. */
  isPayload(name: string, group: 'inputs' | 'outputs'): boolean {
    return this.factsOf(name).places.some((place) => place.group === group);
  }

  /** Returns whether a table says what the attribute contains: not counts or a whole request, of which it reads a part. */
  isNamed(name: string): boolean {
    const { places } = this.factsOf(name);
    const isPart = ({ group, row: [, key] }: Place): boolean =>
      group === 'usage' || (group === 'parameters' && key === WHOLE);
    return this.#ofOwnKinds.has(name) || (places.length > 0 && !places.some(isPart));
  }

  /** Returns whether a row sets this parameter. */
  isParameter(key: string): boolean {
    return this.#parameters.has(key);
  }

  /** Reduces a bit mask to the tables that a span with these attributes uses. */
  matchedBits(candidates: number, attributes: Attributes): number {
    let matched = candidates;
    for (let rank = 0; rank < this.#vocabularies.length; rank++) {
      const bit = 1 << rank;
      if ((candidates & bit) !== 0 && this.#vocabularies[rank]?.matches?.(attributes) === false) matched &= ~bit;
    }
    return matched;
  }

  vocabulariesOf(bits: number): readonly Vocabulary[] {
    let known = this.#byBits.get(bits);
    if (known === undefined) {
      known = this.#vocabularies.filter((_, rank) => (bits & (1 << rank)) !== 0);
      this.#byBits.set(bits, known);
    }
    return known;
  }

  vocabularyAt(rank: number): Vocabulary | undefined {
    return this.#vocabularies[rank];
  }

  /** Returns whether one of the application's own tables selects the run type. */
  hasOwnType(attributes: Attributes): boolean {
    return this.#own.some((vocabulary) => vocabulary.kindOf(attributes).runType !== undefined);
  }

  #add(place: Place): void {
    const [attribute, key, , manner] = place.row;
    if (place.group === 'parameters') this.#parameters.add(key.split('.', 1)[0] as string);
    const places = this.#places.get(attribute);
    if (places === undefined) this.#places.set(attribute, [place]);
    else places.push(place);
    if (manner === 'list') this.#lists.add(attribute);
    if (manner !== 'below') return;
    this.#prefixes.add(attribute);
    this.#prefixLengthMax = Math.max(this.#prefixLengthMax, attribute.length);
  }

  #prefixOf(name: string): string | undefined {
    const at = name.search(FIRST_INDEX);
    const list = at < 0 ? undefined : name.slice(0, at);
    if (list !== undefined && this.#lists.has(list)) return list;
    if (this.#places.has(name)) return undefined;
    // Attribute names may be very long if they contain data, for example header names.
    for (let dot = name.lastIndexOf('.', this.#prefixLengthMax); dot > 0; dot = name.lastIndexOf('.', dot - 1)) {
      const prefix = name.slice(0, dot);
      if (this.#prefixes.has(prefix)) return prefix;
    }
    return undefined;
  }
}

const rowIndex = new RowIndex();

export function indexWith(own: readonly SpanVocabulary[] = []): RowIndex {
  return own.length === 0 ? rowIndex : new RowIndex(own);
}
