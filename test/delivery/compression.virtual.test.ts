// Which request bodies are compressed, and that their runs arrive.
import '../support/virtual-timers.ts';

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { Agent, type Dispatcher } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cases } from '../support/campaign.ts';
import { codePoint } from '../support/code-point.ts';
import { advance, delivery, onFlush, type Setup } from '../support/delivery.ts';
import { startReceiver } from '../support/receiver.ts';
import { type IngestRequest, scriptedService } from '../support/scripted-service.ts';
import { hasZstd, threadWork } from '../support/thread-work.ts';

const KIB = 1024;
const best = hasZstd ? 'zstd' : 'gzip';
const large = { inputs: { text: 'x'.repeat(300 * KIB) } };

const infoWith = (flags: object) => ({ status: 200, body: JSON.stringify({ instance_flags: flags }) });
const all = infoWith({ gzip_body_enabled: true, zstd_compression_enabled: true });

/** Starts a delivery that has received `/info`. By default, it compresses requests to localhost. */
async function informed(setup: Setup = {}) {
  const started = await delivery({ limits: onFlush, info: all, compress: true, ...setup });
  const { service, whole, flush } = started;
  // A slow response to /info misses its deadline in virtual time, and is asked for again after a minute.
  let infoRequests: number;
  do {
    infoRequests = service.infoRequests;
    whole('before');
    await flush();
    await advance(61_000);
  } while (service.infoRequests > infoRequests);
  const before = service.requests.length;
  const encodingOf = async (...inputs: Parameters<typeof whole>[1][]): Promise<string | undefined> => {
    for (const one of inputs) whole('sent', one);
    await flush();
    return service.requests.at(-1)?.headers['content-encoding'];
  };
  return { ...started, encodingOf, later: () => service.requests.slice(before) };
}

describe('a large body', () => {
  it.each([
    ['zstd and gzip', all, best],
    ['gzip', infoWith({ gzip_body_enabled: true, zstd_compression_enabled: false }), 'gzip'],
    ['zstd', infoWith({ zstd_compression_enabled: true }), hasZstd ? 'zstd' : undefined],
    ['neither', infoWith({ gzip_body_enabled: false }), undefined],
    ['gzip with a word', infoWith({ gzip_body_enabled: 'true' }), undefined],
    ['nothing, because it has no /info,', 404 as const, undefined],
  ])('is sent with the best encoding that Node has and the service accepts: %s', async (_, info, expected) => {
    const { encodingOf, service } = await informed({ info });

    expect(await encodingOf(large)).toBe(expected);
    const { headers, body, plainBytes } = service.requests.at(-1) as IngestRequest;
    expect(headers['content-length']).toBe(String(body.length));
    expect(body.length < plainBytes / 4).toBe(expected !== undefined);
    expect(service.arrivals('sent').map(({ fields }) => fields.inputs)).toEqual([large.inputs]);
  });

  it('has at least 256 KiB; a smaller body is not compressed', async () => {
    const { encodingOf, service } = await informed();
    const text = (length: number) => ({ inputs: { text: 'x'.repeat(length) } });
    await encodingOf(text(200 * KIB));
    const otherBytes = (service.requests.at(-1)?.plainBytes ?? 0) - 200 * KIB;

    expect(await encodingOf(text(256 * KIB - 1 - otherBytes))).toBe(undefined);
    expect(service.requests.at(-1)?.plainBytes).toBe(256 * KIB - 1);
    expect(await encodingOf(text(256 * KIB - otherBytes))).toBe(best);
    expect(service.requests.at(-1)?.plainBytes).toBe(256 * KIB);
  });

  it('has many small runs, which all arrive once', async () => {
    const { encodingOf, service } = await informed();

    expect(
      await encodingOf(...Array.from({ length: 300 }, (_, at) => ({ inputs: { at, text: '😀'.repeat(500) } }))),
    ).toBe(best);
    expect(service.arrivals('sent').map(({ fields }) => fields.inputs)).toEqual(
      Array.from({ length: 300 }, (_, at) => ({ at, text: '😀'.repeat(500) })),
    );
  });

  it('is compressed with its attachments, but attachments alone do not make it large', async () => {
    const { start, flush, service, later } = await informed();
    const file = Buffer.alloc(500 * KIB, 'attached');
    for (const options of [{}, large]) {
      const run = start('with file', options);
      run.attach('file', file, 'text/plain');
      run.end();
      await flush();
    }

    expect(later().map(({ headers }) => headers['content-encoding'])).toEqual([undefined, best]);
    for (const { attachments } of service.arrivals('with file'))
      expect(attachments.get('file')?.equals(file)).toBe(true);
  });
});

