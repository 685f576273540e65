/** What the attributes of a span mean: pure, and the same for spans of this process and of others. */

import type { PayloadRules } from '../payload/limits.ts';
import { completeUsage } from '../run/run-fields.ts';
import { aiSdk, aiSdkBesideGenAi } from './conventions/ai-sdk.ts';
import { AttributeReader } from './attribute-reader.ts';
import { database } from './conventions/database.ts';
import { genAi } from './conventions/genai.ts';
import { generalAttributes } from './conventions/general-attributes.ts';
import { http } from './conventions/http.ts';
import { langfuse } from './conventions/langfuse.ts';
import { langSmith } from './conventions/langsmith.ts';
import { mcp } from './conventions/mcp.ts';
import { messaging } from './conventions/messaging.ts';
import { openInference } from './conventions/openinference.ts';
import { carriers, type IsCarrier } from './payload-carriers.ts';
import { type Place, RowIndex } from './row-index.ts';
import { runspanAttributes } from './conventions/runspan-attributes.ts';
import { SpanShapes } from './span-shape.ts';
import { traceloop } from './conventions/traceloop.ts';
import { type Attributes, defined, type Fields, isEmpty, text } from './conventions/values.ts';
import {
  collect,
  FIRST_TOKEN,
  type Found,
  type Group,
  KeptText,
  type Rename,
  SERVICE_TIER,
  type Vocabulary,
} from './conventions/vocabulary.ts';

/**
 * In order of precedence. A field that one has set is not set by a later one; payloads are those of one alone. Those of
 * protocols come last: what somebody has said of a request is worth more than its URL.
 */
