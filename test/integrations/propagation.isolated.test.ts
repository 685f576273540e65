// The headers that requests get with `runspan/register`.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import http, { createServer, type IncomingHttpHeaders, type RequestOptions } from 'node:http';
import { join } from 'node:path';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { ownRequests } from '#src/base/own-requests.ts';
import { traceable } from '#src/instrument/traceable.ts';
import { SUPPRESS_TRACING, withoutTracing } from '#src/platform/suppress-tracing.ts';
import { propagation } from '#src/register/propagation.ts';
import { untraced } from '#src/run/context/current.ts';
import { fromHeaders, toHeaders } from '#src/run/propagation/propagation.ts';
import { overrideSink } from '#src/run/sink.ts';
import { startRun, withContext, withExporter, withRun } from '#src/run/start-run.ts';
import { makeRun, makeSink } from '../run/memory-sink.ts';
import { environmentOf } from '../support/environment.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { testFolder } from '../support/test-folder.ts';

const fetchAsText = `${fetch}`;
beforeAll(() => propagation.start());

/** The headers that may be ours. */
const OURS = /^(runspan-trace|traceparent|baggage)$/;
type Sent = Record<string, string>;

/** A server that records the headers of ours in each request, by path. */
async function recordingServer(redirectTo?: string) {
  const sent: Record<string, Sent> = {};
  const server = createServer((request, response) => {
    sent[request.url ?? ''] = ours(request.headers);
    if (redirectTo !== undefined) response.writeHead(302, { location: redirectTo });
    response.end('done');
  });
  server.on('connect', (request, socket) => {
    sent[request.url ?? ''] = ours(request.headers);
    socket.end('HTTP/1.1 200 OK\r\n\r\n');
  });
  server.on('upgrade', (request, socket) => {
    sent[request.url ?? ''] = ours(request.headers);
    socket.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n');
  });
  return { server, sent, url: await listenInTest(server) };
}

const ours = (headers: IncomingHttpHeaders): Sent =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => OURS.test(name))) as Sent;

async function overHttp(url: string, options: RequestOptions = {}): Promise<http.ClientRequest> {
  const request = http.request(url, options).end();
  const [response] = await once(request, 'response');
  await response.toArray();
  return request;
}

const overFetch = async (url: string, headers: Sent = {}) => void (await (await fetch(url, { headers })).text());

const clients: readonly [string, (url: string, headers?: Sent) => Promise<unknown>][] = [
  ['fetch', overFetch],
  ['node:http', (url, headers = {}) => overHttp(url, { headers })],
];

