import { messagesOfInputs, messagesOfOutputs } from '../../messages/conversation.ts';
import type { Message, Part } from '../../messages/message.ts';
import { defined, type Fields, fieldsOf, isFields, listOf, parsedJson, textOf } from '../../payload/fields.ts';
import type { AttributeValue } from './otlp-span.ts';

/** The attributes of a span that is being built. */
export type NewAttributes = Map<string, AttributeValue>;

/**
 * The current names of attributes, by the key of the metadata. `conventions/` reads them, and their earlier names. A test
 * compares both tables.
 */
const METADATA: ReadonlyMap<string, string> = new Map([
  ['ls_provider', 'gen_ai.provider.name'],
  ['ls_model_name', 'gen_ai.request.model'],
  ['response_model', 'gen_ai.response.model'],
  ['response_id', 'gen_ai.response.id'],
  ['response_status', 'gen_ai.response.status'],
  ['finish_reasons', 'gen_ai.response.finish_reasons'],
  ['thread_id', 'gen_ai.conversation.id'],
  ['conversation_compacted', 'gen_ai.conversation.compacted'],
  ['prompt_name', 'gen_ai.prompt.name'],
  ['prompt_version', 'gen_ai.prompt.version'],
  ['tool_call_id', 'gen_ai.tool.call.id'],
  ['service_tier', 'openai.response.service_tier'],
]);

/** By the key of `ls_invocation_params`. */
const PARAMETERS: ReadonlyMap<string, string> = new Map([
  ['temperature', 'gen_ai.request.temperature'],
  ['max_tokens', 'gen_ai.request.max_tokens'],
  ['stop', 'gen_ai.request.stop_sequences'],
  ['top_p', 'gen_ai.request.top_p'],
  ['top_k', 'gen_ai.request.top_k'],
  ['frequency_penalty', 'gen_ai.request.frequency_penalty'],
  ['presence_penalty', 'gen_ai.request.presence_penalty'],
  ['seed', 'gen_ai.request.seed'],
  ['n', 'gen_ai.request.choice.count'],
  ['encoding_formats', 'gen_ai.request.encoding_formats'],
  ['reasoning_effort', 'gen_ai.request.reasoning.level'],
  ['previous_response_id', 'gen_ai.request.previous_response.id'],
  ['stream', 'gen_ai.request.stream'],
  ['output_type', 'gen_ai.output.type'],
  ['tools', 'gen_ai.tool.definitions'],
]);

/** By the key of the usage. Of OpenInference, which Phoenix reads, only what it adds up. */
const USAGE: ReadonlyMap<string, readonly string[]> = new Map([
  ['input_tokens', ['gen_ai.usage.input_tokens', 'llm.token_count.prompt']],
  ['output_tokens', ['gen_ai.usage.output_tokens', 'llm.token_count.completion']],
  ['total_tokens', ['gen_ai.usage.total_tokens', 'llm.token_count.total']],
  ['total_cost', ['gen_ai.usage.cost', 'llm.cost.total']],
  ['input_cost', ['llm.cost.prompt']],
  ['output_cost', ['llm.cost.completion']],
  [
    'input_token_details.cache_read',
    ['gen_ai.usage.cache_read.input_tokens', 'llm.token_count.prompt_details.cache_read'],
  ],
  [
    'input_token_details.cache_creation',
    ['gen_ai.usage.cache_write.input_tokens', 'llm.token_count.prompt_details.cache_write'],
  ],
  ['input_token_details.text', ['gen_ai.usage.text.input_tokens']],
  ['input_token_details.image', ['gen_ai.usage.image.input_tokens']],
  ['input_token_details.audio', ['gen_ai.usage.audio.input_tokens', 'llm.token_count.prompt_details.audio']],
  ['input_token_details.video', ['gen_ai.usage.video.input_tokens']],
  [
    'output_token_details.reasoning',
    ['gen_ai.usage.reasoning.output_tokens', 'llm.token_count.completion_details.reasoning'],
  ],
  ['output_token_details.text', ['gen_ai.usage.text.output_tokens']],
  ['output_token_details.image', ['gen_ai.usage.image.output_tokens']],
  ['output_token_details.audio', ['gen_ai.usage.audio.output_tokens', 'llm.token_count.completion_details.audio']],
]);

