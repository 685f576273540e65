import { defined, type Fields, filled, idTextOf, isFields } from '../../payload/fields.ts';
import { aiSdkFile, aiSdkMessages, aiSdkToolCall } from '../../services/ai-sdk/messages.ts';
import type { SpanLike } from '../span-like.ts';
import { aiSdkServiceTier, aiSdkUsage } from './ai-sdk-usage.ts';
import { type Attributes, anyJson, json, microseconds, number, objects, same, text, texts } from './values.ts';
import { FIRST_TOKEN, type Kind, kindsOf, type Row, type Rows, type Vocabulary, WHOLE } from './vocabulary.ts';

const OPERATION = 'ai.operationId';
const METADATA = 'ai.telemetry.metadata';
/** Attribute prefix that AI SDK 7 uses instead of `ai.telemetry.metadata`. */
const CONTEXT = 'ai.settings.context';

/** Run types by the last word of an operation. Functions such as `ai.generateText` call these steps. */
const STEPS: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ...kindsOf({
    llm: ['doGenerate', 'doStream', 'generateSpeech', 'transcribe', 'streamTranscribe'],
    embedding: ['doEmbed'],
    retriever: ['doRerank'],
  }),
  ['toolCall', { runType: 'tool', nameFrom: 'ai.toolCall.name' }],
]);

const MODEL_TYPES: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  ['doGenerate', 'chat'],
  ['doStream', 'chat'],
  ['doEmbed', 'embedding'],
]);

const inputs: Rows = [
  ['ai.values', 'values', eachJson],
  ['ai.value', 'value', anyJson],
  ['ai.documents', 'documents', eachJson],
  ['ai.decision.state', 'state', json],
  ['ai.decision.questions', 'questions', json],
];

const outputs: Rows = [
  ['ai.embeddings', 'embeddings', dimensions],
  ['ai.embedding', 'embeddings', dimensions],
  ['ai.ranking', 'ranking', eachJson],
  ['ai.decision.answers', 'answers', json],
];

const parameters: Rows = [
  ['ai.prompt.toolChoice', 'tool_choice', json],
  ['ai.settings.output', 'response_format.type', text],
  ['ai.schema', 'response_format.schema', json],
  ['ai.schema.name', 'response_format.name', text],
  ['ai.schema.description', 'response_format.description', text],
];

const metadata: Rows = [
  ...personal(METADATA),
  ...personal(CONTEXT),
  [METADATA, WHOLE, same, 'below'],
  [CONTEXT, WHOLE, same, 'below'],
  // Headers may contain API keys.
  ['ai.request.headers', WHOLE, nothing, 'below'],
  // Embeddings are too long for metadata, even if another mapping table sets the outputs.
  ['ai.embeddings', WHOLE, nothing, 'merged'],
  ['ai.embedding', WHOLE, nothing, 'merged'],
];

/**
 * Mapping table for Vercel's AI SDK, versions 4 to 6, and version 7 with `LegacyOpenTelemetry`:
 * https://ai-sdk.dev/docs/ai-sdk-core/telemetry
 *
 * Takes precedence over the GenAI table, because the SDK's GenAI attributes contain fewer details.
 */
