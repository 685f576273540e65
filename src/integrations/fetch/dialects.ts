import { type Fields, fieldsOf, isFields, textOf } from '../../payload/fields.ts';
import { messageCall } from '../../services/anthropic/calls.ts';
import type { CallReader } from '../../services/call-reader.ts';
import { cohereChat, cohereEmbedding } from '../../services/cohere/calls.ts';
import { geminiEmbedding, geminiGeneration } from '../../services/gemini/calls.ts';
import { ollamaCalls } from '../../services/ollama/calls.ts';
import { audioCalls } from '../../services/openai/audio.ts';
import { openaiCalls } from '../../services/openai/calls.ts';
import { providerAt, serviceAt } from '../providers.ts';
import { isRequest, requestMethod, requestUrl } from './request.ts';

/** One kind of request to a model service. */
interface Dialect {
  /** Matches the URL path. If the request body names no model, the group `model` contains the model. */
  readonly path: RegExp;
  /** The last word of the URL path. */
  readonly ending: string;
  readonly reader: CallReader;
  /**
   * Required body fields if the host is unknown. `messages` must be a list. Requests to known model services are not
   * checked.
   */
  readonly required: readonly string[];
  /** The provider to record if the host is unknown. */
  readonly provider: string | undefined;
}

const DEPLOYMENT = '(?:/deployments/(?<model>[^/]+))?';
const MODEL = '/(?:models|tunedModels|endpoints)/(?<model>[^/:]+)';

/**
 * The first dialect that matches a request is used. Azure's paths contain a deployment, for example
 * `/deployments/small/completions`.
 */
const DIALECTS: readonly Dialect[] = [
  dialect(`${DEPLOYMENT}/chat/completions`, openaiCalls.chat, ['messages']),
  dialect('/agents/completions', openaiCalls.chat, ['messages']),
  dialect('/fim/completions', { ...openaiCalls.completion, name: 'mistral.fim' }, ['model', 'prompt']),
  dialect(`${DEPLOYMENT}/completions`, openaiCalls.completion, ['prompt']),
  dialect('/responses', openaiCalls.response, ['model', 'input']),
  dialect('/responses/compact', openaiCalls.compaction, ['model', 'input']),
  dialect('/api/chat', ollamaCalls.chat, ['model', 'messages'], 'ollama'),
  dialect('/api/generate', ollamaCalls.generate, ['model', 'prompt'], 'ollama'),
  dialect('/api/embed', ollamaCalls.embed, ['model', 'input'], 'ollama'),
  dialect('/api/embeddings', ollamaCalls.embeddings, ['model', 'prompt'], 'ollama'),
  dialect(`${DEPLOYMENT}/embeddings`, openaiCalls.embeddings, ['input']),
  dialect('/images/generations', openaiCalls.imageGeneration, ['prompt']),
  dialect('/images/edits', openaiCalls.imageEdit, ['prompt', 'image']),
  dialect('/images/variations', openaiCalls.imageVariation, ['image']),
  dialect('/audio/transcriptions', audioCalls.transcription, ['file']),
  dialect('/audio/translations', audioCalls.translation, ['file']),
  dialect('/audio/speech', audioCalls.speech, ['input', 'voice']),
  dialect('/v1/messages', messageCall, ['model', 'messages', 'max_tokens'], 'anthropic'),
  dialect(`${MODEL}:rawPredict`, messageCall, ['messages', 'max_tokens'], 'anthropic'),
  dialect(`${MODEL}:streamRawPredict`, messageCall, ['messages', 'max_tokens'], 'anthropic'),
  dialect('/v2/chat', cohereChat, ['model', 'messages'], 'cohere'),
  dialect('/v2/embed', cohereEmbedding, ['model', 'input_type'], 'cohere'),
  dialect(`${MODEL}:generateContent`, geminiGeneration, ['contents'], 'google_genai'),
  dialect(`${MODEL}:streamGenerateContent`, geminiGeneration, ['contents'], 'google_genai'),
  dialect(`${MODEL}:embedContent`, geminiEmbedding, ['content'], 'google_genai'),
  dialect(`${MODEL}:batchEmbedContents`, geminiEmbedding, ['requests'], 'google_genai'),
];

function dialect(path: string, reader: CallReader, required: readonly string[], provider?: string): Dialect {
  return { path: new RegExp(`${path}$`), ending: path.slice(endingAt(path, path.length)), reader, required, provider };
}

/** Returns the reader with a name, for example `openai.chat.completions`. */
export function readerNamed(name: string): CallReader | undefined {
  return DIALECTS.find(({ reader }) => reader.name === name)?.reader;
}

/** The last words of all matched paths, for example `completions` and `generateContent`. */
const ENDINGS: ReadonlySet<string> = new Set(DIALECTS.map(({ ending }) => ending));

/** Returns whether a request may match a dialect. This check must be fast, because it runs for every request. */
export function mayBeModelCall(input: unknown, init: unknown): boolean {
  if (init === undefined && !isRequest(input)) return false;
  try {
    if (requestMethod(input, init).toUpperCase() !== 'POST') return false;
    const url = requestUrl(input);
    const query = url.indexOf('?');
    const end = query < 0 ? url.length : query;
    return ENDINGS.has(url.slice(endingAt(url, end), end));
  } catch {
    return false;
  }
}

const BEDROCK_HOST = /^bedrock-runtime(-fips)?\./;
const BEDROCK_PATH = /^\/model\/[^/]+\/(invoke|converse)(-with-response-stream|-stream)?$/;

/**
 * Returns whether a POST request to `url` is a model call, which is decided without its body. At an unknown host, only
 * chat completions are a model call, because applications have paths such as `/api/chat` themselves.
 */
export function isModelAddress(url: URL): boolean {
  const { hostname, pathname } = url;
  if (BEDROCK_HOST.test(hostname)) return BEDROCK_PATH.test(pathname);
  if (!mayBeModelCall(url.href, POST) || !DIALECTS.some(({ path }) => path.test(pathname))) return false;
  return serviceAt(url) !== undefined || providerAt(url) === 'ollama' || pathname.endsWith('/chat/completions');
}

const POST = { method: 'POST' };

/** Returns the index of the last word in a path. The word follows a slash or a colon. */
function endingAt(path: string, end: number): number {
  return Math.max(path.lastIndexOf('/', end - 1), path.lastIndexOf(':', end - 1)) + 1;
}

/** If the body of the request cannot be read, `request` is undefined. */
interface Match {
  readonly reader: CallReader;
  readonly provider: string;
  readonly request: Fields | undefined;
}

/** Returns the dialect of a model call. Returns undefined for any other request. */
export function dialectOf(address: string, body: unknown): Match | undefined {
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  const { pathname } = url;
  const service = serviceAt(url);
  for (const { path, ending, reader, required, provider } of DIALECTS) {
    const match = pathname.endsWith(ending) ? path.exec(pathname) : null;
    if (match === null || (service === undefined && !hasFields(body, required))) continue;
    const model = textOf(fieldsOf(body).model) ?? (match.groups?.model && decodeURIComponent(match.groups.model));
    const streamed = ending.startsWith('stream') ? { stream: true } : {};
    return {
      reader,
      provider: service ?? provider ?? providerAt(url) ?? 'openai',
      request: isFields(body) ? { ...body, ...(model !== undefined && { model }), ...streamed } : undefined,
    };
  }
  return undefined;
}

function hasFields(body: unknown, required: readonly string[]): boolean {
  const fields = fieldsOf(body);
  return required.every((key) => (key === 'messages' ? Array.isArray(fields.messages) : fields[key] !== undefined));
}
