// What every seam checks of a run that is recorded of an exchange.
import { expect, vi } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { messagesOfInputs, messagesOfOutputs } from '#src/services/conversation.ts';
import type { Message, Part } from '#src/services/message.ts';
import { events, json, lines, serveWire, type WireResponse } from '../integrations/wire-server.ts';
import type { Exchange } from './exchange.ts';

/** The lines of messages: the role, and one part. */
export const linesOf = (messages: readonly Message[] | undefined): string[] =>
  (messages ?? []).flatMap(({ role, name, parts }) =>
    parts.map((part) => `${role}${name ? ` ${name}` : ''}: ${print(part)}`),
  );

function print(part: Part): string {
  const id = 'id' in part && part.id !== undefined ? `#${part.id}` : '';
  switch (part.kind) {
    case 'call':
      return `calls ${part.name}(${JSON.stringify(part.input)})${id}`;
    case 'result':
      return `${part.isError ? 'failed' : 'returned'} ${JSON.stringify(part.value)}${id}`;
    case 'media': {
      const [, type = part.type, data = part.source] = /^data:([^;]+);base64,(.*)$/.exec(part.source) ?? [];
      return `media ${type} ${data.slice(0, 8)}`;
    }
    case 'other':
      return `other ${JSON.stringify(part.value)}`;
    default:
      return part.kind === 'text' ? part.text : `${part.kind} ${part.text}`;
  }
}

export function wireOf({ response, events: streamed = [], isLines }: Exchange, isStreamed: boolean): WireResponse {
  if (response instanceof Uint8Array) return { type: 'audio/mpeg', parts: [response] };
  if (typeof response === 'string') return { type: 'text/plain', parts: [response] };
  if (!isStreamed) return json(response);
  return isLines ? lines(...streamed) : events(...streamed);
}

/**
 * Sends requests to every address to a local server, which sends the response of an exchange. Returns the bodies of the
 * requests.
 */
export async function serve(
  exchange: Exchange,
  isStreamed: boolean,
  end: { staysOpen?: true; last?: string | undefined } = {},
) {
  const { fetch: original } = globalThis;
  const { parts, ...wire } = wireOf(exchange, isStreamed);
  const { last, ...more } = end;
  const server = await serveWire({ ...wire, ...more, parts: last ? [...parts, last] : parts });
  const bodies: unknown[] = [];
  vi.stubGlobal('fetch', (input: string | URL | Request, init?: RequestInit) => {
    bodies.push(init?.body);
    const local = server + new URL(input instanceof Request ? input.url : input).pathname;
    return input instanceof Request ? original(new Request(local, input)) : original(local, init);
  });
  return bodies;
}

export function expectRun(run: RunRecord | undefined, exchange: Exchange, isStreamed: boolean): void {
  const { name, provider, runType = 'llm', usage, error, metadata, inputs, streamed, isSilent } = exchange;
  const given = run?.extra?.metadata ?? {};
  expect(run).toMatchObject({ name, run_type: runType, end_time: expect.any(String), ...(inputs && { inputs }) });
  expect(run?.error).toBe(error);
  expect(given).toMatchObject({ ls_provider: provider, request_id: 'req_1', ...metadata });
  const { ls_invocation_params: parameters } = (metadata ?? {}) as { ls_invocation_params?: object };
  if (parameters) expect({ ...(given.ls_invocation_params as object), stream: undefined }).toEqual(parameters);
  expect(given.usage_metadata).toEqual(usage);
  expect(given).not.toHaveProperty('unreadable');
  const { outputs = exchange.response } = exchange;
  expect(run?.outputs).toEqual({
    ...(outputs as object),
    ...(isStreamed && streamed),
    ...(usage && { usage_metadata: usage }),
  });
  if (exchange.asked) expect(linesOf(messagesOfInputs(run?.inputs))).toEqual(exchange.asked);
  if (exchange.said) expect(linesOf(messagesOfOutputs(run?.outputs))).toEqual(exchange.said);
  expect(run?.events?.map((event) => event.name)).toEqual(isStreamed && !isSilent ? ['new_token'] : undefined);
  expect(JSON.stringify(run)).not.toMatch(/a-secret/);
}