it.each<[string, boolean]>([
  ['http://127.0.0.1', false],
  ['http://127.1.2.3', false],
  ['http://[::1]', false],
  ['http://localhost', false],
  ['http://runs.localhost.example', true],
  ['http://10.0.0.1', true],
  ['https://runs.example', true],
])('a large request to %s is compressed: %j', async (endpoint, isCompressed) => {
  const service = await scriptedService(undefined, all);
  const agent = new Agent();
  onTestFinished(() => agent.close());
  const request = (options: Dispatcher.RequestOptions) => agent.request({ ...options, origin: service.url });
  const dispatcher = { request } as Dispatcher;
  const { encodingOf } = await informed({ service, endpoint, compress: undefined, options: { dispatcher } });

  expect(await encodingOf(large)).toBe(isCompressed ? best : undefined);
});

it.each([400, 422])(
  'a run that is alone and refused with %i is sent again without compression, because a gateway may refuse the encoding',
  async (status) => {
    const { encodingOf, service, stats, later } = await informed();
    service.reply = ({ headers }) => (headers['content-encoding'] === undefined ? 202 : status);

    expect(await encodingOf(large)).toBe(undefined);
    expect(await encodingOf(large)).toBe(undefined);
    expect(later().map(({ headers }) => headers['content-encoding'])).toEqual([best, undefined, undefined]);
    expect(service.arrivals('sent').map(({ fields }) => fields.inputs)).toContainEqual(large.inputs);
    expect(stats()).toMatchObject({ dropped: 0, inFlight: 0, queued: 0 });
  },
);

it.each([
  [401, [best]],
  [403, [best]],
  [400, [best, undefined]],
])('a lone run that is refused with %i in every form leaves later runs compressed', async (status, forms) => {
  const { encodingOf, service, later } = await informed();
  service.reply = () => status;
  await encodingOf(large);
  const formsSent = later().map(({ headers }) => headers['content-encoding']);
  expect(new Set(formsSent)).toEqual(new Set(forms));
  service.reply = () => 202;
  expect(await encodingOf(large)).toBe(best);
});

describe('if no thread compresses', () => {
  async function withStuckThreads() {
    const scene = await informed();
    threadWork.isStuck = true;
    onTestFinished(() => {
      threadWork.isStuck = false;
    });
    scene.whole('sent', large);
    return scene;
  }

  it('a body is sent as it is', async () => {
    const { flush, later } = await withStuckThreads();
    const flushed = flush();
    await advance(11_000);

    expect(await flushed).toEqual({ ok: true, pending: 0 });
    expect(later().map(({ headers }) => headers['content-encoding'])).toEqual([undefined]);
  });

  it('`close` ends after its time limit', async () => {
    const { exporter } = await withStuckThreads();
    const closed = exporter.close({ timeoutMs: 1_000 });
    await advance(1_500);

    expect(await closed).toMatchObject({ ok: false });
  });
});

it('a retry sends the same bytes, and only their size counts towards `queueBytes`', async () => {
  const { whole, flush, service, exporter, later } = await informed();
  whole('sent', large);
  service.reply = () => 503;
  expect(await flush({ timeoutMs: 5_000 })).toMatchObject({ ok: false });
  const waitingBytes = exporter.backlog().bytes;
  service.reply = () => 202;
  expect(await flush()).toMatchObject({ ok: true });

  const [first, ...others] = later() as [IngestRequest, ...IngestRequest[]];
  expect(others.length).toBeGreaterThan(0);
  for (const { body } of others) expect(body.equals(first.body)).toBe(true);
  expect(first.headers['content-encoding']).toBe(best);
  expect(waitingBytes).toBe(first.body.length);
  expect(exporter.backlog().bytes).toBe(0);
});