describe.each(clients)('with %s', (_, call) => {
  test('a request to loopback gets the current run under `runspan dev`, and no baggage', async () => {
    environmentOf({ RUNSPAN_DEV: '{"program":"one"}' });
    const { sent, url } = await recordingServer();
    const { run } = makeRun({ tags: ['a'], metadata: { user: 'ada' } });
    const child = run.child({ name: 'child' });
    await withRun(child, () => call(`${url}/run`));
    await call(`${url}/none`);
    await withContext({ metadata: { user: 'ada' } }, () => call(`${url}/fields`));
    const [traceId, spanId] = [run.id, child.id].map((id) => id.replaceAll('-', ''));
    expect(sent).toEqual({
      '/run': { 'runspan-trace': child.dottedOrder, traceparent: `00-${traceId}-${spanId?.slice(16)}-01` },
      '/none': {},
      '/fields': {},
    });
  });

  test('outside `runspan dev`, only requests to the exact origins in `propagateTo` get headers', async () => {
    environmentOf();
    const [listed, other] = [await recordingServer(), await recordingServer()];
    const { run } = makeRun({}, { propagateTo: new Set([listed.url]) });
    const { run: plain } = makeRun();
    await withRun(run, () => call(`${listed.url}/listed`));
    await withRun(run, () => call(`${listed.url.replace('127.0.0.1', 'localhost')}/another-name`));
    await withRun(run, () => call(`${other.url}/another-port`));
    await withRun(plain, () => call(`${listed.url}/another-exporter`));
    expect(Object.keys(listed.sent['/listed'] ?? {}).sort()).toEqual(['runspan-trace', 'traceparent']);
    expect({ ...listed.sent, ...other.sent }).toMatchObject({
      '/another-name': {},
      '/another-port': {},
      '/another-exporter': {},
    });
  });

  test('headers of the application are neither changed nor doubled', async () => {
    environmentOf({ RUNSPAN_DEV: '{"program":"one"}' });
    const { sent, url } = await recordingServer();
    const { run } = makeRun();
    const theirs = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    await withRun(run, async () => {
      await call(`${url}/both`, { 'Runspan-Trace': 'theirs', baggage: 'a=1' });
      await call(`${url}/parent`, { TraceParent: theirs });
      await call(`${url}/own`, toHeaders());
    });
    expect(sent).toEqual({
      '/both': { 'runspan-trace': 'theirs', baggage: 'a=1' },
      '/parent': { 'runspan-trace': run.dottedOrder, traceparent: theirs },
      '/own': toHeaders(run),
    });
  });

  test('nothing is added while tracing is suppressed, and to requests to the receiver', async () => {
    const { sent, url } = await recordingServer();
    const receiver = await recordingServer();
    environmentOf({ RUNSPAN_DEV: '{"program":"one"}', RUNSPAN_ENDPOINT: `${receiver.url}/prefix` });
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    onTestFinished(() => context.disable());
    const { run } = makeRun();
    await import('#src/otel/live/active-spans.ts').then(({ observeActiveSpan }) => observeActiveSpan());
    await withRun(run, async () => {
      await untraced(() => call(`${url}/untraced`));
      await withoutTracing(() => call(`${url}/own-work`));
      await context.with(context.active().setValue(SUPPRESS_TRACING, true), () => call(`${url}/suppressed`));
      await call(`${receiver.url}/runs`);
    });
    expect({ ...sent, ...receiver.sent }).toEqual({ '/untraced': {}, '/own-work': {}, '/suppressed': {}, '/runs': {} });
  });

  test('a trace that is left out, or a call that is off, is not recorded by the other program either', async () => {
    environmentOf({ RUNSPAN_DEV: '{"program":"one"}' });
    const { sent, url } = await recordingServer();
    const { run } = makeRun({}, { sampling: () => false });
    const theirs = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    await withRun(run, () => call(`${url}/left-out`));
    await withRun(run, () => call(`${url}/theirs`, { traceparent: theirs }));
    onTestFinished(overrideSink(makeSink()));
    await traceable(() => call(`${url}/off`), { enabled: false })();
    for (const path of ['/left-out', '/off']) expect(sent[path]?.traceparent).toMatch(/-00$/);
    // Their `traceparent` stays, so that it cannot say that our trace is left out.
    expect(sent['/theirs']).toEqual({ traceparent: theirs });
    const other = makeSink();
    for (const path of ['/left-out', '/off'])
      withExporter(other, () => withRun(fromHeaders(sent[path] ?? {}), () => startRun({ name: 'work' }).end()));
    expect([other.records(), other.skipped]).toEqual([[], 2]);
  });
});

test.each([{}, { RUNSPAN_DEV: '{"program":"one"}' }])(
  'with the environment %j, a redirect carries no headers of ours',
  async (env) => {
    environmentOf(env);
    const target = await recordingServer();
    const first = await recordingServer(`${target.url}/target`);
    const { run } = makeRun({}, { propagateTo: new Set([first.url]) });
    await withRun(run, () => overFetch(`${first.url}/first`));
    expect(Object.keys(first.sent['/first'] ?? {})).toContain('runspan-trace');
    expect(target.sent).toEqual({ '/target': {} });
  },
);

test('a `traceparent` that OpenTelemetry adds to a request of `fetch` is not doubled', async () => {
  environmentOf({ RUNSPAN_DEV: '{"program":"one"}' });
  const { sent, url } = await recordingServer();
  const theirs = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  const add = (message: unknown) =>
    (message as { request: { addHeader(...header: string[]): void } }).request.addHeader('traceparent', theirs);
  subscribe('undici:request:create', add);
  onTestFinished(() => void unsubscribe('undici:request:create', add));
  const { run } = makeRun();
  await withRun(run, () => overFetch(`${url}/theirs`));
  expect(sent).toEqual({ '/theirs': { 'runspan-trace': run.dottedOrder, traceparent: theirs } });
});

