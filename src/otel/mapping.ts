/** What the attributes of a span mean: pure, and the same for spans of this process and of others. */
import { AttributeReader } from './attribute-reader.ts';
import { genAi } from './genai.ts';
import { generalAttributes } from './general-attributes.ts';
import { openInference } from './openinference.ts';
import { carriers, type IsCarrier } from './payload-carriers.ts';
import { PROJECT, runspanAttributes } from './runspan-attributes.ts';
import { type Attributes, type Fields, number, text } from './values.ts';
import { collect, type Vocabulary } from './vocabulary.ts';

/** In order of precedence. A field that one has set is not set by a later one; payloads are those of one alone. */
export const vocabularies: readonly Vocabulary[] = [runspanAttributes, openInference, genAi, generalAttributes];

/** Keys of metadata that one span may have; the attributes beyond are counted in `dropped_attributes`. */
const METADATA_KEYS_MAX = 1_000;

/** What may be taken of a span's payloads. */
export interface Visibility {
  readonly hideInputs: boolean;
  readonly hideOutputs: boolean;
}

/** The attributes that the inputs of a span were made of. */
export interface KnownInputs {
  /** Names and values in turn: as long as these are the same, so are the inputs. */
  readonly sources: readonly unknown[];
  readonly used: readonly string[];
}

/** The inputs of a span; `fields` are undefined where they are still those that are known. */
export interface MappedInputs extends KnownInputs {
  readonly fields: Fields | undefined;
}

/** What a run takes over from the attributes of its span when that starts. */
export interface MappedStart {
  /** Undefined where the span's own name is as good as any. */
  readonly name: string | undefined;
  readonly runType: string;
  readonly project: string | undefined;
  readonly inputs: MappedInputs | undefined;
}

/** And when it ends. */
export interface MappedSpan extends Omit<MappedStart, 'project'> {
  readonly outputs: Fields | undefined;
  readonly tags: string[] | undefined;
  /** Everything that has no field of its own. */
  readonly metadata: ReadonlyMap<string, unknown>;
}

export function mapStart(attributes: Attributes, visibility: Visibility): MappedStart {
  const spoken = vocabularies.filter((vocabulary) => vocabulary.isSpoken(attributes));
  const reader = readerOf(attributes, spoken);
  const inputs = visibility.hideInputs ? undefined : inputsOf(spoken, reader, undefined);
  return { ...kindOf(spoken, reader), project: text(attributes[PROJECT]), inputs };
}

/** The whole of a span. `known` is what `mapStart` has found about its inputs, so that they are not made twice. */
export function mapSpan(attributes: Attributes, visibility: Visibility, known?: KnownInputs): MappedSpan {
  const spoken = vocabularies.filter((vocabulary) => vocabulary.isSpoken(attributes));
  const reader = readerOf(attributes, spoken);
  const inputs = visibility.hideInputs ? undefined : inputsOf(spoken, reader, known);
  const outputs = visibility.hideOutputs ? undefined : payloadOf(spoken, 'outputs', 'output', reader);
  const kind = kindOf(spoken, reader);
  // On a span around others the counts are, as a rule, the sum of theirs; as a run's own they would count twice.
  const usage = kind.runType === 'chain' ? undefined : usageOf(spoken, reader);
  const metadata = metadataOf(spoken, reader, usage);
  const tags = collectAll(spoken, 'tags', reader)?.tags as string[] | undefined;
  addRest(metadata, spoken, reader, hiddenCarriers(visibility));
  return {
    ...kind,
    inputs,
    outputs: usage === undefined || visibility.hideOutputs ? outputs : { ...outputs, usage_metadata: usage },
    tags,
    metadata,
  };
}

/** Says which names carry what is hidden; undefined when nothing is. */
export function hiddenCarriers({ hideInputs, hideOutputs }: Visibility): IsCarrier | undefined {
  return HIDDEN[(hideInputs ? 1 : 0) + (hideOutputs ? 2 : 0)];
}

const HIDDEN: readonly (IsCarrier | undefined)[] = [
  undefined,
  carriers(vocabularies, { hideInputs: true, hideOutputs: false }),
  carriers(vocabularies, { hideInputs: false, hideOutputs: true }),
  carriers(vocabularies, { hideInputs: true, hideOutputs: true }),
];

type Group = 'inputs' | 'outputs' | 'usage' | 'parameters' | 'metadata' | 'tags';

/** The lists that stand flattened among the attributes, for each vocabulary that has any. */
const LISTS: ReadonlyMap<Vocabulary, ReadonlySet<string>> = new Map(
  vocabularies.map((vocabulary) => [vocabulary, listsOf(vocabulary)] as const).filter(([, lists]) => lists.size > 0),
);

