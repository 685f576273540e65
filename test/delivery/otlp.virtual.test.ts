// Delivery with OTLP. The decisions after a failure are those of multipart, and are tested there.
import '../support/virtual-timers.ts';

// Loaded for the first request, which takes an unknown number of turns of the event loop.
import '#src/otel/otlp/traces.ts';
import { describe, expect, it } from 'vitest';
import { advance, type Delivery, delivery, type Setup, until } from '../support/delivery.ts';

const otlp = (setup: Setup = {}): Promise<Delivery> =>
  delivery({ ...setup, options: { protocol: 'otlp-json', ...setup.options } });

describe('a run', () => {
  it('is sent once, when it has ended, to the route for spans', async () => {
    const { start, service, stats } = await otlp({ limits: { startDelayMs: 0 } });
    const run = start('ask', { inputs: { q: 1 } });
    await advance(60_000);
    expect(service.requests).toEqual([]);
    expect(stats()).toMatchObject({ open: 1, sent: 0 });
    run.end({ a: 2 });
    await until(() => service.requests.length === 1);
    await advance(60_000);
    expect(service.routes).toEqual(['POST /v1/traces']);
    expect(service.arrivals('ask')).toMatchObject([{ id: run.id, isEnded: true, fields: { inputs: { q: 1 } } }]);
    expect(service.infoRequests).toBe(0);
    expect(stats()).toMatchObject({ open: 0, sent: 1, requests: { otlp: 1, multipart: 0, simple: 0 } });
  });

  it('that is open is not sent by `flush`, which does not wait for it', async () => {
    const { start, whole, flush, service } = await otlp();
    const open = start('open');
    whole('whole');
    expect(await flush()).toEqual({ ok: true, pending: 0 });
    expect(service.batches).toEqual([['whole whole']]);
    open.end();
    expect(await flush()).toEqual({ ok: true, pending: 0 });
    expect(service.batches).toEqual([['whole whole'], ['whole open']]);
  });

  it('that is open at shutdown is sent as incomplete', async () => {
    const { start, close, service, drops } = await otlp();
    start('open', { inputs: { q: 1 } });
    expect(await close()).toEqual({ ok: true, pending: 0 });
    expect(service.batches).toEqual([['start open']]);
    expect(service.arrivals('open')[0]?.fields).toMatchObject({ inputs: { q: 1 } });
    expect(drops).toEqual([]);
  });

  it('that is open for too long is sent as incomplete, and again when it ends', async () => {
    const { start, flush, service, stats } = await otlp({ limits: { openRunAgeMs: 10_000 } });
    const run = start('long');
    await advance(11_000);
    expect(service.batches).toEqual([['start long']]);
    run.end({ a: 1 });
    await flush();
    expect(service.batches).toEqual([['start long'], ['whole long']]);
    expect(service.arrivals('long')[1]?.fields.outputs).toEqual({ a: 1 });
    expect(stats()).toMatchObject({ created: 1, open: 0, sent: 1 });
  });

  it('that an earlier process left on disk is sent', async () => {
    const { temporaryFolder } = await import('../support/folders.ts');
    const options = { durability: 'write-ahead', spoolDir: temporaryFolder() } as const;
    const first = await otlp({ options, reply: () => 503 });
    first.whole('ended', {}, { a: 1 });
    first.start('open');
    await first.close({ timeoutMs: 0 });
    const second = await otlp({ options, endpoint: first.service.url, service: first.service });
    first.service.reply = () => 200;
    second.whole('new');
    await until(() => second.stats().sent >= 3);
    expect(second.service.arrivals('ended').at(-1)).toMatchObject({ isEnded: true, fields: { outputs: { a: 1 } } });
    expect(second.service.arrivals('open').at(-1)).toMatchObject({ isEnded: false });
  });

  it('is sent without its attachments, and one line says so', async () => {
    const { start, flush, lines, stats } = await otlp();
    for (const name of ['one', 'two']) {
      const run = start(name);
      run.attach('file', Uint8Array.of(1), 'application/octet-stream');
      run.end();
    }
    await flush();
    expect(lines).toEqual(['warn: OTLP has no attachments, so the attachments of runs are not sent']);
    expect(stats()).toMatchObject({ sent: 2 });
  });
});

