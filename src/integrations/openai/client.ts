import { providerAt } from '../providers.ts';
import { type Sdk, type TracedClientOptions, unwrapClient, wrapClient } from '../sdk-client.ts';
import { openaiCalls as calls } from './calls.ts';

/**
 * The part of a client that tracing requires. Clients from the `openai` package and from compatible packages meet this
 * requirement.
 */
export interface OpenAILike {
  readonly chat: { readonly completions: { create(...args: never[]): unknown } };
}

/**
 * The methods to trace. The SDK's helpers (`parse`, `stream`, `runTools`) call these methods, so they are traced too.
 */
export const openaiSdk: Sdk = {
  place: 'wrapOpenAI',
  client: 'a client of the openai package',
  requestIdHeader: 'x-request-id',
  providerOf,
  methods: {
    'chat.completions.create': calls.chat,
    'responses.create': calls.response,
    'beta.responses.create': calls.response,
    'responses.compact': calls.compaction,
    'beta.responses.compact': calls.compaction,
    'completions.create': calls.completion,
    'embeddings.create': calls.embeddings,
    'images.generate': calls.imageGeneration,
    'images.edit': calls.imageEdit,
    'images.createVariation': calls.imageVariation,
  },
};

/**
 * Traces the calls of an `openai` package client: chat completions, responses and their compaction, completions,
 * embeddings and images. Calls through helpers (`parse`, `stream`, `runTools`) are traced too. Each call becomes a run
 * below the current run. Changes the client in place and returns it. The client still returns the SDK's own promises
 * and streams. Clients created with `withOptions` are traced too. A second call changes nothing. To change the options,
 * call `unwrapOpenAI` first.
 *
 * If the value is not such a client, returns it unchanged and logs a warning.
 */
export function wrapOpenAI<Client extends OpenAILike>(client: Client, options?: TracedClientOptions): Client {
  return wrapClient(openaiSdk, client, options);
}

/** Restores a wrapped client's original methods and returns the client. Runs that are still open end normally. */
export function unwrapOpenAI<Client extends OpenAILike>(client: Client): Client {
  return unwrapClient(openaiSdk, client);
}

/** Determines the provider from the client's class or base URL. Returns `openai` for an unknown URL. */
function providerOf(client: object): string {
  if (client.constructor?.name === 'AzureOpenAI') return 'azure';
  const { baseURL } = client as { baseURL?: unknown };
  return (typeof baseURL === 'string' && URL.canParse(baseURL) && providerAt(new URL(baseURL))) || 'openai';
}