test('requests that the library itself sends with `fetch` get no headers', async () => {
  environmentOf({ RUNSPAN_DEV: '{"program":"one"}' });
  const { sent, url } = await recordingServer();
  const init = {};
  ownRequests.add(init);
  await withRun(makeRun().run, async () => void (await (await fetch(`${url}/own`, init)).text()));
  expect(sent).toEqual({ '/own': {} });
});

test('a request inside a span gets the ids of the span', async () => {
  environmentOf({ RUNSPAN_DEV: '{"program":"one"}' });
  const { setUp, inSpan } = await import('../otel/set-up.ts');
  const { tracer, recorder } = setUp();
  const { sent, url } = await recordingServer();
  const ids = await inSpan(tracer, 'span', async (span) => {
    await overFetch(`${url}/span`);
    await withRun(startRun({ name: 'inner' }), () => overFetch(`${url}/run`));
    return span.spanContext();
  });
  const [span, inner] = recorder.runs;
  expect(sent['/span']).toEqual({
    'runspan-trace': span?.dotted_order,
    traceparent: `00-${ids.traceId}-${ids.spanId}-01`,
  });
  expect(sent['/run']).toMatchObject({
    'runspan-trace': inner?.dotted_order,
    traceparent: expect.stringContaining(`-${inner?.id.replaceAll('-', '').slice(16)}-`),
  });
  trace.disable();
});

describe('requests of node:http that are left alone', () => {
  test.each<[string, RequestOptions, string]>([
    ['CONNECT', { method: 'CONNECT', path: 'example.com:443' }, 'connect'],
    ['an upgrade', { headers: { connection: 'upgrade', upgrade: 'x' }, path: '/upgrade' }, 'upgrade'],
    ['a request through a proxy', { path: 'http://example.com/' }, 'response'],
    ['headers as an array', { headers: ['host', 'a', 'X-Own', 'b'], path: '/array' }, 'response'],
    ['another host in the header', { headers: { host: 'example.com' }, path: '/host' }, 'response'],
  ])('%s', async (_, options, event) => {
    environmentOf({ RUNSPAN_DEV: '{"program":"one"}' });
    const { sent, url } = await recordingServer();
    await withRun(makeRun().run, () => once(http.request(url, options).end(), event));
    expect(sent).toEqual({ [options.path ?? '']: {} });
  });

  test('a Unix socket', async () => {
    environmentOf({ RUNSPAN_DEV: '{"program":"one"}' });
    const socketPath = join(testFolder(), 'socket');
    const { server, sent } = await recordingServer();
    const local = createServer((request, response) => server.emit('request', request, response)).listen(socketPath);
    onTestFinished(() => void local.close());
    await once(local, 'listening');
    await withRun(makeRun().run, () => once(http.request({ socketPath, path: '/unix' }).end(), 'response'));
    expect(sent).toEqual({ '/unix': {} });
  });

  test('errors, headers and listeners stay those of the request', async () => {
    environmentOf({ RUNSPAN_DEV: '{"program":"one"}' });
    const { url, sent } = await recordingServer();
    await withRun(makeRun().run, async () => {
      const request = http.request(`${url}/late`, { headers: { 'X-Own': 'a' } });
      request.setHeader('traceparent', 'late');
      expect(request.getHeader('x-own')).toBe('a');
      await once(request.end(), 'response');
      const failed = http.get('http://127.0.0.1:1/');
      const [error] = await once(failed, 'error');
      expect(error).toMatchObject({ code: 'ECONNREFUSED' });
      expect(() => request.setHeader('a', 'b')).toThrow(/after they are sent/);
    });
    expect(sent['/late']).toMatchObject({ traceparent: 'late' });
  });
});

test('`fetch` looks as before, and a failed request rejects as before', async () => {
  environmentOf({ RUNSPAN_DEV: '{"program":"one"}' });
  expect([`${fetch}`, fetch.name]).toEqual([fetchAsText, 'fetch']);
  await withRun(makeRun().run, async () => {
    await expect(fetch('http://127.0.0.1:1/')).rejects.toThrow('fetch failed');
    await expect(fetch('no url')).rejects.toThrow(TypeError);
  });
});