describe('a response', () => {
  it('that rejects some spans drops as many runs, and is not an error of the service', async () => {
    const partialSuccess = { rejectedSpans: '2', errorMessage: 'too long ago' };
    const { wholes, flush, details, stats, service } = await otlp({
      reply: () => ({ status: 200, body: JSON.stringify({ partialSuccess }) }),
    });
    wholes(5);
    await flush();
    expect(details).toEqual(Array(2).fill('the service rejected 2 spans of a request: too long ago'));
    expect(stats()).toMatchObject({ sent: 3, dropped: 2, droppedByReason: { rejected: 2 } });
    expect(service.requests).toHaveLength(1);
  });

  it.each([
    ['{}', 0],
    ['', 0],
    ['{"partialSuccess":{"errorMessage":"only a warning"}}', 0],
    ['{"partialSuccess":{"rejectedSpans":"99"}}', 1],
    ['not JSON', 0],
  ])('%s drops %i runs', async (body, dropped) => {
    const { whole, flush, stats } = await otlp({ reply: () => ({ status: 200, body }) });
    whole();
    await flush();
    expect(stats()).toMatchObject({ sent: 1 - dropped, dropped });
  });

  it('in protobuf that rejects some spans drops as many runs', async () => {
    // ExportTraceServiceResponse { partial_success { rejected_spans: 300 error_message: "no ü" } }
    const bytes = Buffer.concat([Buffer.from('0a0a08ac021205', 'hex'), Buffer.from('no ü')]);
    const { wholes, flush, details, stats } = await otlp({
      options: { protocol: 'otlp-json' },
      reply: () => ({ status: 200, body: '{"partialSuccess":{"rejectedSpans":1,"errorMessage":"no ü"}}' }),
    });
    wholes(2);
    await flush();
    expect(details).toEqual(['the service rejected 1 spans of a request: no ü']);
    expect(stats()).toMatchObject({ sent: 1, dropped: 1 });
    const { protobufEncoding } = await import('#src/otel/otlp/protobuf.ts');
    expect(protobufEncoding.readResponse(bytes)).toEqual({ spans: 300, message: 'no ü' });
  });

  it('413 halves a batch, and a run that is still too large loses its payloads', async () => {
    const big = 'x'.repeat(1_000);
    const { whole, flush, service, stats } = await otlp({
      reply: ({ body }) => (body.toString().includes(big) ? 413 : 200),
    });
    whole('small');
    whole('big', { inputs: { big } });
    await flush();
    expect(service.batches).toEqual([['whole small', 'whole big'], ['whole small'], ['whole big'], ['whole big']]);
    expect(stats()).toMatchObject({ sent: 2, dropped: 0 });
  });

  it('404 is refused with a line that names the cause, and no other route is tried', async () => {
    const { whole, close, service, lines } = await otlp({ reply: () => 404 });
    whole();
    await close({ timeoutMs: 5_000 });
    expect(new Set(service.routes)).toEqual(new Set(['POST /v1/traces']));
    expect(lines[0]).toContain('status 404: the service has no such route; check the endpoint');
  });
});

it('large requests are compressed with gzip, unless the service refuses it', async () => {
  const { whole, flush, service } = await otlp({
    options: { compress: true },
    reply: ({ headers }) => (headers['content-encoding'] === undefined ? 200 : 415),
  });
  service.reply = ({ headers }) => (headers['content-encoding'] === 'gzip' ? 200 : 400);
  whole('one', { inputs: { text: 'x'.repeat(300_000) } });
  await flush();
  service.reply = ({ headers }) => (headers['content-encoding'] === undefined ? 200 : 415);
  whole('two', { inputs: { text: 'x'.repeat(300_000) } });
  await flush();
  expect(service.requests.map(({ headers }) => headers['content-encoding'])).toEqual(['gzip', 'gzip', undefined]);
  expect(service.batches).toEqual([['whole one'], ['whole two'], ['whole two']]);
});
