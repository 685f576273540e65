import { type Fields, fieldsOf, isFields } from '../../payload/fields.ts';
import { recordableKind } from '../../payload/text-scan.ts';
import type { PayloadRules } from '../../payload/truncate.ts';
import { isMessageList } from '../conventions/model-messages.ts';
import { type Attributes, isVerbatim, jsonFields, type Read } from '../conventions/values.ts';
import { type Group, NOTHING_NEW, type Vocabulary, WHOLE } from '../conventions/vocabulary.ts';
import type { NameFacts, Place, RowIndex } from './row-index.ts';

/** The fields that the table rows of a group set. */
export interface Found {
  readonly fields: Fields;
  readonly text?: undefined;
}

/** The fields of a payload, or the JSON text of an attribute that contains exactly these fields. */
export type FoundPayload = Found | { readonly text: string };

type PayloadGroup = 'inputs' | 'outputs';

export type Groups = { [Name in PayloadGroup]?: FoundPayload | undefined } & {
  [Name in Exclude<Group, PayloadGroup>]?: Found | undefined;
};

/** The key for a payload that is not an object. */
const WHOLE_KEYS: Readonly<Record<PayloadGroup, string>> = { inputs: 'input', outputs: 'output' };

/** A single attribute, or all attributes that form a flattened list or object. */
interface Source {
  readonly name: string;
  readonly facts: NameFacts;
  /** The attribute value. Undefined until it is built from the parts, and while the reader has no span. */
  value: unknown;
  isUsed: boolean;
  /** Names of the attributes that form the list or object. Undefined for a single attribute. */
  readonly parts: string[] | undefined;
}

interface Match {
  readonly place: Place;
  readonly source: Source;
}

/**
 * Looks up the attributes of a span in the mapping tables. Keeps track of the used attributes. May be used again for a span
 * whose attributes have the same names in the same order.
 */
export class AttributeReader {
  attributes: Attributes;
  /** The mapping tables that the span uses, in order of precedence. */
  readonly vocabularies: readonly Vocabulary[];
  readonly #index: RowIndex;
  readonly #candidates: number;
  readonly #matchedBits: number;
  #rules: PayloadRules | undefined;
  readonly #knownText: string | undefined;
  readonly #sources: Source[] = [];
  #structures: Map<string, Source> | undefined;
  /** The matching rows, in order of precedence. */
  readonly #matches: Match[] = [];

