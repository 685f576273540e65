import { defined, type Fields, fieldsOf, isFields, listOf, parsedJson, textOf } from '../../payload/fields.ts';
import { asText } from '../../services/chat.ts';
import { messagesOfInputs, messagesOfOutputs } from '../../services/conversation.ts';
import type { Message, Part } from '../../services/message.ts';
import { genAiMetadata, genAiParameters, genAiUsage, openInferenceCounts } from '../conventions/genai-rows.ts';
import type { Rows } from '../conventions/vocabulary.ts';
import type { AttributeValue } from './otlp-span.ts';

export type NewAttributes = Map<string, AttributeValue>;

/** The current attribute of each key. `user_id` and the parameters in LangSmith's metadata have no row of their own. */
const METADATA: ReadonlyMap<string, string> = new Map([
  ['ls_temperature', 'gen_ai.request.temperature'],
  ['ls_max_tokens', 'gen_ai.request.max_tokens'],
  ['ls_stop', 'gen_ai.request.stop_sequences'],
  ['user_id', 'user.id'],
  ...namesOf(genAiMetadata),
]);
const PARAMETERS = namesOf(genAiParameters);
const USAGE = namesOf(genAiUsage);

/** What Phoenix adds up of OpenInference. */
const OPENINFERENCE_USAGE = namesOf(openInferenceCounts);

function namesOf(rows: Rows): ReadonlyMap<string, string> {
  return new Map(rows.map(([attribute, key]) => [key, attribute] as const).reverse());
}

interface Kind {
  readonly operation: string;
  /** The value of `openinference.span.kind`. */
  readonly kind: string;
}

const AGENT: Kind = { operation: 'invoke_agent', kind: 'AGENT' };

/** By run type, which may be any text. */
const KINDS: ReadonlyMap<string, Kind> = new Map([
  ['llm', { operation: 'chat', kind: 'LLM' }],
  ['embedding', { operation: 'embeddings', kind: 'EMBEDDING' }],
  ['retriever', { operation: 'retrieval', kind: 'RETRIEVER' }],
  ['tool', { operation: 'execute_tool', kind: 'TOOL' }],
]);

/** The parts of a run that the attributes describe. Payloads are JSON text. */
export interface DescribedRun {
  readonly name: string;
  readonly runType: string;
  readonly metadata: ReadonlyMap<string, string> | undefined;
  readonly inputs: string | undefined;
  readonly outputs: string | undefined;
}

/** Whether the metadata of a run with this key is described by attributes of the conventions. */
export function isDescribed(key: string): boolean {
  return METADATA.has(key) || key.startsWith('ls_') || key === 'usage_metadata';
}

/**
 * Adds the attributes of OpenTelemetry's GenAI conventions 0.1.0, and of OpenInference what these lack:
 * https://github.com/open-telemetry/semantic-conventions-genai
 */
export function addGenAi(attributes: NewAttributes, run: DescribedRun): void {
  const { runType, name, metadata } = run;
  const isAgent = metadata?.has('ls_agent_type') === true;
  const kind = isAgent ? AGENT : KINDS.get(runType);
  attributes.set('openinference.span.kind', kind?.kind ?? 'CHAIN');
  if (metadata !== undefined) addMetadata(attributes, metadata);
  if (kind === undefined) return;
  if (!attributes.has('gen_ai.operation.name')) attributes.set('gen_ai.operation.name', usualOperation(kind, metadata));
  if (isAgent) attributes.set('gen_ai.agent.name', name);
  if (runType === 'tool') addTool(attributes, run);
  else if (runType === 'llm') addModelCall(attributes, run);
  else if (runType === 'embedding') addUsage(attributes, usageOf(run, undefined));
  else if (runType === 'retriever') {
    setValue(attributes, 'gen_ai.retrieval.query.text', textOf(fieldsOf(parsedJson(run.inputs)).query));
  }
}

/** Returns the operation of a call that a run records: as its span has it, or else by the run type. */
export function operationName({ runType, metadata }: Pick<DescribedRun, 'runType' | 'metadata'>): string | undefined {
  const kind = KINDS.get(runType);
  return kind && (textOf(parsedJson(metadata?.get('gen_ai.operation.name'))) ?? usualOperation(kind, metadata));
}

function usualOperation({ operation }: Kind, metadata: DescribedRun['metadata']): string {
  return operation === 'chat' && metadata?.get('ls_model_type') === '"llm"' ? 'text_completion' : operation;
}

