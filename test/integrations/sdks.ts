// The SDKs whose clients are wrapped, behind one interface, for tests that hold for each of them.
import Anthropic, { type ClientOptions } from '@anthropic-ai/sdk';
import type OpenAI from 'openai';
import type { WrapOptions } from '#src/index.ts';
import { unwrapAnthropic, wrapAnthropic } from '#src/integrations/anthropic/client.ts';
import { unwrapOpenAI, wrapOpenAI } from '#src/integrations/openai/client.ts';
import type { LocalModel } from '../support/local-model/server.js';
import { bareClient } from './local-openai.ts';

export interface Call extends Promise<unknown> {
  withResponse(): Promise<{ data: unknown; response: Response; request_id: string | null }>;
  asResponse(): Promise<Response>;
}

export interface Stream extends AsyncIterable<object> {
  readonly controller: AbortController;
  tee(): [AsyncIterable<object>, AsyncIterable<object>];
  toReadableStream(): ReadableStream;
}

/** The stream of a helper, for example `messages.stream`. */
export interface Helper extends AsyncIterable<object> {
  readonly controller: AbortController;
  abort(): void;
  done(): Promise<void>;
  on(event: string, listener: (...args: unknown[]) => void): Helper;
  once(event: string, listener: (...args: unknown[]) => void): Helper;
  toReadableStream(): ReadableStream;
}

export interface Client {
  withOptions(options: object): Client;
}

type CallClient<Result> = (client: Client, body?: object, options?: object) => Result;

export interface Sdk {
  readonly place: string;
  readonly expected: string;
  readonly runName: string;
  readonly provider: string;
  readonly resource: readonly string[];
  /** The methods of that resource that are replaced. */
  readonly methods: readonly string[];
  readonly textEvent: string;
  make(model: LocalModel, options?: ClientOptions): Client;
  wrap(client: Client, options?: WrapOptions): Client;
  unwrap(client: Client): Client;
  create: CallClient<Call>;
  parse: CallClient<Call>;
  stream: CallClient<Promise<Stream> & Call>;
  helper: CallClient<Helper>;
}

/** The values that a program has received, in order. */
export type Log = unknown[];
export interface Context {
  readonly client: Client;
  readonly sdk: Sdk;
  readonly log: Log;
  readonly model: LocalModel;
}
export type Program = (context: Context) => unknown;

const messages = [{ role: 'user', content: 'What is tea?' }];
const completionsOf = (client: unknown) => (client as OpenAI).chat.completions;
const messagesOf = (client: unknown) => (client as Anthropic).messages;
const openaiBody = (body: object = {}) => ({ model: 'small', messages, ...body }) as never;
const anthropicBody = (body: object = {}) => ({ model: 'small', max_tokens: 100, messages, ...body }) as never;

export const openai: Sdk = {
  place: 'wrapOpenAI',
  expected: 'a client of the openai package',
  runName: 'openai.chat.completions',
  provider: 'openai',
  resource: ['chat', 'completions'],
  methods: ['create', 'runTools'],
  textEvent: 'content',
  make: (model, options) => bareClient(model, options as object) as unknown as Client,
  wrap: wrapOpenAI as never,
  unwrap: unwrapOpenAI as never,
  create: (client, body, options) => completionsOf(client).create(openaiBody(body), options) as never,
  parse: (client, body, options) => completionsOf(client).parse(openaiBody(body), options) as never,
  stream: (client, body, options) =>
    completionsOf(client).create(openaiBody({ ...body, stream: true }), options) as never,
  helper: (client, body, options) => completionsOf(client).stream(openaiBody(body), options) as never,
};

export const anthropic: Sdk = {
  place: 'wrapAnthropic',
  expected: 'a client of @anthropic-ai/sdk',
  runName: 'anthropic.messages',
  provider: 'anthropic',
  resource: ['messages'],
  methods: ['create'],
  textEvent: 'text',
  make: (model, options) => makeClient(model, options) as unknown as Client,
  wrap: wrapAnthropic as never,
  unwrap: unwrapAnthropic as never,
  create: (client, body, options) => messagesOf(client).create(anthropicBody(body), options) as never,
  parse: (client, body, options) => messagesOf(client).parse(anthropicBody(body), options) as never,
  stream: (client, body, options) =>
    messagesOf(client).create(anthropicBody({ ...body, stream: true }), options) as never,
  helper: (client, body, options) => messagesOf(client).stream(anthropicBody(body), options) as never,
};

export const sdks: readonly (readonly [name: string, sdk: Sdk])[] = [
  ['openai', openai],
  ['@anthropic-ai/sdk', anthropic],
];

/** Returns a client of Anthropic that does not retry and does not log. */
export function makeClient({ url }: LocalModel, options: ClientOptions = {}): Anthropic {
  return new Anthropic({ apiKey: 'a-key', baseURL: url, maxRetries: 0, logLevel: 'off', ...options });
}

/** Returns the body of a request to Anthropic. */
export function ask(content: string, more: Partial<Anthropic.MessageCreateParamsNonStreaming> = {}) {
  return { model: 'small', max_tokens: 100, messages: [{ role: 'user' as const, content }], ...more };
}

export const WEATHER_TOOL: Anthropic.Tool = {
  name: 'weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } },
};