it('a body that was compressed for a request is not compressed again during an outage', async () => {
  const info = infoWith({ gzip_body_enabled: true });
  const { whole, flush, service, later, stats } = await informed({ info });
  // Its gzip could be compressed again.
  const inputs = {
    text: Array.from({ length: 100_000 }, (_, at) => at)
      .join(' ')
      .repeat(3),
  };
  service.reply = () => 503;
  whole('sent', { inputs });
  whole('sent', { inputs });
  await flush({ timeoutMs: 5_000 });
  await advance(10_000);
  service.reply = () => 202;
  expect(await flush()).toMatchObject({ ok: true });

  expect(later().length).toBeGreaterThan(2);
  for (const { arrivals } of later()) for (const { fields } of arrivals) expect(fields.inputs).toEqual(inputs);
  expect(stats()).toMatchObject({ queued: 0, inFlight: 0, dropped: 0 });
});

/** A batch that is compressed. */
const LARGEST: [{ text: string; kib: number }[][], { gzip_body_enabled: boolean; zstd_compression_enabled: boolean }] =
  [[[{ text: 'x', kib: 300 }]], { gzip_body_enabled: true, zstd_compression_enabled: true }];

it('every run arrives once and unchanged, and exactly the bodies of at least 256 KiB are compressed', async () => {
  const text = fc.string({ unit: codePoint, minLength: 1, maxLength: 50 });
  const inputs = fc.record({ text, kib: fc.integer({ min: 0, max: 300 }) });
  const batch = fc.array(inputs, { minLength: 1, maxLength: 6 });
  const flags = fc.record({ gzip_body_enabled: fc.boolean(), zstd_compression_enabled: fc.boolean() });
  let compressed = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 3 }), flags, async (batches, accepted) => {
      const { whole, flush, close, service, stats, later } = await informed({ info: infoWith(accepted) });
      const sent: unknown[] = [];
      for (const runs of batches) {
        for (const { text, kib } of runs) {
          const payload = { text: text.toWellFormed().repeat(Math.ceil((kib * KIB) / text.length)) };
          sent.push(payload);
          whole('sent', { inputs: payload });
        }
        await flush();
      }
      const { gzip_body_enabled: gzip, zstd_compression_enabled: zstd } = accepted;
      const encoding = zstd && hasZstd ? 'zstd' : gzip ? 'gzip' : undefined;
      for (const { headers, plainBytes } of later()) {
        expect(headers['content-encoding']).toBe(plainBytes < 256 * KIB ? undefined : encoding);
        if (headers['content-encoding'] !== undefined) compressed++;
      }
      expect(service.arrivals('sent').map(({ fields }) => fields.inputs)).toEqual(sent);
      expect(stats()).toMatchObject({ sent: sent.length + service.arrivals('before').length, dropped: 0 });
      await close();
    }),
    { numRuns: cases(25, [LARGEST]), examples: [LARGEST] },
  );
  expect(compressed).toBeGreaterThan(0);
});

it('the receiver accepts what the exporter compresses', async () => {
  const receiver = await startReceiver({ port: 0, strict: true });
  const encodings: (string | undefined)[] = [];
  const note = (message: unknown): void => {
    const { headers } = (message as { request: IncomingMessage }).request;
    encodings.push(headers['content-encoding']);
  };
  subscribe('http.server.request.start', note);
  onTestFinished(() => void unsubscribe('http.server.request.start', note));
  const { wholes, whole, flush } = await delivery({ limits: onFlush, endpoint: receiver.url, compress: true });
  wholes(1);
  while (!encodings.includes(best)) {
    await flush();
    await advance(61_000);
    whole('large', large);
  }
  await flush();

  const runs = (await receiver.runs({})).filter(({ name }) => name === 'large');
  expect(runs.length).toBeGreaterThan(0);
  for (const { inputs } of runs) expect(inputs).toEqual(large.inputs);
});