function addMetadata(attributes: NewAttributes, metadata: ReadonlyMap<string, string>): void {
  const valueIn = (key: string): unknown => parsedJson(metadata.get(key));
  const parameters = fieldsOf(valueIn('ls_invocation_params'));
  for (const [key, name] of METADATA) setValue(attributes, name, valueIn(key));
  for (const [key, name] of PARAMETERS) if (key !== 'model') setValue(attributes, name, parameters[key]);
  setValue(attributes, 'session.id', valueIn('thread_id'));
}

function addTool(attributes: NewAttributes, { name, inputs, outputs }: DescribedRun): void {
  attributes.set('gen_ai.tool.name', name);
  if (inputs !== undefined) attributes.set('gen_ai.tool.call.arguments', inputs);
  if (outputs !== undefined) attributes.set('gen_ai.tool.call.result', outputs);
}

function addModelCall(attributes: NewAttributes, run: DescribedRun): void {
  const outputs = parsedJson(run.outputs);
  const asked = run.inputs === undefined ? undefined : messagesOfInputs(parsedJson(run.inputs));
  const answers = outputs === undefined ? undefined : messagesOfOutputs(outputs);
  const reasons = listOf(parsedJson(run.metadata?.get('finish_reasons')));
  const messages = answers?.map((message, at) => ({ ...messageOf(message), finish_reason: reasons[at] }));
  setValue(attributes, 'gen_ai.input.messages', asked?.map(messageOf));
  setValue(attributes, 'gen_ai.output.messages', messages);
  addUsage(attributes, usageOf(run, outputs));
}

/** Token counts are in the outputs. Runs of spans have them in the metadata, too. */
function usageOf({ metadata, outputs }: DescribedRun, payload: unknown): Fields {
  const inMetadata = metadata?.get('usage_metadata');
  if (inMetadata !== undefined) return fieldsOf(parsedJson(inMetadata));
  return fieldsOf(fieldsOf(payload ?? parsedJson(outputs)).usage_metadata);
}

function addUsage(attributes: NewAttributes, usage: Fields): void {
  for (const [key, value] of Object.entries(usage)) {
    const counts = isFields(value)
      ? Object.entries(value).map(([detail, count]) => [`${key}.${detail}`, count] as const)
      : [[key, value] as const];
    for (const [name, count] of counts) {
      for (const names of [USAGE, OPENINFERENCE_USAGE]) {
        const attribute = names.get(name);
        if (attribute !== undefined) setValue(attributes, attribute, count);
      }
    }
  }
}

/** Sets an attribute. Objects and mixed lists become JSON text. Null and undefined are left out. */
export function setValue(attributes: NewAttributes, name: string, value: unknown): void {
  if (value === undefined || value === null) return;
  const isPlain = typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
  const isTexts = Array.isArray(value) && value.every((item) => typeof item === 'string');
  attributes.set(name, (isPlain || isTexts ? value : asText(value)) as AttributeValue);
}

/** Converts a message to the schema of `gen_ai.input.messages`. */
function messageOf({ role, name, parts }: Message): Fields {
  return { role, name, parts: parts.map(partOf) };
}

function partOf(part: Part): Fields {
  switch (part.kind) {
    case 'text':
    case 'reasoning':
      return { type: part.kind, content: part.text };
    case 'refusal':
      return { type: 'text', content: part.text };
    case 'call':
      return { type: 'tool_call', id: part.id, name: part.name, arguments: part.input };
    case 'result':
      return { type: 'tool_call_response', id: part.id, response: part.value };
    case 'media':
      return mediaOf(part);
    case 'other':
      return isFields(part.value) && typeof part.value.type === 'string'
        ? part.value
        : { type: 'other', content: part.value };
  }
}

const DATA_URI = /^data:([^;,]*);base64,/;

/** Converts a file. The content of a data URI is sent as it is, in base64. */
function mediaOf({ source, type }: Extract<Part, { kind: 'media' }>): Fields {
  const found = DATA_URI.exec(source);
  const mime = found?.[1] || type;
  const modality = /^(image|audio|video)/.exec(mime ?? '')?.[0];
  const isUri = found === null && /^[a-z][a-z\d+.-]*:/i.test(source);
  if (isUri) return defined({ type: 'uri', modality, mime_type: mime, uri: source });
  return defined({ type: 'blob', modality, mime_type: mime, content: source.slice(found?.[0].length) });
}
