import type { TracedClientOptions } from './client-options.ts';
import { openaiMethods } from './openai-calls.ts';
import { providerOf } from './openai-provider.ts';
import { type Sdk, unwrapClient, wrapClient } from './sdk-client.ts';

/** What a client has to have: that of the `openai` package has it, and clients of compatible services. */
export interface OpenAILike {
  readonly chat: { readonly completions: { create(...args: never[]): unknown } };
}

const sdk: Sdk = {
  place: 'wrapOpenAI',
  client: 'a client of the openai package',
  requestIdHeader: 'x-request-id',
  methodsOf: (client) => openaiMethods(providerOf(client)),
};

/**
 * Traces the calls of a client of the `openai` package: chat completions, responses and their compaction, completions, embeddings and images,
 * also through its helpers (`parse`, `stream`, `runTools`). Each call becomes a run below the current one. The client is
 * changed in place and given back; what it returns are the SDK's own promises and streams. Clients that `withOptions` derives
 * are traced too. Again it changes nothing; with other options, `unwrapOpenAI` comes first.
 *
 * Anything that is no such client is given back unchanged, with one line that says so.
 */
export function wrapOpenAI<Client extends OpenAILike>(client: Client, options?: TracedClientOptions): Client {
  return wrapClient(sdk, client, options);
}

/** Puts the methods of a wrapped client back as they were, and gives the client back. Runs under way are not affected. */
export function unwrapOpenAI<Client extends OpenAILike>(client: Client): Client {
  return unwrapClient(sdk, client);
}
