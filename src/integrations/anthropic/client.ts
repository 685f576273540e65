import { type Sdk, type TracedClientOptions, unwrapClient, wrapClient } from '../sdk-client.ts';
import { messageCall } from './calls.ts';

/** The required part of an `@anthropic-ai/sdk` client in any version, including its Bedrock and Vertex variants. */
export interface AnthropicLike {
  readonly messages: { create(...args: never[]): unknown };
}

/**
 * The methods to trace. The SDK's helpers (`stream`, `parse`, tool runners) call these methods, so they are traced too.
 */
const sdk: Sdk = {
  place: 'wrapAnthropic',
  client: 'a client of @anthropic-ai/sdk',
  requestIdHeader: 'request-id',
  providerOf: () => 'anthropic',
  methods: { 'messages.create': messageCall, 'beta.messages.create': messageCall },
};

/**
 * Traces the calls of an `@anthropic-ai/sdk` client. Each model call becomes an `llm` run below the current run, with
 * messages, parameters, the answer and its tokens. Streamed answers are recorded too. Changes the client in place and
 * returns it: `create` of `messages` and `beta.messages` is replaced. The client still returns the SDK's own promises,
 * streams and errors. Clients created with `withOptions` are traced too. A second call changes nothing. To change the
 * options, call `unwrapAnthropic` first.
 *
 * If the value is not such a client, returns it unchanged and logs a warning.
 */
export function wrapAnthropic<Client extends AnthropicLike>(client: Client, options?: TracedClientOptions): Client {
  return wrapClient(sdk, client, options);
}

/** Restores a client's original methods. Clients that its `withOptions` created stay traced. */
export function unwrapAnthropic<Client extends AnthropicLike>(client: Client): Client {
  return unwrapClient(sdk, client);
}
