import type { CallDescription } from '../instrument/plan.ts';
import { type Fields, fieldsOf, isFields, listOf, numberOf, textOf, without } from './fields.ts';
import { choicesReader, embeddingsReader, imagesReader, responseReader } from './openai-answers.ts';
import { recordedMessages } from './openai-media.ts';
import type { TracedMethod } from './sdk-client.ts';

/** How the calls of one method are recorded. */
interface Call extends Omit<TracedMethod, 'describe'> {
  readonly modelType: 'chat' | 'llm' | 'embedding';
  /** What of the body are inputs; the rest are parameters. */
  readonly inputKeys: ReadonlySet<string>;
  readonly inputs: (body: Fields) => Fields;
}

const chat = { runType: 'llm', modelType: 'chat' } as const;
const response = {
  ...chat,
  name: 'openai.responses',
  inputKeys: new Set(['input', 'instructions', 'prompt']),
  inputs: responseInputs,
  reader: responseReader,
};
/** A model shortens a conversation; the answer has items and tokens as any. */
const compaction = { ...response, name: 'openai.responses.compact' };
const images = { runType: 'llm', modelType: 'llm', reader: imagesReader } as const;

/** Helpers of the SDK (`parse`, `stream`, `runTools`) come through these. */
const calls: readonly Call[] = [
  {
    ...chat,
    inputKeys: new Set(['messages', 'prediction']),
    inputs: ({ messages, prediction }) => ({ messages: recordedMessages(messages), prediction }),
    path: ['chat', 'completions', 'create'],
    name: 'openai.chat.completions',
    reader: choicesReader,
  },
  { ...response, path: ['responses', 'create'] },
  { ...response, path: ['beta', 'responses', 'create'] },
  { ...compaction, path: ['responses', 'compact'] },
  { ...compaction, path: ['beta', 'responses', 'compact'] },
  {
    ...ofInputs('prompt', 'suffix'),
    path: ['completions', 'create'],
    name: 'openai.completions',
    runType: 'llm',
    modelType: 'llm',
    reader: choicesReader,
  },
  {
    ...ofInputs('input'),
    path: ['embeddings', 'create'],
    name: 'openai.embeddings',
    runType: 'embedding',
    modelType: 'embedding',
    reader: embeddingsReader,
  },
  { ...images, ...ofInputs('prompt'), path: ['images', 'generate'], name: 'openai.images.generate' },
  {
    ...images,
    path: ['images', 'edit'],
    name: 'openai.images.edit',
    inputKeys: new Set(['prompt', 'image', 'mask']),
    inputs: ({ prompt, image, mask }) => ({ prompt, image: uploadOf(image), mask: uploadOf(mask) }),
  },
  {
    ...images,
    path: ['images', 'createVariation'],
    name: 'openai.images.createVariation',
    inputKeys: new Set(['image']),
    inputs: ({ image }) => ({ image: uploadOf(image) }),
  },
];

/** The methods that are traced of a client whose calls are answered by this provider. */
export function openaiMethods(provider: string): readonly TracedMethod[] {
  return calls.map((call) => ({ ...call, describe: (body) => description(call, provider, body) }));
}

/** Undefined for a response that is made in the background: what comes back is a receipt, and no answer, unless it streams. */
function description(
  { inputs, inputKeys, modelType }: Call,
  provider: string,
  body: unknown,
): CallDescription | undefined {
  if (!isFields(body)) return { inputs: {}, metadata: { ls_provider: provider, ls_model_type: modelType } };
  if (body.background === true && body.stream !== true) return undefined;
  return {
    inputs: inputs(body),
    metadata: {
      ls_provider: provider,
      ls_model_type: modelType,
      ls_model_name: textOf(body.model),
      ls_temperature: numberOf(body.temperature),
      ls_max_tokens: numberOf(body.max_completion_tokens ?? body.max_output_tokens ?? body.max_tokens),
      ls_stop: typeof body.stop === 'string' ? [body.stop] : (body.stop ?? undefined),
      ls_invocation_params: parametersOf(body, inputKeys),
    },
  };
}

function ofInputs(...keys: string[]): Pick<Call, 'inputKeys' | 'inputs'> {
  return { inputKeys: new Set(keys), inputs: (body) => pick(body, keys) };
}

/** `instructions` as a system message, then `input`: text as a message of the user, a list as it is. */
function responseInputs({ input, instructions, prompt }: Fields): Fields {
  const system = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : [];
  const asked = typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(recordedMessages(input));
  return { messages: [...system, ...asked], prompt };
}

/** Files and bytes are payloads; a stream or a response is the SDK's to read, and only named. */
function uploadOf(upload: unknown): unknown {
  if (Array.isArray(upload)) return upload.map(uploadOf);
  const isReadElsewhere = isFields(upload) && ('pipe' in upload || 'body' in upload || Symbol.asyncIterator in upload);
  return isReadElsewhere ? `[${upload.constructor?.name ?? 'Stream'}]` : upload;
}

/** Everything else of the body, but for the keys to other services in it. */
function parametersOf(body: Fields, inputKeys: ReadonlySet<string>): Fields {
  const parameters = without(body, inputKeys);
  if (!Array.isArray(parameters.tools)) return parameters;
  return { ...parameters, tools: parameters.tools.map(withoutKeys) };
}

const SECRETS_OF_SERVERS = new Set(['authorization', 'headers']);

function withoutKeys(tool: unknown): unknown {
  return fieldsOf(tool).type === 'mcp' ? without(fieldsOf(tool), SECRETS_OF_SERVERS) : tool;
}

function pick(body: Fields, keys: readonly string[]): Fields {
  return Object.fromEntries(keys.filter((key) => body[key] !== undefined).map((key) => [key, body[key]]));
}