  /** If the inputs can be recorded unchanged, `knownText` is their JSON text from an earlier reader. */
  constructor(attributes: Attributes, index: RowIndex, rules: PayloadRules | undefined, knownText?: string) {
    this.attributes = attributes;
    this.#index = index;
    this.#rules = rules;
    this.#knownText = knownText;
    let candidates = 0;
    const names = Object.keys(attributes);
    // This function runs for every span. Indexed loops are faster until V8 has fully optimized it.
    for (let at = 0; at < names.length; at++) {
      const name = names[at] as string;
      const value = attributes[name];
      // Other span processors may set attributes to undefined.
      if (value === undefined) continue;
      const facts = index.factsOf(name);
      candidates |= facts.candidates;
      if (facts.prefix === undefined) this.#sources.push({ name, facts, value, isUsed: false, parts: undefined });
      else this.#addPart(facts.prefix, name, facts);
    }
    this.#candidates = candidates;
    this.#matchedBits = index.matchedBits(candidates, attributes);
    this.vocabularies = index.vocabulariesOf(this.#matchedBits);
    for (let at = 0; at < this.#sources.length; at++) {
      const source = this.#sources[at] as Source;
      // If a name is also a prefix of other attributes, only the other attributes are read.
      if (source.parts === undefined && this.#structures?.has(source.name) === true) continue;
      const { places } = source.facts;
      for (let index = 0; index < places.length; index++) this.#match(places[index] as Place, source);
    }
  }

  /**
   * Prepares a released reader for another span. The attributes of both spans must have the same names in the same order, and
   * no undefined value. Returns false if the other span uses other tables.
   */
  reuse(attributes: Attributes, rules: PayloadRules): boolean {
    if (this.#index.matchedBits(this.#candidates, attributes) !== this.#matchedBits) return false;
    this.attributes = attributes;
    this.#rules = rules;
    for (let at = 0; at < this.#sources.length; at++) {
      const source = this.#sources[at] as Source;
      source.isUsed = false;
      if (source.parts === undefined) source.value = attributes[source.name];
    }
    return true;
  }

  release(): void {
    this.attributes = {};
    for (let at = 0; at < this.#sources.length; at++) (this.#sources[at] as Source).value = undefined;
  }

  hasRows(group: Group): boolean {
    return this.#matches.some(({ place }) => place.group === group);
  }

  isUsed(name: string): boolean {
    return this.#sources.some((source) => source.isUsed && (source.parts?.includes(name) ?? source.name === name));
  }

  use(name: string): void {
    for (const source of this.#sources) if (source.name === name && source.parts === undefined) source.isUsed = true;
  }

  /** Calls `add` for each attribute that no table row has used. These attributes become metadata. */
  forRest(add: (name: string, value: unknown, isCleaned: boolean) => void): void {
    for (let at = 0; at < this.#sources.length; at++) {
      const { isUsed, parts, name, value, facts } = this.#sources[at] as Source;
      if (isUsed) continue;
      if (parts === undefined) {
        if ((facts.ignoredBy & this.#matchedBits) === 0) add(name, value, facts.isCleaned);
        continue;
      }
      for (const part of parts) {
        const { ignoredBy, isCleaned } = this.#index.factsOf(part);
        if ((ignoredBy & this.#matchedBits) === 0) add(part, this.attributes[part], isCleaned);
      }
    }
  }

  /** Reads the groups that are not skipped. A payload is from one table, so that descriptions are never mixed. */
  read(isSkipped: (group: Group, vocabulary: Vocabulary | undefined) => boolean): Groups {
    const matches = this.#matches;
    // Setting a key that exists is faster than adding one.
    const groups: Groups = { inputs: undefined, outputs: undefined, usage: undefined, metadata: undefined };
    for (let from = 0, to = 0; from < matches.length; from = to) {
      const { group, rank } = (matches[from] as Match).place;
      to = from + 1;
      while (matches[to]?.place.rank === rank && matches[to]?.place.group === group) to++;
      if (isSkipped(group, this.#index.vocabularyAt(rank))) continue;
      if (group === 'inputs' || group === 'outputs') {
        groups[group] ??= this.#textIn(from, to, group) ?? this.#collect(from, to, WHOLE_KEYS[group], undefined);
      } else groups[group] = this.#collect(from, to, 'value', groups[group]?.fields);
    }
    return groups;
  }

  #addPart(prefix: string, name: string, facts: NameFacts): void {
    this.#structures ??= new Map();
    const structure = this.#structures.get(prefix);
    if (structure !== undefined) {
      structure.parts?.push(name);
      return;
    }
    const source: Source = { name: prefix, facts, value: undefined, isUsed: false, parts: [name] };
    this.#structures.set(prefix, source);
    this.#sources.push(source);
  }

  #structureOf(source: Source, parts: readonly string[]): unknown {
    const { name, facts } = source;
    if (source.value === undefined) {
      const entries = parts.map((part) => [part.slice(name.length + 1), this.attributes[part]] as const);
      source.value = facts.isList ? unflatten(entries) : Object.fromEntries(entries);
    }
    return source.value;
  }

  /** Inserts a match in row order. Few rows match, and most attributes are already in order. */
  #match(place: Place, source: Source): void {
    if ((this.#matchedBits & (1 << place.rank)) === 0) return;
    const matches = this.#matches;
    let at = matches.length;
    for (; at > 0 && (matches[at - 1] as Match).place.order > place.order; at--) matches[at] = matches[at - 1] as Match;
    matches[at] = { place, source };
  }

  /** Adds the fields that the rows of one mapping table set. `fields` contains the fields from preceding tables. */
  #collect(from: number, to: number, wholeKey: string, fields: Fields | undefined): Found | undefined {
    for (let at = from; at < to; at++) {
      const { place, source } = this.#matches[at] as Match;
      const [, key, read, manner] = place.row;
      const value = source.parts === undefined ? source.value : this.#structureOf(source, source.parts);
      if (value === null) continue;
      if (fields !== undefined && manner !== 'merged' && manner !== 'below' && isTaken(fields, key)) {
        if (manner === 'repeats') source.isUsed = true;
        continue;
      }
      const converted = readSafely(read, value, this.attributes);
      if (converted === undefined) continue;
      if (manner !== 'kept') source.isUsed = true;
      if (converted === NOTHING_NEW) continue;
      if (key !== WHOLE) {
        fields = put(fields ?? {}, key, converted);
        continue;
      }
      const whole = wholeOf(converted, wholeKey);
      // If the object is the attribute value itself, it is copied, because attribute values must not change.
      fields = fields === undefined && whole !== value ? whole : { ...whole, ...fields };
    }
    return fields && { fields };
  }

  /** Returns the JSON text of a payload if one attribute contains all of it and it can be recorded unchanged. */
  #textIn(from: number, to: number, group: PayloadGroup): FoundPayload | undefined {
    const { place, source } = this.#matches[from] as Match;
    const [, key, read, manner] = place.row;
    const { value } = source;
    if (to > from + 1 || key !== WHOLE || typeof value !== 'string' || !isVerbatim(read, this.attributes))
      return undefined;
    const text = group === 'inputs' && value === this.#knownText ? value : this.#recordable(value, group, read);
    if (text === undefined) return undefined;
    if (manner !== 'kept') source.isUsed = true;
    return { text };
  }

  /** Returns the text, as the value of a key if it contains a list. Returns undefined if the text must be parsed. */
  #recordable(text: string, group: PayloadGroup, read: Read): string | undefined {
    if (this.#rules === undefined) return undefined;
    const key = WHOLE_KEYS[group];
    const kind = recordableKind(text, group, key, this.#rules);
    if (kind === 'object') return text;
    if (kind === undefined || read === jsonFields) return undefined;
    return `{"${kind === 'messages' ? kind : key}":${text}}`;
  }
}

/** Calls `read` for a value. If `read` throws, the value becomes metadata. */
function readSafely(read: Read, value: unknown, attributes: Attributes): unknown {
  try {
    return read(value, attributes);
  } catch {
    return undefined;
  }
}

function isTaken(fields: Fields, key: string): boolean {
  if (key === WHOLE) return true;
  const dot = key.indexOf('.');
  if (dot < 0) return Object.hasOwn(fields, key);
  const inner = fields[key.slice(0, dot)];
  return isFields(inner) && Object.hasOwn(inner, key.slice(dot + 1));
}

function put(fields: Fields, key: string, value: unknown): Fields {
  const dot = key.indexOf('.');
  if (dot < 0) {
    fields[key] = value;
    return fields;
  }
  const outer = key.slice(0, dot);
  const inner = fields[outer];
  fields[outer] = { ...fieldsOf(inner), [key.slice(dot + 1)]: value };
  return fields;
}

/** Converts a payload to an object. A list of messages becomes `messages`. Any other value is stored under `key`. */
function wholeOf(value: unknown, key: string): Fields {
  if (isFields(value)) return value;
  return { [isMessageList(value) ? 'messages' : key]: value };
}

/** Maximum number of nesting levels that `unflatten` builds. On deeper levels, names stay joined with dots. */
const LEVELS_MAX = 16;

type Branch = Map<string, unknown>;

/**
 * Builds nested values from flattened names: `0.message.role`, `0.message.content` →
 * `[{ message: { role, content } }]`. Whole numbers are list indexes. List items are sorted by index, and gaps are
 * closed. Objects have no prototype, so any name is a safe key. If a name is also a prefix of other names, its own
 * value is ignored.
 */
function unflatten(entries: Iterable<readonly [name: string, value: unknown]>): unknown {
  const root: Branch = new Map();
  for (const [name, value] of entries) {
    const steps = name.split('.');
    const path = steps.slice(0, Math.min(steps.length, LEVELS_MAX) - 1);
    const last = steps.slice(path.length).join('.');
    const branch = branchAt(root, path);
    if (!(branch.get(last) instanceof Map)) branch.set(last, value);
  }
  return listOrObject(root);
}

function branchAt(root: Branch, path: readonly string[]): Branch {
  let branch = root;
  for (const step of path) {
    let next = branch.get(step);
    if (!(next instanceof Map)) {
      next = new Map<string, unknown>();
      branch.set(step, next);
    }
    branch = next as Branch;
  }
  return branch;
}

function listOrObject(value: unknown): unknown {
  if (!(value instanceof Map)) return value;
  const keys = [...value.keys()] as string[];
  if (keys.every((key) => /^\d+$/.test(key))) {
    return keys.sort((a, b) => Number(a) - Number(b)).map((key) => listOrObject(value.get(key)));
  }
  const object: Fields = Object.create(null);
  for (const key of keys) object[key] = listOrObject(value.get(key));
  return object;
}
