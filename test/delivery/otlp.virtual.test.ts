// Delivery with OTLP. The decisions after a failure are those of multipart, and are tested there.
import '../support/virtual-timers.ts';

// Loaded for the first request, which takes an unknown number of turns of the event loop.
import '#src/otel/otlp/traces.ts';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { advance, type Delivery, delivery, type Setup, until } from '../support/delivery.ts';
import { machine } from '../support/processes.ts';

const otlp = (setup: Setup = {}): Promise<Delivery> =>
  delivery({ ...setup, options: { protocol: 'otlp-json', ...setup.options } });

const writeAhead = { protocol: 'otlp-json', durability: 'write-ahead' } as const;

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
    const run = start('long', { inputs: { q: 1 } });
    await advance(11_000);
    expect(service.batches).toEqual([['start long']]);
    run.end({ a: 1 });
    await flush();
    expect(service.batches).toEqual([['start long'], ['whole long']]);
    expect(service.arrivals('long')[1]?.fields).toMatchObject({ inputs: { q: 1 }, outputs: { a: 1 } });
    expect(stats()).toMatchObject({ created: 1, open: 0, sent: 1 });
  });

  it('of a killed process is sent, as incomplete if its end is unknown', async () => {
    const { start, deliverRest } = machine();
    const first = await start({ options: writeAhead, reply: () => 503 });
    first.whole('ended', {}, { a: 1 });
    first.start('open', { inputs: { q: 1 } });
    first.kill();
    const { service, stats } = await deliverRest({ options: writeAhead });
    expect(service.arrivals('ended').at(-1)).toMatchObject({ isEnded: true, fields: { outputs: { a: 1 } } });
    expect(service.arrivals('open')).toMatchObject([{ isEnded: false, fields: { inputs: { q: 1 } } }]);
    expect(stats()).toMatchObject({ recovered: 2, sent: 3, dropped: 0 });
  });

  it('of a killed process is not sent as incomplete after its end, however many files its start and end were in', async () => {
    const { start, deliverRest, segments } = machine();
    const first = await start({ options: writeAhead, limits: { openRunAgeMs: 10_000 } });
    const long = first.start('long');
    await advance(6_000);
    const short = first.start('short');
    first.start('open');
    await advance(6_000);
    expect(first.service.batches).toEqual([['start long']]);
    first.whole('large', { inputs: { text: 'x'.repeat(5_000_000) } });
    for (const run of [long, short]) run.end();
    first.start('open, too');
    await first.flush();
    expect(segments()).toHaveLength(2);
    first.kill();
    const { service } = await deliverRest({ options: writeAhead });
    const lastOf = (name: string) => service.arrivals(name).at(-1)?.isEnded;
    expect(['long', 'short', 'large', 'open', 'open, too'].map(lastOf)).toEqual([true, true, true, false, false]);
    expect(segments()).toEqual([]);
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
  it('that rejects some spans drops as many runs without names, and is not an error of the service', async () => {
    const partialSuccess = { rejectedSpans: '2', errorMessage: 'too long ago' };
    const { wholes, flush, drops, details, stats, service } = await otlp({
      reply: () => ({ status: 200, body: JSON.stringify({ partialSuccess }) }),
    });
    wholes(5);
    await flush();
    expect(details).toEqual(Array(2).fill('the service rejected spans of a request (2): "too long ago"'));
    expect(drops).toEqual(['rejected ', 'rejected ']);
    expect(stats()).toMatchObject({ sent: 3, dropped: 2, droppedByReason: { rejected: 2 } });
    expect(service.requests).toHaveLength(1);
  });

  it.each<[body: string | Buffer, dropped: number]>([
    ['{}', 0],
    ['', 0],
    ['{"partialSuccess":{"errorMessage":"only a warning"}}', 0],
    ['{"partialSuccess":{"rejectedSpans":"99"}}', 1],
    ['{"partialSuccess":{"rejectedSpans":true}}', 0],
    ['{"partialSuccess":{"rejectedSpans":[1]}}', 0],
    ['{"partialSuccess":{"rejectedSpans":"0x1"}}', 0],
    ['{"partialSuccess":{"rejectedSpans":-1}}', 0],
    ['not JSON', 0],
    // Protobuf that is cut off, or has another type in place of the number.
    ...['0805', '0a0308ac', '0a04080112'].map((hex): [Buffer, number] => [Buffer.from(hex, 'hex'), 0]),
  ])('%s drops %i runs', async (body, dropped) => {
    const headers = { 'content-type': typeof body === 'string' ? 'application/json' : 'application/x-protobuf' };
    const { whole, flush, stats } = await otlp({ reply: () => ({ status: 200, headers, body }) });
    whole();
    await flush();
    expect(stats()).toMatchObject({ sent: 1 - dropped, dropped });
  });

  // ExportTraceServiceResponse { partial_success { rejected_spans: 300 error_message: "no ü" } }
  const rejected300 = Buffer.concat([Buffer.from('0a0a08ac021205', 'hex'), Buffer.from('no ü')]);
  const json = '{"partialSuccess":{"rejectedSpans":"300","errorMessage":"no ü"}}';

  it.each([
    ['protobuf', rejected300, { 'content-type': 'application/x-protobuf' }],
    [
      'protobuf with gzip',
      gzipSync(rejected300),
      { 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' },
    ],
    ['JSON', json, {}],
    ['JSON with gzip', gzipSync(json), { 'content-encoding': 'x-gzip' }],
  ])('in %s is read by its own type and coding, whatever that of the request', async (_, body, headers) => {
    const { whole, flush, details } = await otlp({ reply: () => ({ status: 200, headers, body }) });
    whole();
    await flush();
    expect(details).toEqual(['the service rejected spans of a request (300): "no ü"']);
  });

  it('that rejects the span of an open run is followed by the whole run', async () => {
    const body = '{"partialSuccess":{"rejectedSpans":"1"}}';
    const { start, flush, service, stats } = await otlp({
      limits: { openRunAgeMs: 10_000 },
      reply: (_, at) => ({ status: 200, body: at === 0 ? body : '{}' }),
    });
    const run = start('long');
    await advance(11_000);
    run.end({ a: 1 });
    await flush();
    expect(service.batches).toEqual([['start long'], ['whole long']]);
    expect(stats()).toMatchObject({ sent: 1, dropped: 0 });
  });

  it('that accepts spans with a warning is logged once', async () => {
    const body = '{"partialSuccess":{"errorMessage":"old attribute"}}';
    const { whole, flush, lines, stats } = await otlp({ reply: () => ({ status: 200, body }) });
    for (const name of ['one', 'two']) {
      whole(name);
      await flush();
    }
    expect(lines).toEqual(['warn: the service accepted spans with a warning: "old attribute"']);
    expect(stats()).toMatchObject({ sent: 2, dropped: 0 });
  });

  it('in protobuf with the status of gRPC tells the reason', async () => {
    // Status { code: 3 message: "no trace id" }
    const body = Buffer.concat([Buffer.from('0803120b', 'hex'), Buffer.from('no trace id')]);
    const headers = { 'content-type': 'application/x-protobuf' };
    const { whole, flush, stats } = await otlp({ reply: () => ({ status: 400, headers, body }) });
    whole();
    await flush();
    expect(stats().lastError?.message).toBe('status 400, "no trace id"');
  });

  it('that rejects every run is evidence that the endpoint accepts requests', async () => {
    let isDown = true;
    const body = '{"partialSuccess":{"rejectedSpans":"1"}}';
    const { wholes, flush, service, stats } = await otlp({ reply: () => (isDown ? 503 : { status: 200, body }) });
    wholes(300);
    await advance(3_000);
    isDown = false;
    const before = service.requests.length;
    expect(await flush()).toEqual({ ok: true, pending: 0 });
    const sizes = service.requests.slice(before).map(({ names }) => names.length);
    expect(sizes[0]).toBe(1);
    expect(sizes.length).toBeLessThan(6);
    expect(stats()).toMatchObject({ sent: 300 - sizes.length, dropped: sizes.length });
  });

  it.each<[string, string]>([
    ['cut off', 'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{'],
    ['never finished', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n'],
  ])('whose body is %s has accepted all runs', async (how, response) => {
    const { wholes, flush, service, stats } = await otlp({
      reply: () => (socket) => {
        socket.write(response);
        if (how === 'cut off') socket.destroy();
      },
    });
    wholes(2);
    expect(await flush({ timeoutMs: 60_000 })).toEqual({ ok: true, pending: 0 });
    expect(service.requests).toHaveLength(1);
    expect(stats()).toMatchObject({ sent: 2, dropped: 0 });
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
    compress: true,
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
