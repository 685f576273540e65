import type { WrapOptions } from '../../run/run-options.ts';
import { messageCall } from '../../services/anthropic/calls.ts';
import { type Sdk, unwrapClient, wrapClient } from '../sdk-client.ts';
import { tracedToolRunner } from '../tool-runners.ts';

/** The part of an `@anthropic-ai/sdk` client that tracing requires. Bedrock and Vertex clients also work. */
export interface AnthropicLike {
  readonly messages: { create(...args: never[]): unknown };
}

/** The methods to trace. SDK helpers such as `stream` and `parse` call these methods. */
const sdk: Sdk = {
  place: 'wrapAnthropic',
  client: 'a client of @anthropic-ai/sdk',
  requestIdHeader: 'request-id',
  providerOf: () => 'anthropic',
  methods: {
    'messages.create': messageCall,
    'beta.messages.create': messageCall,
    'beta.messages.toolRunner': tracedToolRunner,
  },
};

/**
 * Traces an `@anthropic-ai/sdk` client in place and returns it. Each model call becomes an `llm` run below the current
 * run. The run contains the messages, parameters, answer and token counts. Streamed answers are also recorded. Each tool
 * runner becomes a run with its model calls and tools below it. The client still returns the SDK's own promises, streams
 * and errors. Clients created with `withOptions` are also traced. Wrapping a client again has no effect. To change the
 * options, call `unwrapAnthropic` first.
 *
 * If the value is not such a client, `wrapAnthropic` logs a warning and returns the value unchanged.
 */
export function wrapAnthropic<Client extends AnthropicLike>(client: Client, options?: WrapOptions): Client {
  return wrapClient(sdk, client, options);
}

/** Restores the methods of a client and returns the client. Clients created with its `withOptions` stay traced. */
export function unwrapAnthropic<Client extends AnthropicLike>(client: Client): Client {
  return unwrapClient(sdk, client);
}
