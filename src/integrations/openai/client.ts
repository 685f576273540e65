import { providerAt } from '../providers.ts';
import { type Sdk, type TracedClientOptions, unwrapClient, wrapClient } from '../sdk-client.ts';
import { openaiCalls as calls } from './calls.ts';

/**
 * The part of a client that is required for tracing. Clients of the `openai` package and of compatible packages have
 * it.
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
 * Traces the calls of a client of the `openai` package: chat completions, responses and their compaction, completions,
 * embeddings and images. Calls through helpers (`parse`, `stream`, `runTools`) are traced too. Each call becomes a run
 * below the current run. The client is changed in place and returned. The client still returns the SDK's own promises
 * and streams. Clients created with `withOptions` are traced too. A second call changes nothing. To change the options,
 * call `unwrapOpenAI` first.
 *
 * A value that is not such a client is returned unchanged, and a warning is logged.
 */
export function wrapOpenAI<Client extends OpenAILike>(client: Client, options?: TracedClientOptions): Client {
  return wrapClient(openaiSdk, client, options);
}

/**
 * Restores the original methods of a wrapped client and returns the client. A run that is still open ends normally
 * afterwards.
 */
export function unwrapOpenAI<Client extends OpenAILike>(client: Client): Client {
  return unwrapClient(openaiSdk, client);
}

/** Determines the provider from the client's class, or else from its base URL. Returns `openai` for an unknown URL. */
function providerOf(client: object): string {
  if (client.constructor?.name === 'AzureOpenAI') return 'azure';
  const { baseURL } = client as { baseURL?: unknown };
  return (typeof baseURL === 'string' && URL.canParse(baseURL) && providerAt(new URL(baseURL))) || 'openai';
}
