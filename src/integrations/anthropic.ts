import { completionsMethod } from './anthropic-completions.ts';
import { messagesMethod } from './anthropic-messages.ts';
import type { TracedClientOptions } from './client-options.ts';
import { type Sdk, type TracedMethod, unwrapClient, wrapClient } from './sdk-client.ts';

/** What has to be there of a client of `@anthropic-ai/sdk`, or of its Bedrock and Vertex variants, of any version. */
export interface AnthropicLike {
  readonly messages: { create(...args: never[]): unknown };
}

/** What else asks a model (`stream`, `parse`, tool runners) calls these. */
const methods: readonly TracedMethod[] = [
  { ...messagesMethod, path: ['messages', 'create'] },
  { ...messagesMethod, path: ['beta', 'messages', 'create'] },
  { ...completionsMethod, path: ['completions', 'create'] },
];

const sdk: Sdk = {
  place: 'wrapAnthropic',
  client: 'a client of @anthropic-ai/sdk',
  requestIdHeader: 'request-id',
  methodsOf: () => methods,
};

/**
 * Traces a client of `@anthropic-ai/sdk`: each call of a model becomes an `llm` run below the run that is current, with
 * messages, parameters, the answer, whether streamed or not, and its tokens. It gives back the same client, with the
 * `create` of `messages`, of `beta.messages` and, in older versions, of `completions` replaced on it; promises, streams
 * and errors stay the objects they are. Clients made by its `withOptions` are traced too. To wrap a client again changes
 * nothing; with other options, `unwrapAnthropic` comes first.
 *
 * Anything but such a client is given back unchanged, with one line that says so.
 */
export function wrapAnthropic<Client extends AnthropicLike>(client: Client, options?: TracedClientOptions): Client {
  return wrapClient(sdk, client, options);
}

/** Undoes `wrapAnthropic` on this client; those that its `withOptions` has made stay as they are. */
export function unwrapAnthropic<Client extends AnthropicLike>(client: Client): Client {
  return unwrapClient(sdk, client);
}
