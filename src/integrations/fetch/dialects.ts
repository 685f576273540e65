import { defined, type Fields, fieldsOf, isFields, textOf, without } from '../../payload/fields.ts';
import { messageCall } from '../../services/anthropic/calls.ts';
import type { CallReader } from '../../services/call-reader.ts';
import { cohereChat, cohereEmbedding, cohereRerank } from '../../services/cohere/calls.ts';
import { geminiEmbedding, geminiGeneration } from '../../services/gemini/calls.ts';
import { geminiInteraction } from '../../services/gemini/interactions.ts';
import { mistralConversation, mistralOcr } from '../../services/mistral/calls.ts';
import { ollamaCalls } from '../../services/ollama/calls.ts';
import { audioCalls } from '../../services/openai/audio.ts';
import { openaiCalls } from '../../services/openai/calls.ts';
import { providerAt, serviceAt } from '../providers.ts';
import { isRequest, requestMethod, requestUrl } from './request.ts';

/** One kind of request to a model service. */
interface Dialect {
  /**
   * Matches the URL path. The group `model` contains the model if the request body names none, and the group `conversation`
   * the id of the conversation.
   */
  readonly path: RegExp;
  /** The last word of the URL path. Empty if it is an id. */
  readonly ending: string;
  readonly reader: CallReader;
  /**
   * Required body fields if the host is unknown, or if its service may use the path for something else. `messages` must be
   * a list. Other requests to known model services are not checked.
   */
  readonly required: readonly string[];
  /** The provider to record if the host is unknown. */
  readonly provider: string | undefined;
}

const DEPLOYMENT = '(?:/deployments/(?<model>[^/]+))?';
const CONVERSATION = '/v1/conversations/(?<conversation>[\\w-]+)(?:/restart|)';
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
  dialect('/v2/rerank', cohereRerank, ['model', 'query', 'documents'], 'cohere'),
  dialect('/v1/conversations', mistralConversation, ['inputs', 'stream'], 'mistralai'),
  dialect(CONVERSATION, mistralConversation, ['inputs', 'stream'], 'mistralai'),
  dialect('/v1/ocr', mistralOcr, ['model', 'document'], 'mistralai'),
  dialect(`${MODEL}:generateContent`, geminiGeneration, ['contents'], 'google_genai'),
  dialect(`${MODEL}:streamGenerateContent`, geminiGeneration, ['contents'], 'google_genai'),
  dialect(`${MODEL}:embedContent`, geminiEmbedding, ['content'], 'google_genai'),
  dialect(`${MODEL}:batchEmbedContents`, geminiEmbedding, ['requests'], 'google_genai'),
  dialect('/interactions', geminiInteraction, ['model', 'input'], 'google_genai'),
];

function dialect(path: string, reader: CallReader, required: readonly string[], provider?: string): Dialect {
  const ending = path.endsWith(')') ? '' : path.slice(endingAt(path, path.length));
  return { path: new RegExp(`${path}$`), ending, reader, required, provider };
}

/** Returns the reader with a name, for example `openai.chat.completions`. */
export function readerNamed(name: string): CallReader | undefined {
  return DIALECTS.find(({ reader }) => reader.name === name)?.reader;
}

/** The last words of all matched paths, for example `completions` and `generateContent`. */
const ENDINGS: ReadonlySet<string> = new Set(DIALECTS.map(({ ending }) => ending).filter((ending) => ending !== ''));

/** Returns the address of a POST request. This must be fast, because it runs for every request. */
export function postAddress(input: unknown, init: unknown): string | undefined {
  if (init === undefined && !isRequest(input)) return undefined;
  try {
    return requestMethod(input, init).toUpperCase() === 'POST' ? requestUrl(input) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns whether a POST request may match a dialect. This check must be fast, because it runs for every POST request. */
export function mayBeModelCall(address: string): boolean {
  const [query, hash] = [address.indexOf('?'), address.indexOf('#')];
  const end = query >= 0 ? query : hash >= 0 ? hash : address.length;
  return ENDINGS.has(address.slice(endingAt(address, end), end)) || address.includes('/v1/conversations/');
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
  const found = mayBeModelCall(url.href) ? DIALECTS.find(({ path }) => path.test(pathname)) : undefined;
  if (found === undefined) return false;
  return isOf(serviceAt(url), found.provider) || providerAt(url) === 'ollama' || pathname.endsWith('/chat/completions');
}

/** Returns the index of the last word in a path. The word follows a slash or a colon. */
function endingAt(path: string, end: number): number {
  return Math.max(path.lastIndexOf('/', end - 1), path.lastIndexOf(':', end - 1)) + 1;
}

/** Returns the dialect of a model call, and its request unless the body cannot be read. Undefined for other requests. */
export function dialectOf(
  address: string,
  body: unknown,
): { readonly reader: CallReader; readonly provider: string; readonly request: Fields | undefined } | undefined {
  const found = matchOf(address, body);
  if (found === undefined) return undefined;
  const { url, dialect, groups } = found;
  const { reader, provider, ending } = dialect;
  const { model: named, conversation } = groups;
  const model = textOf(fieldsOf(body).model) || (named && decodeURIComponent(named));
  const streamed = ending.startsWith('stream') ? { stream: true } : {};
  return {
    reader,
    provider: serviceAt(url) ?? provider ?? providerAt(url) ?? 'openai',
    request: isFields(body) ? { ...body, ...defined({ model, conversation }), ...streamed } : undefined,
  };
}

/**
 * Returns what to send for a request as `dialectOf` has returned it: what the path names is in the path, and not in the
 * body. Undefined if the address is not that of a model call.
 */
export function sendable(
  address: string,
  request: Fields,
): { readonly url: string; readonly body: Fields } | undefined {
  const found = matchOf(address, request);
  if (found === undefined) return undefined;
  const { url, dialect, groups } = found;
  const inPath = Object.entries(groups).flatMap(([name, value]) => (value === undefined ? [] : name));
  // An earlier part of the path may be equal to the model. In the match, the model follows a word such as `/deployments/`.
  if (groups.model !== undefined)
    url.pathname = url.pathname.replace(dialect.path, (matched) =>
      matched.replace(`s/${groups.model}`, () => `s/${encodeURIComponent(`${request.model}`.toWellFormed())}`),
    );
  const isStream = dialect.ending.startsWith('stream');
  return { url: url.href, body: without(request, new Set([...inPath, ...(isStream ? ['stream'] : [])])) };
}

interface Match {
  readonly url: URL;
  readonly dialect: Dialect;
  /** What the path names. */
  readonly groups: Readonly<Partial<Record<'model' | 'conversation', string>>>;
}

function matchOf(address: string, body: unknown): Match | undefined {
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  const { pathname } = url;
  const service = serviceAt(url);
  for (const dialect of DIALECTS) {
    const match = pathname.endsWith(dialect.ending) ? dialect.path.exec(pathname) : null;
    if (match !== null && (isOf(service, dialect.provider) || hasFields(body, dialect.required)))
      return { url, dialect, groups: { ...match.groups } };
  }
  return undefined;
}

/** Whether a request to a known service is in the format of `provider`. OpenAI and Mistral have paths in common. */
function isOf(service: string | undefined, provider: string | undefined): boolean {
  if (service === undefined || provider === undefined) return service !== undefined;
  return provider === 'mistralai' ? service === provider : service !== 'openai';
}

function hasFields(body: unknown, required: readonly string[]): boolean {
  const fields = fieldsOf(body);
  return required.every((key) => (key === 'messages' ? Array.isArray(fields.messages) : fields[key] !== undefined));
}
