import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { Agent, type Dispatcher, interceptors } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ServiceInfo } from '#src/delivery/wire/service-info.ts';
import { HttpClient } from '#src/http/client.ts';
import { createExporter } from '#src/index.ts';
import { serve } from '../http/server.ts';
import { environmentOf, tune } from '../support/environment.ts';
import { logLines } from '../support/log-lines.ts';
import { sendRun, service } from './service.ts';

const KIB = 1024;
const CAP = 64 * KIB;

/** 50 MB, compressed to 48 KB. */
const BOMB = gzipSync(Buffer.alloc(50_000_000), { level: 9 });

const clientWith = (dispatcher?: Dispatcher, url = 'http://127.0.0.1:9') =>
  new HttpClient({ endpoint: new URL(url), headers: {}, connectTimeoutMs: 5_000, requestTimeoutMs: 5_000, dispatcher });

describe('a response', () => {
  test('is not decompressed, because no request asks for compression [security 7]', async () => {
    environmentOf();
    logLines();
    const { url, seen } = await serve((_, response) =>
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(BOMB),
    );
    expect(BOMB.length).toBeLessThan(CAP);
    const client = clientWith(undefined, url);
    onTestFinished(() => client.destroy());
    expect((await client.send({ method: 'GET', path: '/info' })).text.length).toBeLessThanOrEqual(BOMB.length);
    expect(await sendRun(createExporter({ endpoint: url }))).toEqual({ ok: true, pending: 0 });
    for (const { headers } of seen) expect(headers).not.toHaveProperty('accept-encoding');
  });

  test('that a dispatcher decompresses is read up to 64 KiB [security 7]', async () => {
    const { url } = await serve((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(BOMB));
    const agent = new Agent();
    onTestFinished(() => agent.destroy());
    const client = clientWith(agent.compose(interceptors.decompress()), url);
    const { text } = await client.send({ method: 'GET', path: '/info' });
    expect(text).toBe('\0'.repeat(CAP));
  });

  test('with a header of 1 MB fails only its own request [security 7]', async () => {
    const { server, lines } = await service((_, index) =>
      index === 0 ? { status: 202, headers: { 'x-long': 'x'.repeat(1_000_000) } } : { status: 202 },
    );
    tune({ retryDelayMs: 1 });
    const exporter = createExporter({ endpoint: server.url });
    expect(await sendRun(exporter)).toEqual({ ok: true, pending: 0 });
    expect(exporter.stats()).toMatchObject({ sent: 1, requests: { multipart: 2 } });
    expect(lines.join('\n')).toContain('failed');
    expect(lines.join('\n')).not.toContain('xxxx');
  });
});

describe('the fields of /info', () => {
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

  test('are limited or ignored for any JSON, and change no prototype [security 7]', async () => {
    let body = '';
    const { url } = await serve((_, response) => response.end(body));
    const client = clientWith(undefined, url);
    onTestFinished(() => client.destroy());
    const before = Reflect.ownKeys(Object.prototype).length;
    const check = async (text: string): Promise<void> => {
      body = text;
      const asked = new ServiceInfo(client, { runs: 100, bytes: 1_000_000 });
      await asked.ask();
      const { runs, bytes } = asked.batch;
      expect(Number.isInteger(runs) && runs >= 1 && runs <= 1_000).toBe(true);
      expect(Number.isInteger(bytes) && bytes >= CAP && bytes <= CAP * KIB).toBe(true);
      expect(['zstd', 'gzip']).toEqual(expect.arrayContaining([...asked.encodings]));
      expect(typeof asked.refusesMultipart()).toBe('boolean');
      expect(Reflect.ownKeys(Object.prototype).length).toBe(before);
    };
    // Dictionaries have `__proto__` as an own key, unlike object literals.
    await fc.assert(fc.asyncProperty(info, (value) => check(JSON.stringify(value) ?? '')));
    const examples = ['', '{', 'null', '[]', '<html>', '{"__proto__":{"polluted":1}}', '[[[['.repeat(10_000)];
    const limits = ['-1,"size_limit_bytes":1', '1e6,"size_limit_bytes":1e12'];
    examples.push(...limits.map((size) => `{"batch_ingest_config":{"size_limit":${size}}}`));
    for (const text of [...examples, `"${'x'.repeat(5_000_000)}"`]) await check(text);
    expect({}).not.toHaveProperty('polluted');
  });
});
