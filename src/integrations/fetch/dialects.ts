import { type Fields, fieldsOf, isFields, textOf } from '../../payload/fields.ts';
import { messageCall } from '../anthropic/calls.ts';
import type { CallReader } from '../call-reader.ts';
import { openaiCalls } from '../openai/calls.ts';
import { providerAt, serviceAt } from '../providers.ts';
import { audioCalls } from './audio.ts';
import { cohereCalls } from './cohere.ts';
import { geminiCalls } from './gemini.ts';
import { ollamaCalls } from './ollama.ts';
import { isRequest, requestMethod, requestUrl } from './request.ts';

/** A kind of request to a model service. */
interface Dialect {
  /** Matches the path of the URL. The group `model` contains the model if the request body does not name it. */
  readonly path: RegExp;
  readonly reader: CallReader;
  /** Whether a request to an unknown host has this format. Requests to known model services are not checked. */
  accepts(body: Fields): boolean;
  /** The provider if the host is unknown. */
  readonly provider?: string;
}

/** The first dialect that matches a request reads it. */
const DIALECTS: readonly Dialect[] = [
  // Azure's paths name the deployment: `/openai/deployments/small/chat/completions`.
  { path: /(?:\/deployments\/(?<model>[^/]+))?\/chat\/completions$/, reader: openaiCalls.chat, accepts: hasMessages },
  { path: /\/agents\/completions$/, reader: openaiCalls.chat, accepts: hasMessages },
  { path: /\/fim\/completions$/, reader: { ...openaiCalls.completion, name: 'mistral.fim' }, accepts: has('prompt') },
  { path: /(?:\/deployments\/(?<model>[^/]+))?\/completions$/, reader: openaiCalls.completion, accepts: has('prompt') },
  { path: /\/responses$/, reader: openaiCalls.response, accepts: has('input') },
  { path: /\/responses\/compact$/, reader: openaiCalls.compaction, accepts: has('input') },
  ...ollamaCalls.map((call) => ({ ...call, provider: 'ollama' })),
  { path: /(?:\/deployments\/(?<model>[^/]+))?\/embeddings$/, reader: openaiCalls.embeddings, accepts: has('input') },
  { path: /\/images\/generations$/, reader: openaiCalls.imageGeneration, accepts: has('prompt') },
  { path: /\/images\/edits$/, reader: openaiCalls.imageEdit, accepts: has('prompt') },
  { path: /\/images\/variations$/, reader: openaiCalls.imageVariation, accepts: has('image') },
  { path: /\/audio\/transcriptions$/, reader: audioCalls.transcription, accepts: has('file') },
  { path: /\/audio\/translations$/, reader: audioCalls.translation, accepts: has('file') },
  { path: /\/audio\/speech$/, reader: audioCalls.speech, accepts: has('voice') },
  {
    path: /\/v1\/messages$|\/models\/(?<model>[^/:]+):(?:r|streamR)awPredict$/,
    reader: messageCall,
    accepts: (body) => hasMessages(body) && 'max_tokens' in body,
    provider: 'anthropic',
  },
  ...cohereCalls.map((call) => ({ ...call, provider: 'cohere' })),
  ...geminiCalls.map((call) => ({ ...call, provider: 'google_genai' })),
];

/** The last segments of the paths above, or their part after a colon. */
const ENDINGS: ReadonlySet<string> = new Set([
  ...['completions', 'responses', 'compact', 'embeddings', 'generations', 'edits', 'variations'],
  ...['transcriptions', 'translations', 'speech', 'messages', 'rawPredict', 'streamRawPredict'],
  ...['chat', 'generate', 'embed'],
  ...['generateContent', 'streamGenerateContent', 'embedContent', 'batchEmbedContents'],
]);

/** Whether a dialect may match a request. This check is fast, because it runs for every request of the process. */
export function mayBeModelCall(input: unknown, init: unknown): boolean {
  if (init === undefined && !isRequest(input)) return false;
  try {
    if (requestMethod(input, init).toUpperCase() !== 'POST') return false;
    const url = requestUrl(input);
    const query = url.indexOf('?');
    const end = query < 0 ? url.length : query;
    const start = Math.max(url.lastIndexOf('/', end - 1), url.lastIndexOf(':', end - 1)) + 1;
    return ENDINGS.has(url.slice(start, end));
  } catch {
    return false;
  }
}

/** The dialect of a request. `request` is undefined if the body cannot be read. */
interface Match {
  readonly reader: CallReader;
  readonly provider: string;
  readonly request: Fields | undefined;
}

/** Returns the dialect of a request, or undefined if the request is not a model call. */
export function dialectOf(url: URL, body: unknown): Match | undefined {
  const service = serviceAt(url);
  for (const { path, reader, accepts, provider } of DIALECTS) {
    const match = path.exec(url.pathname);
    if (match === null || (service === undefined && !accepts(fieldsOf(body)))) continue;
    const model = textOf(fieldsOf(body).model) ?? (match.groups?.model && decodeURIComponent(match.groups.model));
    return {
      reader,
      provider: service ?? provider ?? providerAt(url) ?? 'openai',
      request: isFields(body) ? { ...body, ...(model !== undefined && { model }) } : undefined,
    };
  }
  return undefined;
}

function has(key: string): (body: Fields) => boolean {
  return (body) => body[key] !== undefined;
}

function hasMessages({ messages }: Fields): boolean {
  return Array.isArray(messages);
}