export const aiSdk: Vocabulary = {
  name: 'ai_sdk',
  namespaces: ['ai'],
  matches: (attributes) => attributes[OPERATION] !== undefined,
  kindOf: (attributes) =>
    STEPS.get(stepOf(attributes[OPERATION])) ?? { runType: 'chain', nameFrom: nameOf(attributes) },
  inputs: [
    ['ai.prompt.messages', 'messages', promptMessages],
    ['ai.prompt', WHOLE, aiSdkPrompt],
    ['ai.toolCall.args', WHOLE, aiSdkArguments],
    ['ai.toolCall.input', WHOLE, aiSdkArguments],
    ['ai.request.text', 'text', text],
    ...inputs,
  ],
  outputs: [
    ['ai.response.object', WHOLE, objectAround],
    ['ai.result.object', WHOLE, objectAround],
    ...['text', 'reasoning', 'toolCalls', 'files'].flatMap((part): Row[] => [
      [`ai.response.${part}`, 'messages', aiSdkAnswer, 'repeats'],
      [`ai.result.${part}`, 'messages', aiSdkAnswer, 'repeats'],
    ]),
    ['ai.response.object', 'messages', objectAnswered, 'repeats'],
    ['ai.result.object', 'messages', objectAnswered, 'repeats'],
    ['ai.toolCall.result', WHOLE, anyJson],
    ['ai.toolCall.output', WHOLE, anyJson],
    ...outputs,
  ],
  usage: aiSdkUsage,
  parameters: [
    ['ai.model.id', 'model', text],
    // The GenAI attributes contain the parameters of one step, which `prepareStep` may have changed.
    ['gen_ai.request.temperature', 'temperature', number],
    ['ai.settings.temperature', 'temperature', number, 'repeats'],
    ['gen_ai.request.max_tokens', 'max_tokens', number],
    ['ai.settings.maxOutputTokens', 'max_tokens', number, 'repeats'],
    ['ai.settings.maxTokens', 'max_tokens', number, 'repeats'],
    ['gen_ai.request.stop_sequences', 'stop', texts],
    ['ai.settings.stopSequences', 'stop', texts, 'repeats'],
    ['gen_ai.request.top_p', 'top_p', number],
    ['ai.settings.topP', 'top_p', number, 'repeats'],
    ['gen_ai.request.top_k', 'top_k', number],
    ['ai.settings.topK', 'top_k', number, 'repeats'],
    ['gen_ai.request.frequency_penalty', 'frequency_penalty', number],
    ['ai.settings.frequencyPenalty', 'frequency_penalty', number, 'repeats'],
    ['gen_ai.request.presence_penalty', 'presence_penalty', number],
    ['ai.settings.presencePenalty', 'presence_penalty', number, 'repeats'],
    ['ai.settings.seed', 'seed', number],
    ['ai.prompt.tools', 'tools', eachJson],
    ...parameters,
    ['ai.settings', WHOLE, same, 'below'],
  ],
  metadata: [
    ['ai.model.provider', 'ls_provider', providerOf],
    ['ai.model.id', 'ls_model_name', text],
    ['ai.response.model', 'ls_model_name', text],
    ['ai.response.model', 'response_model', text],
    ['ai.response.id', 'response_id', text],
    [OPERATION, 'ls_model_type', (operation) => MODEL_TYPES.get(stepOf(operation)), 'kept'],
    ['ai.response.finishReason', 'finish_reasons', texts],
    aiSdkServiceTier,
    ['ai.finishReason', 'finish_reasons', texts],
    ['ai.telemetry.functionId', 'function_id', text],
    ['ai.toolCall.id', 'tool_call_id', text],
    ...metadata,
  ],
  tags: [
    [`${METADATA}.tags`, 'tags', texts],
    [`${CONTEXT}.tags`, 'tags', texts],
  ],
  times: [
    ['ai.response.msToFirstChunk', FIRST_TOKEN, microseconds(1_000), 'kept'],
    ['ai.stream.msToFirstChunk', FIRST_TOKEN, microseconds(1_000), 'kept'],
  ],
  project: `${METADATA}.ls_project_name`,
  ignored: [
    ...['operation.name', 'resource.name', 'gen_ai.system', 'gen_ai.request.model'],
    ...['finish_reasons', 'id', 'model'].map((name) => `gen_ai.response.${name}`),
    ...['input', 'output', 'prompt', 'completion'].map((kind) => `gen_ai.usage.${kind}_tokens`),
  ],
};

/**
 * Optional attributes that AI SDK 7 adds to the GenAI conventions. Applications enable them with
 * `new OpenTelemetry({ usage, embedding, schema, … })` from `@ai-sdk/otel`. For speech and transcriptions, the GenAI
 * messages take precedence.
 */
export const aiSdkBesideGenAi: Vocabulary = {
  name: 'ai_sdk_beside_gen_ai',
  namespaces: ['gen_ai'],
  matches: (attributes) => attributes[OPERATION] === undefined && attributes['gen_ai.operation.name'] !== undefined,
  kindOf: () => ({}),
  inputs,
  outputs,
  usage: aiSdkUsage,
  parameters,
  metadata,
  tags: [[`${CONTEXT}.tags`, 'tags', texts]],
  times: [['gen_ai.client.operation.time_to_first_chunk', FIRST_TOKEN, microseconds(1_000_000), 'kept']],
  ignored: ['ai.request.text', 'ai.response.text'],
};

/** Maps the user id and the conversation id. Both ids are also kept under their original keys. */
function personal(prefix: string): Rows {
  return ['userId', 'threadId', 'sessionId', 'conversationId'].flatMap((name): Rows => {
    const key = name === 'userId' ? 'user_id' : 'thread_id';
    return [
      [`${prefix}.${name}`, key, idTextOf],
      [`${prefix}.${name}`, name, same],
    ];
  });
}

/** Returns the last word of an operation, for example `doGenerate` for `ai.generateText.doGenerate`. */
function stepOf(operation: unknown): string {
  const name = text(operation) ?? '';
  return name.slice(name.lastIndexOf('.') + 1);
}

/** Returns the name of the attribute with the function name that the application has set. */
function nameOf(attributes: Attributes): string {
  const named = `${METADATA}.ls_run_name`;
  return text(attributes[named]) === undefined ? 'ai.telemetry.functionId' : named;
}

