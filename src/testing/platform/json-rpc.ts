import { randomUUID } from 'node:crypto';
import { version } from '../../base/version.ts';
import { exactJson, type Fields, fieldsOf, isFields, listOf, numberOf } from '../../payload/fields.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import type { RouteResponse } from '../../receiver/http/route.ts';

type Outcome = { readonly result: unknown } | { readonly error: { readonly code: number; readonly message: string } };

/** What a server answers, by method. */
export type Methods = Readonly<Record<string, (params: Fields) => Outcome>>;

/** Versions of the Model Context Protocol with an `initialize` request, latest first. */
const MCP_VERSIONS: readonly unknown[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

/** The Model Context Protocol, as a server without tools. */
export const MCP: Methods = {
  initialize: ({ protocolVersion: wanted }) => {
    const protocolVersion = MCP_VERSIONS.includes(wanted) ? wanted : MCP_VERSIONS[0];
    return { result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'platform', version } } };
  },
  ping: () => ({ result: {} }),
  'tools/list': () => ({ result: { tools: [] } }),
  'tools/call': ({ name }) => failed(-32602, `Unknown tool: ${name}`),
};

/** The Agent2Agent protocol, as an agent that repeats each message. */
export const A2A: Methods = { 'message/send': repeat, 'message/stream': repeat };

function repeat({ message }: Fields): Outcome {
  if (listOf(fieldsOf(message).parts).length === 0) return failed(-32602, 'Expected `message` to have `parts`');
  return { result: { ...fieldsOf(message), role: 'agent', messageId: randomUUID() } };
}

function failed(code: number, message: string): Outcome {
  return { error: { code, message } };
}

/** Returns the response to a request of JSON-RPC 2.0. Section 5.1 of the specification lists the errors. */
export function rpcResponse(methods: Methods, request: unknown): RouteResponse {
  const { jsonrpc, id, method, params = {} } = fieldsOf(request);
  const hasId = typeof id === 'string' || numberOf(id) !== undefined;
  if (jsonrpc !== '2.0' || typeof method !== 'string' || !isFields(params) || !(hasId || id === undefined))
    return { status: 400, body: reply(hasId ? id : null, failed(-32600, 'Invalid Request')) };
  // A notification has no id and gets no reply.
  if (!hasId) return { status: 202 };
  const answer = Object.hasOwn(methods, method) ? methods[method]?.(params) : undefined;
  const body = reply(id, answer ?? failed(-32601, `Method not found: ${method}`));
  if (method !== 'message/stream') return { status: 200, body };
  return { status: 200, headers: { 'content-type': 'text/event-stream' }, content: `data: ${exactJson(body)}\n\n` };
}

/** Returns the response to a body that is not JSON. Throws other errors. */
export function parseError(error: unknown): RouteResponse {
  if (!(error instanceof HttpError) || error.status !== 400) throw error;
  return { status: 400, body: reply(null, failed(-32700, error.message)) };
}

function reply(id: unknown, outcome: Outcome): Fields {
  return { jsonrpc: '2.0', id, ...outcome };
}
