import { connect } from 'node:net';
import { request } from 'undici';
import { expect, onTestFinished } from 'vitest';
import { Access } from '#src/receiver/http/access/access.ts';
import { TokenSigner } from '#src/receiver/http/access/token-signer.ts';
import type { RoutesOptions } from '#src/receiver/http/routes.ts';
import { Faults } from '#src/receiver/http/server/faults.ts';
import { startServer } from '#src/receiver/receiver.ts';
import type { Receiver, Store } from '#src/receiver.ts';

export { startReceiver as start } from '../support/receiver.ts';

export const BOUNDARY = 'runspan-test-boundary';
export const ROOT = '0193b3a0-1111-7000-8000-000000000001';
export const CHILD = '0193b3a0-2222-7000-8000-000000000002';
export const ROOT_ORDER = `20261120T072240123456Z${ROOT}`;
export const CHILD_ORDER = `${ROOT_ORDER}.20261120T072240123460Z${CHILD}`;
export const START = '2026-11-20T07:22:40.123456Z';
export const END = '2026-11-20T07:22:41.000001Z';

/** Returns the main part of a root run, as the interface defines it. */
export function makeRun(fields: Record<string, unknown> = {}): Record<string, unknown> {
  const run = { id: ROOT, trace_id: ROOT, dotted_order: ROOT_ORDER, name: 'answer', run_type: 'chain' };
  return { ...run, start_time: START, session_name: 'default', ...fields };
}

export function makeChild(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return makeRun({
    id: CHILD,
    dotted_order: CHILD_ORDER,
    parent_run_id: ROOT,
    name: 'call',
    run_type: 'llm',
    ...fields,
  });
}

/** Returns the bytes of one part. `headers` replaces the headers of a JSON part. */
export function part(name: string, value: unknown, headers?: string[]): Buffer {
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value));
  const lines = headers ?? ['Content-Type: application/json', `Content-Length: ${bytes.length}`];
  const head = [`--${BOUNDARY}`, `Content-Disposition: form-data; name="${name}"`, ...lines, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head), bytes, Buffer.from('\r\n')]);
}

export function multipart(...parts: Buffer[]): Buffer {
  return Buffer.concat([...parts, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}

export async function startWithin(
  store: Store,
  limits: Parameters<typeof startServer>[3],
  options: Partial<RoutesOptions> = {},
): ReturnType<typeof startServer> {
  const access = new Access({ host: '127.0.0.1' }, new TokenSigner(store));
  const parts = { store, strict: false, faults: new Faults(), access, ...options };
  const server = await startServer(parts, '127.0.0.1', 0, limits);
  onTestFinished(() => server.close());
  return server;
}

export const refusal = (status: number, detail: string) => ({
  status,
  body: { detail: expect.stringContaining(detail) },
});

export const issueAt = (...loc: unknown[]) => ({ status: 422, body: { detail: [{ loc }] } });

export interface Reply {
  status: number;
  // Typed loosely, so that tests can read all bodies without casts.
  body: { detail?: string & { loc: unknown[]; msg: string; type: string }[]; [key: string]: unknown };
  headers: Record<string, unknown>;
}

export async function call(
  url: string,
  method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'OPTIONS' | 'HEAD',
  body?: Buffer | string,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const reply = await request(url, { method, body: body ?? null, headers });
  const text = await reply.body.text();
  return { status: reply.statusCode, body: text === '' ? {} : JSON.parse(text), headers: reply.headers };
}

export function sendParts(receiver: Receiver, ...parts: Buffer[]): Promise<Reply> {
  return sendMultipart(receiver, multipart(...parts));
}

export function sendMultipart(receiver: Receiver, body: Buffer, headers: Record<string, string> = {}): Promise<Reply> {
  const type = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}`, ...headers };
  return call(`${receiver.url}/runs/multipart`, 'POST', body, type);
}

export function sendJson(
  receiver: Pick<Receiver, 'url'>,
  method: 'POST' | 'PATCH',
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return call(receiver.url + path, method, text, { 'content-type': 'application/json', ...headers });
}

export const TRACE = '5b8efff798038103d269b633813fc60c';
export const SPAN = 'eee19b7ec3c1b174';

/** A span of OTLP in JSON. */
export const makeSpan = (fields: Record<string, unknown> = {}) => ({
  traceId: TRACE,
  spanId: SPAN,
  name: 'answer',
  startTimeUnixNano: '1763622160123456789',
  endTimeUnixNano: '1763622161000000000',
  ...fields,
});

export const requestOf = (spans: unknown[], resource: unknown[] = [], scope?: unknown) => ({
  resourceSpans: [{ resource: { attributes: resource }, scopeSpans: [{ scope, spans }] }],
});

export function sendSpans(receiver: Pick<Receiver, 'url'>, body: unknown): Promise<Reply> {
  return sendJson(receiver, 'POST', '/v1/traces', body);
}

/** Writes bytes to a socket and returns everything that it receives until its end. */
export function raw(url: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes));
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    socket.on('close', () => resolve(text)).on('error', reject);
  });
}
