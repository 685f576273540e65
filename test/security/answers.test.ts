import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { Agent, type Dispatcher, interceptors } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ServiceInfo } from '../../src/export/wire/service.ts';
import { HttpClient } from '../../src/http/client.ts';
import { createExporter, type Exporter, startRun } from '../../src/index.ts';
import { serve } from '../http/server.ts';
import { environmentOf } from '../support/environment.ts';
import { clientOf } from '../support/http-client.ts';
import { ingestServer } from '../support/ingest-server.ts';
import { told } from '../support/told.ts';

const KIB = 1024;
const CAP = 64 * KIB;

/** 50 MB that come as 48 KB. */
const BOMB = gzipSync(Buffer.alloc(50_000_000), { level: 9 });

async function deliver(exporter: Exporter): Promise<unknown> {
  startRun({ name: 'a', exporter }).end();
  return exporter.close({ timeoutMs: 5_000 });
}

/** A body of 50 MiB, told of what is taken of it. */
function tallied() {
  const tally = { bytes: 0, isDestroyed: false };
  const chunk = Buffer.alloc(16 * KIB);
  const body = new Readable({
    highWaterMark: 16 * KIB,
    read() {
      tally.bytes += chunk.length;
      this.push(tally.bytes <= 50 * KIB * KIB ? chunk : null);
    },
    destroy(_error, done) {
      tally.isDestroyed = true;
      done(null);
    },
  });
  return { tally, body };
}

describe('an answer', () => {
  test('that unfolds a thousandfold is not unfolded: what we did not ask for is not decompressed [security 7]', async () => {
    environmentOf();
    told();
    const { url, seen } = await serve((_, response) =>
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(BOMB),
    );
    expect(BOMB.length).toBeLessThan(CAP);
    const client = clientOf(url);
    onTestFinished(() => client.destroy());
    expect((await client.send({ method: 'GET', path: '/info' })).text.length).toBeLessThanOrEqual(BOMB.length);
    expect(await deliver(createExporter({ endpoint: url }))).toEqual({ ok: true, pending: 0 });
    for (const { headers } of seen) expect(headers).not.toHaveProperty('accept-encoding');
  });

  test('that a dispatcher unfolds is read to 64 KiB, and what unfolds it is broken off [security 7]', async () => {
    const { url } = await serve((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(BOMB));
    const agent = new Agent();
    onTestFinished(() => agent.destroy());
    const dispatcher = agent.compose(interceptors.decompress());
    const client = new HttpClient({
      endpoint: new URL(url),
      headers: {},
      connectTimeoutMs: 5_000,
      requestTimeoutMs: 5_000,
      dispatcher,
    });
    const { text } = await client.send({ method: 'GET', path: '/info' });
    expect(text).toBe('\0'.repeat(CAP));
  });

  test('that has no end is read to 64 KiB and a little, and cancelled [security 7]', async () => {
    const { tally, body } = tallied();
    const dispatcher = {
      request: async () => ({ statusCode: 202, headers: {}, body }),
    } as unknown as Dispatcher;
    const client = new HttpClient({
      endpoint: new URL('http://127.0.0.1:9'),
      headers: {},
      connectTimeoutMs: 1,
      requestTimeoutMs: 5_000,
      dispatcher,
    });
    const answer = await client.send({ method: 'POST', path: '/runs' });
    expect(answer.text).toHaveLength(CAP);
    expect(tally.isDestroyed).toBe(true);
    expect(tally.bytes).toBeLessThan(4 * CAP);
  });

  test('with a header without end costs that request alone [security 7]', async () => {
    environmentOf();
    const lines = told();
    const server = await ingestServer((_, index) =>
      index === 0 ? { status: 202, headers: { 'x-long': 'x'.repeat(1_000_000) } } : { status: 202 },
    );
    onTestFinished(() => server.close());
    const exporter = createExporter({ endpoint: server.url, limits: { retryDelayMs: 1 } });
    expect(await deliver(exporter)).toEqual({ ok: true, pending: 0 });
    expect(exporter.stats()).toMatchObject({ sent: 1, requests: { multipart: 2 } });
    expect(lines.join('\n')).toContain('failed');
    expect(lines.join('\n')).not.toContain('xxxx');
  });
});

describe('what a service says of itself', () => {
  const keys = fc.constantFrom(
    ...['batch_ingest_config', 'instance_flags', 'size_limit', 'size_limit_bytes', 'use_multipart_endpoint'],
    ...['gzip_body_enabled', '__proto__', 'constructor', 'prototype', 'toString'],
  );
  const leaf = fc.oneof(
    fc.constantFrom(0, -1, 1, 0.5, 1e9, 1e308, -1e308, null, true, false, '', '20', '__proto__', [], {}),
    fc.double(),
    fc.string(),
  );
  const { info } = fc.letrec((tie) => ({
    info: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.array(tie('info'), { maxLength: 3 }),
      fc.dictionary(keys, tie('info'), { maxKeys: 6 }),
    ),
  }));

  test('is taken within bounds or not at all, and changes no object, whatever it is [security 7]', async () => {
    let body = '';
    const { url } = await serve((_, response) => response.end(body));
    const client = clientOf(url);
    onTestFinished(() => client.destroy());
    const before = Reflect.ownKeys(Object.prototype).length;
    const check = async (text: string): Promise<void> => {
      body = text;
      const service = new ServiceInfo(client, { runs: 100, bytes: 1_000_000 });
      await service.ask();
      const { runs, bytes } = service.batch;
      expect(Number.isInteger(runs) && runs >= 1 && runs <= 1_000).toBe(true);
      expect(Number.isInteger(bytes) && bytes >= CAP && bytes <= CAP * KIB).toBe(true);
      expect([typeof service.takesGzip, typeof service.refusesMultipart()]).toEqual(['boolean', 'boolean']);
      expect(Reflect.ownKeys(Object.prototype).length).toBe(before);
    };
    // JSON.stringify would leave a key __proto__ of a literal out; dictionaries have it as their own.
    await fc.assert(
      fc.asyncProperty(info, (value) => check(JSON.stringify(value) ?? '')),
      { numRuns: 300 },
    );
    const examples = ['', '{', 'null', '[]', '<html>', '{"__proto__":{"polluted":1}}', '[[[['.repeat(10_000)];
    for (const text of [...examples, `"${'x'.repeat(5_000_000)}"`]) await check(text);
    expect({}).not.toHaveProperty('polluted');
  });

  test('that is too much or too little, a million or -1 runs in a batch, is brought within bounds [security 7]', async () => {
    const sizes = async (config: unknown) => {
      const { url } = await serve((_, response) => response.end(JSON.stringify({ batch_ingest_config: config })));
      const client = clientOf(url);
      onTestFinished(() => client.destroy());
      const service = new ServiceInfo(client, { runs: 100, bytes: 1_000_000 });
      await service.ask();
      return service.batch;
    };
    expect(await sizes({ size_limit: 1e6, size_limit_bytes: 1e12 })).toEqual({ runs: 1_000, bytes: 64 * KIB * KIB });
    expect(await sizes({ size_limit: -1, size_limit_bytes: 1 })).toEqual({ runs: 1, bytes: CAP });
    expect(await sizes({ size_limit: '7', size_limit_bytes: null })).toEqual({ runs: 100, bytes: 1_000_000 });
  });
});