/** Returns the provider without its suffix, for example `openai` for `openai.responses`. */
function providerOf(value: unknown): string | undefined {
  return text(text(value)?.split('.', 1)[0]);
}

/** Converts `ai.prompt.messages` to messages of the form `{ role, content, tool_calls }`. */
function promptMessages(value: unknown): unknown[] | undefined {
  return filled(aiSdkMessages(objects(json(value))));
}

/** Converts `ai.prompt`, which contains the arguments `{ system, prompt, messages }` of an SDK function. */
function aiSdkPrompt(value: unknown): Fields | undefined {
  const prompt = json(value);
  if (!isFields(prompt)) return undefined;
  const { messages, prompt: asked, ...rest } = prompt;
  return defined({ ...rest, prompt: promptMessages(asked) ?? asked, messages: promptMessages(messages) ?? messages });
}

function aiSdkAnswer(_: unknown, attributes: Attributes): Fields[] {
  const given = (name: string): unknown => attributes[`ai.response.${name}`] ?? attributes[`ai.result.${name}`];
  const message = {
    role: 'assistant',
    content: text(given('text')) ?? text(given('object')),
    reasoning: text(given('reasoning')),
    tool_calls: filled(objects(json(given('toolCalls'))).map(aiSdkToolCall)),
    files: filled(objects(json(given('files'))).map(aiSdkFile)),
    finish_reason: text(attributes['ai.response.finishReason'] ?? attributes['ai.finishReason']),
  };
  return [defined(message)];
}

/** Parses the arguments of a tool. The arguments of dynamic tools are JSON text that is encoded twice. */
function aiSdkArguments(value: unknown): unknown {
  return json(anyJson(value));
}

/** Returns the object in the result of an SDK function. Returns undefined for model calls. */
function objectAround(value: unknown, attributes: Attributes): unknown {
  return STEPS.has(stepOf(attributes[OPERATION])) ? undefined : anyJson(value);
}

/** Parses the object in a model's answer. Returns undefined for SDK functions. */
function objectAnswered(value: unknown, attributes: Attributes): unknown {
  return STEPS.has(stepOf(attributes[OPERATION])) ? aiSdkAnswer(value, attributes) : undefined;
}

function eachJson(value: unknown): unknown[] | undefined {
  return Array.isArray(value) ? value.map(anyJson) : undefined;
}

/** Returns the length of each embedding vector, which is usually JSON text. The vectors are not recorded. */
function dimensions(value: unknown): Fields[] {
  const vectors = Array.isArray(value) && typeof value[0] !== 'number' ? value : [value];
  return vectors.map((vector) => ({ dimensions: Array.isArray(vector) ? vector.length : numbersIn(String(vector)) }));
}

/** Counts the numbers in a JSON list by its commas, because parsing thousands of numbers is slow. */
function numbersIn(list: string): number {
  if (/^\s*\[\s*\]\s*$/.test(list)) return 0;
  let count = 1;
  for (let at = list.indexOf(','); at >= 0; at = list.indexOf(',', at + 1)) count++;
  return count;
}

function nothing(): Fields {
  return {};
}

/** Streamed calls of versions 5 to 7, and of 7 with GenAI conventions. An abort adds no attributes to their spans. */
const STREAMS: readonly unknown[] = ['ai.streamText', 'ai.streamText.doStream'];
const STREAMS_OF_7: readonly unknown[] = ['chat', 'invoke_agent'];

/** Matches attributes that tell something of an answer, also under the names that other packages give them. */
const ANSWER = /\b(?:response|result|usage|token_count|completion|finishReason|output)\b(?!\.type$)/;

/** Spans directly above or below a step of an agent of AI SDK 7. The GenAI conventions have no such operation. */
const besideSteps = new WeakSet<object>();

export function noteStep(span: SpanLike, above: Partial<SpanLike> | undefined): void {
  const isStep = ({ attributes }: Partial<SpanLike>): boolean => attributes?.['gen_ai.operation.name'] === 'agent_step';
  if (above !== undefined && isStep(span)) besideSteps.add(above);
  else if (above !== undefined && isStep(above)) besideSteps.add(span);
}

/**
 * Returns whether the signal of a streamed AI SDK call has fired. Its span has no answer then, which is no evidence if
 * attributes were dropped or renamed, or if another tracer made the span.
 */
export function isCancelledCall(span: SpanLike): boolean {
  const { attributes, status, droppedAttributesCount } = span;
  if (status.code !== 0 || droppedAttributesCount !== 0) return false;
  const isOwn = STREAMS.includes(attributes[OPERATION])
    ? attributes['ai.model.id'] !== undefined
    : STREAMS_OF_7.includes(attributes['gen_ai.operation.name']) && besideSteps.has(span);
  return isOwn && !Object.keys(attributes).some((name) => ANSWER.test(name));
}