function listsOf({ inputs, outputs, parameters }: Vocabulary): Set<string> {
  const lists = [...inputs, ...outputs, ...parameters].filter(([, , , manner]) => manner === 'list');
  return new Set(lists.map(([attribute]) => attribute));
}

function readerOf(attributes: Attributes, spoken: readonly Vocabulary[]): AttributeReader {
  const lists = spoken.flatMap((vocabulary) => LISTS.get(vocabulary) ?? []);
  return new AttributeReader(
    attributes,
    lists.length === 0 ? undefined : (prefix) => lists.some((list) => list.has(prefix)),
  );
}

function kindOf(spoken: readonly Vocabulary[], reader: AttributeReader): { name: string | undefined; runType: string } {
  let name: string | undefined;
  let runType: string | undefined;
  for (const vocabulary of spoken) {
    const kind = vocabulary.kindOf(reader.attributes);
    runType ??= kind.runType;
    if (name !== undefined || kind.nameFrom === undefined) continue;
    name = text(reader.attributes[kind.nameFrom]);
    if (name !== undefined) reader.use(kind.nameFrom);
  }
  return { name, runType: runType ?? 'chain' };
}

function inputsOf(
  spoken: readonly Vocabulary[],
  reader: AttributeReader,
  known: KnownInputs | undefined,
): MappedInputs | undefined {
  const sources: unknown[] = [];
  for (const { inputs } of spoken) for (const [attribute] of inputs) reader.addSources(attribute, sources);
  if (known !== undefined && isSame(known.sources, sources)) {
    for (const key of known.used) reader.use(key);
    return { ...known, fields: undefined };
  }
  const fields = payloadOf(spoken, 'inputs', 'input', reader);
  return fields && { fields, sources, used: reader.used() };
}

function isSame(before: readonly unknown[], now: readonly unknown[]): boolean {
  return before.length === now.length && before.every((item, at) => item === now[at]);
}

/** A payload is told by one vocabulary: two that describe the same call in full would make a mixture of both. */
function payloadOf(
  spoken: readonly Vocabulary[],
  group: 'inputs' | 'outputs',
  wholeKey: string,
  reader: AttributeReader,
): Fields | undefined {
  for (const vocabulary of spoken) {
    const fields = collect(vocabulary[group], reader, wholeKey);
    if (fields !== undefined) return fields;
  }
  return undefined;
}

function collectAll(spoken: readonly Vocabulary[], group: Group, reader: AttributeReader): Fields | undefined {
  let fields: Fields | undefined;
  for (const vocabulary of spoken) fields = collect(vocabulary[group], reader, 'value', fields);
  return fields;
}

function usageOf(spoken: readonly Vocabulary[], reader: AttributeReader): Fields | undefined {
  const usage = collectAll(spoken, 'usage', reader);
  if (usage === undefined || usage.total_tokens !== undefined) return usage;
  const { input_tokens: input, output_tokens: output } = usage;
  if (input === undefined && output === undefined) return usage;
  return { ...usage, total_tokens: (number(input) ?? 0) + (number(output) ?? 0) };
}

function metadataOf(
  spoken: readonly Vocabulary[],
  reader: AttributeReader,
  usage: Fields | undefined,
): Map<string, unknown> {
  const parameters = collectAll(spoken, 'parameters', reader);
  const metadata = new Map(Object.entries(collectAll(spoken, 'metadata', reader) ?? {}));
  const add = (key: string, value: unknown): void => {
    if (value !== undefined && !metadata.has(key)) metadata.set(key, value);
  };
  add('ls_invocation_params', parameters);
  add('ls_temperature', parameters?.temperature);
  add('ls_max_tokens', parameters?.max_tokens ?? parameters?.max_completion_tokens);
  add('ls_stop', parameters?.stop);
  add('usage_metadata', usage);
  return metadata;
}

function addRest(
  metadata: Map<string, unknown>,
  spoken: readonly Vocabulary[],
  reader: AttributeReader,
  isHidden: IsCarrier | undefined,
): void {
  for (const { spent } of spoken) for (const attribute of spent) reader.use(attribute);
  let dropped = 0;
  for (const [key, value] of Object.entries(reader.attributes)) {
    if (value === undefined || reader.isUsed(key) || metadata.has(key) || isHidden?.(key)) continue;
    if (metadata.size < METADATA_KEYS_MAX) metadata.set(key, value);
    else dropped++;
  }
  if (dropped > 0) metadata.set('dropped_attributes', dropped);
}
