import type { WrapOptions } from '../../run/run-options.ts';
import { audioCalls } from '../../services/openai/audio.ts';
import { openaiCalls as calls } from '../../services/openai/calls.ts';
import { providerAt } from '../providers.ts';
import { type Sdk, unwrapClient, wrapClient } from '../sdk-client.ts';
import { tracedRunTools } from '../tool-runners.ts';

/** The part of a client that tracing requires. Clients from compatible packages also work. */
export interface OpenAILike {
  readonly chat: { readonly completions: { create(...args: never[]): unknown } };
}

/** The methods to trace. SDK helpers such as `parse` and `stream` call these methods. */
export const openaiSdk: Sdk = {
  place: 'wrapOpenAI',
  client: 'a client of the openai package',
  requestIdHeader: 'x-request-id',
  providerOf,
  methods: {
    'chat.completions.create': calls.chat,
    'chat.completions.runTools': tracedRunTools,
    'responses.create': calls.response,
    'beta.responses.create': calls.response,
    'responses.compact': calls.compaction,
    'beta.responses.compact': calls.compaction,
    'completions.create': calls.completion,
    'embeddings.create': calls.embeddings,
    'images.generate': calls.imageGeneration,
    'images.edit': calls.imageEdit,
    'images.createVariation': calls.imageVariation,
    'audio.transcriptions.create': audioCalls.transcription,
    'audio.translations.create': audioCalls.translation,
    'audio.speech.create': audioCalls.speech,
  },
};

/**
 * Traces a client of the `openai` package in place and returns it. Chat completions, responses, response compaction,
 * completions, embeddings, images and audio are traced. Calls through `parse` and `stream` are also traced. Each call
 * becomes a run below the current run. Each call of `runTools` becomes a run with its model calls and tools below it.
 * The client still returns the SDK's own promises and streams. Clients created with `withOptions` are also traced.
 * Wrapping a client again has no effect. To change the options, call `unwrapOpenAI` first.
 *
 * If the value is not such a client, `wrapOpenAI` logs a warning and returns the value unchanged.
 */
export function wrapOpenAI<Client extends OpenAILike>(client: Client, options?: WrapOptions): Client {
  return wrapClient(openaiSdk, client, options);
}

/** Restores the original methods of a wrapped client and returns the client. Open runs still end normally. */
export function unwrapOpenAI<Client extends OpenAILike>(client: Client): Client {
  return unwrapClient(openaiSdk, client);
}

/** Determines the provider from the client's class or base URL. If the URL is unknown, returns `openai`. */
function providerOf(client: object): string {
  if (client.constructor?.name === 'AzureOpenAI') return 'azure';
  const { baseURL } = client as { baseURL?: unknown };
  return (typeof baseURL === 'string' && URL.canParse(baseURL) && providerAt(new URL(baseURL))) || 'openai';
}