/** Metadata with the parameters of a model call that has no `ls_invocation_params`. */
const LS_PARAMETERS: ReadonlyMap<string, string> = new Map([
  ['ls_temperature', 'gen_ai.request.temperature'],
  ['ls_max_tokens', 'gen_ai.request.max_tokens'],
  ['ls_stop', 'gen_ai.request.stop_sequences'],
]);

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
  return METADATA.has(key) || key.startsWith('ls_') || key === 'usage_metadata' || key === 'user_id';
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
  if (!attributes.has('gen_ai.operation.name')) attributes.set('gen_ai.operation.name', operationOf(kind, metadata));
  if (isAgent) attributes.set('gen_ai.agent.name', name);
  if (runType === 'tool') addTool(attributes, run);
  else if (runType === 'llm') addModelCall(attributes, run);
  else if (runType === 'embedding') addUsage(attributes, usageOf(run, undefined));
  else if (runType === 'retriever' && run.inputs !== undefined) {
    setValue(attributes, 'gen_ai.retrieval.query.text', textOf(fieldsOf(parsedJson(run.inputs)).query));
  }
}

function operationOf({ operation }: Kind, metadata: DescribedRun['metadata']): string {
  return operation === 'chat' && metadata?.get('ls_model_type') === '"llm"' ? 'text_completion' : operation;
}

function addMetadata(attributes: NewAttributes, metadata: ReadonlyMap<string, string>): void {
  for (const [key, json] of metadata) {
    const name = METADATA.get(key);
    if (name !== undefined) setValue(attributes, name, parsedJson(json));
  }
  const given = metadata.get('ls_invocation_params');
  const parameters = given === undefined ? {} : fieldsOf(parsedJson(given));
  for (const [key, name] of PARAMETERS) setValue(attributes, name, parameters[key]);
  for (const [key, name] of LS_PARAMETERS) {
    const json = metadata.get(key);
    if (json !== undefined && !attributes.has(name)) setValue(attributes, name, parsedJson(json));
  }
  const { thread_id: thread, user_id: user } = {
    thread_id: metadata.get('thread_id'),
    user_id: metadata.get('user_id'),
  };
  if (thread !== undefined) setValue(attributes, 'session.id', parsedJson(thread));
  if (user !== undefined) setValue(attributes, 'user.id', parsedJson(user));
}

function addTool(attributes: NewAttributes, { name, inputs, outputs }: DescribedRun): void {
  attributes.set('gen_ai.tool.name', name);
  if (inputs !== undefined) attributes.set('gen_ai.tool.call.arguments', inputs);
  if (outputs !== undefined) attributes.set('gen_ai.tool.call.result', outputs);
}

function addModelCall(attributes: NewAttributes, run: DescribedRun): void {
  const outputs = run.outputs === undefined ? undefined : parsedJson(run.outputs);
  const asked = run.inputs === undefined ? undefined : messagesOfInputs(parsedJson(run.inputs));
  const answers = outputs === undefined ? undefined : messagesOfOutputs(outputs);
  if (asked !== undefined) attributes.set('gen_ai.input.messages', JSON.stringify(asked.map(messageOf)));
  if (answers !== undefined) {
    const reasons = run.metadata?.get('finish_reasons');
    const listed = reasons === undefined ? [] : listOf(parsedJson(reasons));
    const messages = answers.map((message, at) => ({ ...messageOf(message), finish_reason: listed[at] }));
    attributes.set('gen_ai.output.messages', JSON.stringify(messages));
  }
  addUsage(attributes, usageOf(run, outputs));
}

/** Token counts are in the outputs. Runs of spans have them in the metadata, too. */
function usageOf({ metadata, outputs }: DescribedRun, parsed: unknown): Fields {
  const inMetadata = metadata?.get('usage_metadata');
  if (inMetadata !== undefined) return fieldsOf(parsedJson(inMetadata));
  const payload = parsed ?? (outputs === undefined ? undefined : parsedJson(outputs));
  return fieldsOf(fieldsOf(payload).usage_metadata);
}

function addUsage(attributes: NewAttributes, usage: Fields): void {
  for (const [key, value] of Object.entries(usage)) {
    const counts = isFields(value)
      ? Object.entries(value).map(([detail, count]) => [`${key}.${detail}`, count] as const)
      : [[key, value] as const];
    for (const [name, count] of counts) {
      for (const attribute of USAGE.get(name) ?? []) setValue(attributes, attribute, count);
    }
  }
}

/** Sets an attribute. Objects and mixed lists become JSON text. Null and undefined are left out. */
function setValue(attributes: NewAttributes, name: string, value: unknown): void {
  if (value === undefined || value === null) return;
  const isPlain = typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
  const isTexts = Array.isArray(value) && value.every((item) => typeof item === 'string');
  attributes.set(name, isPlain || isTexts ? (value as AttributeValue) : JSON.stringify(value));
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
  if (found !== null)
    return defined({ type: 'blob', modality, mime_type: mime, content: source.slice(found[0].length) });
  const isUri = /^[a-z][a-z\d+.-]*:/i.test(source);
  return defined(
    isUri
      ? { type: 'uri', modality, mime_type: mime, uri: source }
      : { type: 'blob', modality, mime_type: mime, content: source },
  );
}