export const vocabularies: readonly Vocabulary[] = [
  runspanAttributes,
  langSmith,
  openInference,
  aiSdk,
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

const index = new RowIndex(vocabularies);
const shapes = new SpanShapes(index);

const CLEANED = new Map(vocabularies.flatMap(({ cleaned }) => [...(cleaned ?? [])]));

/** Keys of metadata that one span may have; the attributes beyond are counted in `dropped_attributes`. */
const METADATA_KEYS_MAX = 1_000;

/** The key of token counts and costs, in the outputs and in the metadata. */
export const USAGE = 'usage_metadata';

/** What may be taken of a span's payloads. */
export interface Visibility {
  readonly hideInputs: boolean;
  readonly hideOutputs: boolean;
  /** How payloads are recorded. */
  readonly payload?: PayloadRules;
}

/** The attributes that the inputs of a span were made of. */
export interface KnownInputs {
  /** Names and values in turn: as long as these are the same, so are the inputs. */
  readonly sources: readonly unknown[];
  readonly used: readonly string[];
}

/** The inputs of a span; `payload` is undefined where they are still those that are known. */
export interface MappedInputs extends KnownInputs {
  readonly payload: Found | undefined;
}

/** What a run takes over from the attributes of its span when that starts. */
export interface MappedStart {
  /** Undefined where the span's own name is as good as any. */
  readonly name: string | undefined;
  readonly rename: Rename | undefined;
  readonly runType: string;
  readonly project: string | undefined;
  readonly inputs: MappedInputs | undefined;
}

/** And when it ends. */
export interface MappedSpan extends Omit<MappedStart, 'project'> {
  readonly outputs: Found | undefined;
  readonly tags: string[] | undefined;
  /** Everything that has no field of its own. */
  readonly metadata: ReadonlyMap<string, unknown>;
  /** Microseconds from the start to the first piece of a model's answer, where no event tells of it. */
  readonly firstTokenUs: number | undefined;
  /** Of the values that were told beside the attributes, those that the run has taken; undefined when none were told. */
  readonly toldUsed: ReadonlySet<string> | undefined;
}

const NOTHING: MappedStart = {
  name: undefined,
  rename: undefined,
  runType: 'chain',
  project: undefined,
  inputs: undefined,
};

export function mapStart(attributes: Attributes, visibility: Visibility): MappedStart {
  if (isEmpty(attributes)) return NOTHING;
  const reader = new AttributeReader(attributes, index, shapes, visibility.payload);
  const { name, nameFrom, rename, runType } = kindOf(reader, visibility);
  const inputs = visibility.hideInputs ? undefined : inputsOf(reader, runType, undefined);
  if (nameFrom !== undefined) reader.use(nameFrom);
  return { name, rename, runType, project: projectOf(reader), inputs };
}

/**
 * Maps an ended span. `known` holds the inputs that `mapStart` found, so that they are not built twice. `told` holds
 * values from sources other than the attributes. If an attribute has the same name as one of these values, the
 * attribute takes precedence. `isOwnUsage` returns true if the token counts of a chain belong to the chain itself and
 * do not repeat the counts of its model calls.
 */
export function mapSpan(
  attributes: Attributes,
  visibility: Visibility,
  known?: KnownInputs,
  told?: Attributes,
  isOwnUsage?: (attributes: Attributes) => boolean,
): MappedSpan {
  const given = told === undefined ? attributes : { ...told, ...defined(attributes) };
  const reader = new AttributeReader(given, index, shapes, visibility.payload);
  const { name, nameFrom, rename, runType } = kindOf(reader, visibility);
  const inputs = visibility.hideInputs ? undefined : inputsOf(reader, runType, known);
  const outputs = visibility.hideOutputs ? undefined : payloadOf('outputs', 'output', runType, reader);
  if (nameFrom !== undefined) reader.use(nameFrom);
  // A span around model calls usually repeats the sum of their token counts. Recording this sum would count the tokens
  // twice.
  const hasUsage = runType !== 'chain' || isOwnUsage?.(given) === true;
  const metadata = metadataOf(reader);
  const usage = hasUsage ? usageOf(reader, metadata.get(SERVICE_TIER)) : undefined;
  if (usage !== undefined && !metadata.has(USAGE)) metadata.set(USAGE, usage);
  const tags = collectAll('tags', reader)?.fields.tags as string[] | undefined;
  const firstTokenUs = collectAll('times', reader)?.fields[FIRST_TOKEN] as number | undefined;
  const toldUsed = usedOf(told, attributes, reader);
  addRest(metadata, reader, hiddenCarriers(visibility));
  return {
    name,
    rename,
    runType,
    inputs,
    outputs: usage === undefined || visibility.hideOutputs ? outputs : withUsage(outputs, usage),
    tags: tags?.length === 0 ? undefined : tags,
    metadata,
    firstTokenUs,
    toldUsed,
  };
}

/** Says which names carry what is hidden; undefined when nothing is. */
export function hiddenCarriers({ hideInputs, hideOutputs }: Visibility): IsCarrier | undefined {
  return HIDDEN[(hideInputs ? 1 : 0) + (hideOutputs ? 2 : 0)];
}

const HIDDEN: readonly (IsCarrier | undefined)[] = [
  undefined,
  carriers(index, { hideInputs: true, hideOutputs: false }),
  carriers(index, { hideInputs: false, hideOutputs: true }),
  carriers(index, { hideInputs: true, hideOutputs: true }),
];

function projectOf({ spoken, attributes }: AttributeReader): string | undefined {
  for (const { project } of spoken) {
    const named = project === undefined ? undefined : text(attributes[project]);
    if (named !== undefined) return named;
  }
  return undefined;
}

/** What of the told has found a place. The rest is left out: it is no attribute of the span, and stays where it was told. */
function usedOf(
  told: Attributes | undefined,
  attributes: Attributes,
  reader: AttributeReader,
): ReadonlySet<string> | undefined {
  if (told === undefined) return undefined;
  const own = Object.keys(told).filter((key) => !Object.hasOwn(attributes, key));
  const used = new Set(own.filter((key) => reader.isUsed(key)));
  for (const key of own) reader.use(key);
  return used;
}

function kindOf(
  reader: AttributeReader,
  { hideInputs }: Visibility,
): Pick<MappedStart, 'name' | 'rename' | 'runType'> & { nameFrom: string | undefined } {
  let name: string | undefined;
  let nameFrom: string | undefined;
  let rename: Rename | undefined;
  let runType: string | undefined;
  for (const vocabulary of reader.spoken) {
    const kind = vocabulary.kindOf(reader.attributes);
    runType ??= kind.runType;
    if (!hideInputs) rename ??= kind.rename;
    if (name !== undefined || kind.nameFrom === undefined) continue;
    name = text(reader.attributes[kind.nameFrom]);
    if (name !== undefined) nameFrom = kind.nameFrom;
  }
  return { name, nameFrom, rename, runType: runType ?? 'chain' };
}

function inputsOf(reader: AttributeReader, runType: string, known: KnownInputs | undefined): MappedInputs | undefined {
  const sources: unknown[] = [];
  for (const { row } of reader.rows('inputs')) reader.addSources(row[0], sources);
  if (known !== undefined && isSame(known.sources, sources)) {
    for (const key of known.used) reader.use(key);
    return { payload: undefined, sources: known.sources, used: known.used };
  }
  const payload = payloadOf('inputs', 'input', runType, reader);
  return payload && { payload, sources, used: reader.used() };
}

function isSame(before: readonly unknown[], now: readonly unknown[]): boolean {
  return before.length === now.length && before.every((item, at) => item === now[at]);
}

/** A payload is told by one vocabulary: two that describe the same call in full would make a mixture of both. */
function payloadOf(
  group: 'inputs' | 'outputs',
  wholeKey: string,
  runType: string,
  reader: AttributeReader,
): Found | undefined {
  const rows = NOT_REQUESTS.has(runType) ? reader.rows(group).filter(isNotHttp) : reader.rows(group);
  for (let from = 0, to = 0; from < rows.length; from = to) {
    const rank = rows[from]?.rank;
    while (rows[to]?.rank === rank) to++;
    const found = collect(rows.slice(from, to), reader, wholeKey);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Run types whose payloads never come from an HTTP request. */
const NOT_REQUESTS: ReadonlySet<string> = new Set(['llm', 'embedding', 'tool']);

const HTTP_RANK = vocabularies.indexOf(http);

function isNotHttp({ rank }: Place): boolean {
  return rank !== HTTP_RANK;
}

function collectAll(group: Group, reader: AttributeReader): Found | undefined {
  return collect(reader.rows(group), reader, 'value');
}

/** Outputs with the token counts in them. Text of theirs is extended, which is cheaper than to write it anew. */
function withUsage(outputs: Found | undefined, usage: Fields): Found {
  const body = outputs?.text?.trim().slice(0, -1);
  if (body !== undefined && body.trimEnd() !== '{' && !body.includes(USAGE)) {
    return new KeptText(`${body},"${USAGE}":${JSON.stringify(usage)}}`);
  }
  return { fields: { ...outputs?.fields, [USAGE]: usage }, text: undefined };
}

function usageOf(reader: AttributeReader, serviceTier: unknown): Fields | undefined {
  const usage = collectAll('usage', reader)?.fields;
  return usage && { ...completeUsage(usage, serviceTier) };
}

function metadataOf(reader: AttributeReader): Map<string, unknown> {
  const parameters = collectAll('parameters', reader)?.fields;
  const metadata = new Map(Object.entries(collectAll('metadata', reader)?.fields ?? {}));
  const add = (key: string, value: unknown): void => {
    if (value !== undefined && !metadata.has(key)) metadata.set(key, value);
  };
  add('ls_invocation_params', parameters);
  add('ls_temperature', parameters?.temperature);
  add('ls_max_tokens', parameters?.max_tokens ?? parameters?.max_completion_tokens);
  add('ls_stop', parameters?.stop);
  return metadata;
}

function addRest(metadata: Map<string, unknown>, reader: AttributeReader, isHidden: IsCarrier | undefined): void {
  let dropped = 0;
  for (const key of reader.keys) {
    const value = reader.attributes[key];
    if (reader.isUsed(key) || reader.isSpent(key)) continue;
    if (metadata.has(key) || isHidden?.(key) === true) continue;
    if (metadata.size < METADATA_KEYS_MAX) metadata.set(key, CLEANED.get(key)?.(value, reader.attributes) ?? value);
    else dropped++;
  }
  if (dropped > 0) metadata.set('dropped_attributes', dropped);
}
