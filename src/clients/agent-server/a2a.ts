import * as v from 'valibot';
import { isObject } from '../../config/checker.ts';
import type { BodySchema } from '../body.ts';
import type { CallOptions } from '../client-options.ts';
import { endpoints, methodsOf, type Send } from '../endpoint.ts';
import { listSchema, RECORD } from '../schema.ts';
import type { RunStream, StreamOptions } from './streams/run-stream.ts';

/** A part of a message, for example `{ kind: 'text', text: 'How is the weather?' }`. */
export interface A2APart {
  readonly kind: 'text' | 'file' | 'data' | (string & {});
  readonly text?: string;
  readonly [field: string]: unknown;
}

/** A message to an assistant. */
export interface A2AMessage {
  parts: readonly A2APart[];
  /** Id of the thread to continue. @default a new thread */
  contextId?: string;
  /** Id of the task that the message belongs to. */
  taskId?: string;
  /** @default a random UUID */
  messageId?: string;
  /** @default 'user' */
  role?: 'user' | 'agent';
  readonly [field: string]: unknown;
}

/** The parameters of `message/send` and `message/stream`. */
export interface A2ARequest {
  message: A2AMessage;
  configuration?: Readonly<Record<string, unknown>>;
  metadata?: Readonly<Record<string, unknown>>;
}

/** A task with its status and artifacts, or a message. A stream also contains changes of the status and artifacts. */
export interface A2AResult {
  readonly kind: 'task' | 'message' | 'status-update' | 'artifact-update' | (string & {});
  /** Id of the thread. */
  readonly contextId?: string;
  readonly [field: string]: unknown;
}

/** The results of a message, read on demand and only once. Close a stream that you do not read. */
export interface A2AStream extends AsyncIterable<A2AResult>, AsyncDisposable {
  /** Closes the connection and ends the iteration. */
  close(): Promise<void>;
}

/** Describes an assistant to other agents. */
export interface AgentCard {
  readonly name: string;
  readonly description: string;
  /** URL that receives the messages. */
  readonly url: string;
  readonly [field: string]: unknown;
}

/**
 * Calls of the Agent2Agent protocol, version 0.3, over JSON-RPC. `assistantId` is the id of an assistant. The retry rules
 * are the same as for `AgentRuns`. Inside a traced function, messages are recorded as child runs.
 */
export interface A2A {
  /**
   * Sends a message and returns the response. The timeouts are the same as for `runs.wait`. Rejects with a
   * RunFailedError if the response is an error of JSON-RPC.
   */
  send(assistantId: string, request: A2ARequest, options?: CallOptions): Promise<A2AResult>;
  /**
   * Sends a message and returns its results as they arrive. Leaving the loop closes the connection. If the connection
   * breaks, the loop throws a StreamError.
   */
  stream(assistantId: string, request: A2ARequest, options?: Omit<StreamOptions, 'lastEventId'>): Promise<A2AStream>;
  /** Returns the assistant's agent card. */
  card(assistantId: string, options?: CallOptions): Promise<AgentCard>;
}

/** The calls as the server answers them. */
interface Replies extends Omit<A2A, 'stream'> {
  stream(...args: Parameters<A2A['stream']>): Promise<RunStream>;
}

const ENDPOINTS = endpoints<Replies>('a2a', {
  send: ['POST /a2a/{assistant_id}', { body: bodyOf('message/send'), response: 'reply', makesRun: true }],
  stream: ['POST /a2a/{assistant_id}', { body: bodyOf('message/stream'), response: 'events', makesRun: true }],
  card: ['GET /.well-known/agent-card.json?assistant_id={assistant_id}'],
});

export function a2aOf(send: Send): A2A {
  const calls = methodsOf(ENDPOINTS, send);
  return { ...calls, stream: async (...args) => resultsOf(await calls.stream(...args)) };
}

/** Returns a schema that validates the parameters of a method and returns its JSON-RPC request. */
function bodyOf(method: string): BodySchema {
  return v.pipe(
    RECORD as v.GenericSchema,
    v.looseObject({ message: v.pipe(RECORD, v.looseObject({ parts: listSchema(RECORD, 1) })) }),
    v.transform(({ message: given, ...others }) => {
      const message = { kind: 'message', role: 'user', messageId: crypto.randomUUID(), ...given };
      return { jsonrpc: '2.0', id: 1, method, params: { ...others, message } };
    }),
  );
}

function resultsOf(stream: RunStream): A2AStream {
  const close = (): Promise<void> => stream.close();
  return {
    close,
    [Symbol.asyncDispose]: close,
    async *[Symbol.asyncIterator]() {
      // After an event with an error, the stream throws it at its end.
      for await (const { data } of stream) if (isObject(data) && isObject(data.result)) yield data.result as A2AResult;
    },
  };
}
