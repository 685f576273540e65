// Services that are unreachable, disappear, or are not trusted.

import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { createServer as createPlainServer, type LookupFunction, type Socket } from 'node:net';
import { join } from 'node:path';
import { Agent } from 'undici';
import { describe, expect, it, vi } from 'vitest';
import type { ConfigureOptions } from '#src/config/options.ts';
import { exporterTo, recordSingles } from '../support/delivering.ts';
import { root } from '../support/folders.ts';
import { ingestServer, ingestServerInTest } from '../support/ingest-server.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { accepting, scriptServer } from '../support/script-server.ts';
import { quickTime, until } from '../support/virtual-time.ts';

/** An exporter, and the warnings that it logs. Waits take no time. */
function exporterWith(endpoint: string, limits: ConfigureOptions['limits'] = {}, options: ConfigureOptions = {}) {
  const lines: string[] = [];
  const log: ConfigureOptions['log'] = (level, line) => void (level === 'warn' && lines.push(line));
  return { lines, exporter: exporterTo(endpoint, limits, { log, ...options }, quickTime()) };
}

it('a service that responds before it has read a body still receives that body', async () => {
  const received = new Map<Socket, Buffer[]>();
  const server = createPlainServer((socket) => {
    const chunks: Buffer[] = [];
    received.set(socket, chunks);
    socket.on('data', (chunk) => void chunks.push(chunk));
    socket.once('data', () => socket.pause().write('HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}'));
  });
  const { exporter } = exporterWith(await listenInTest(server as Server), { queueBytes: 2 ** 27 });
  const payload = (letter: string): string => JSON.stringify({ q: letter.repeat(700_000) });
  // The operating system takes up to 4 MiB of a body that nobody reads.
  recordSingles(exporter, 7, payload('a'));
  expect(await exporter.flush()).toMatchObject({ ok: true });
  recordSingles(exporter, 7, payload('b'));
  expect(exporter.stats().backlog.bytes).toBeGreaterThan(4_900_000);
  for (const socket of received.keys()) socket.resume();
  const text = (): string => [...received.values()].map((chunks) => Buffer.concat(chunks).toString()).join('\n');
  await until(() => text().includes('--\r\n'));
  expect(text().split(payload('a'))).toHaveLength(8);
});

describe('a service that goes away', () => {
  it('receives every run after its return, and outage and return are reported in one line each', async () => {
    const first = await ingestServerInTest();
    const { exporter, lines } = exporterWith(first.url, { batchRuns: 5 });
    recordSingles(exporter, 60);
    await until(() => exporter.stats().sent > 0);
    await first.close();
    recordSingles(exporter, 60);
    await until(() => lines.length > 0);
    const { requests } = exporter.stats();
    await until(() => exporter.stats().requests.multipart > requests.multipart + 4);
    await ingestServerInTest(undefined, undefined, Number(new URL(first.url).port));

    expect(await exporter.close()).toEqual({ ok: true, pending: 0 });
    expect(exporter.stats()).toMatchObject({ created: 120, sent: 120, dropped: 0 });
    const service = `delivery to ${first.url}`;
    expect(lines).toEqual([
      expect.stringMatching(`^${service} failed: .*; the runs are retried while the process runs$`),
      `${service} works again`,
    ]);
  });

  it('while the process was frozen loses no run and logs nothing', async () => {
    const server = await scriptServer(accepting);
    const { exporter, lines } = exporterWith(server.url);
    recordSingles(exporter, 1);
    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
    // A request in the same turn does not know of it, as after a thaw.
    server.dropConnections();
    recordSingles(exporter, 1);
    expect(await exporter.close()).toEqual({ ok: true, pending: 0 });

    expect(exporter.stats()).toMatchObject({ sent: 2, dropped: 0 });
    expect(lines).toEqual([]);
  });
});

it.each([
  ['ENOTFOUND', 'the host name is unknown; check the endpoint (ENOTFOUND)'],
  ['EAI_AGAIN', 'host names cannot be resolved at the moment (EAI_AGAIN)'],
])('an unknown host name (%s) is reported, and looked up again for each attempt', async (code, detail) => {
  await using server = await ingestServer();
  let lookups = 0;
  const lookup: LookupFunction = (hostname, _, callback) => {
    const error = Object.assign(new Error(`getaddrinfo ${code} ${hostname}`), { code });
    if (++lookups <= 3) callback(error, '');
    else callback(null, [{ address: '127.0.0.1', family: 4 }]);
  };
  const dispatcher = new Agent({ connect: { lookup } });
  const endpoint = server.url.replace('127.0.0.1', 'service.test');
  const { exporter, lines } = exporterWith(endpoint, {}, { dispatcher });
  recordSingles(exporter, 1);
  await exporter.close();
  await dispatcher.close();

  expect(exporter.stats()).toMatchObject({ sent: 1, dropped: 0 });
  expect(lines).toEqual([
    `delivery to ${endpoint} failed: ${detail}; the runs are retried while the process runs`,
    `delivery to ${endpoint} works again`,
  ]);
});

describe('a certificate', () => {
  it.each([
    ['self-signed', false, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ['expired', true, 'CERT_HAS_EXPIRED'],
    ['other-host', true, 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ])(
    'that is %s pauses delivery without loss, and one line contains the code [security 6]',
    async (name, isTrusted, code) => {
      const pem = readFileSync(join(root, `test/fixtures/tls/for-tests-only-${name}.pem`), 'utf8');
      const handler = vi.fn((_, response) => response.end());
      const server = createSecureServer({ key: pem, cert: pem }, handler);
      const endpoint = (await listenInTest(server)).replace('http:', 'https:');
      const dispatcher = new Agent({ connect: { ca: pem } });
      const { exporter, lines } = exporterWith(endpoint, { batchRuns: 1 }, isTrusted ? { dispatcher } : {});
      recordSingles(exporter, 6);
      await until(() => lines.length > 0);

      expect(handler).not.toHaveBeenCalled();
      expect(lines).toEqual([
        expect.stringMatching(new RegExp(`failed: the certificate .*\\(${code}\\); .*process runs$`)),
      ]);
      expect(exporter.stats()).toMatchObject({ created: 6, sent: 0, dropped: 0 });
      await exporter.close({ timeoutMs: 0 });
      await dispatcher.close();
    },
  );

  it('of a service without TLS is missing, which pauses delivery too', async () => {
    await using server = await ingestServer();
    const { exporter, lines } = exporterWith(server.url.replace('http:', 'https:'));
    recordSingles(exporter, 1);
    void exporter.flush();
    await until(() => lines.length > 0);

    expect(lines).toEqual([expect.stringContaining('the server does not use TLS')]);
    expect(server.received).toEqual([]);
    await exporter.close({ timeoutMs: 0 });
  });
});

it('a replaced global `fetch` is not called', async () => {
  await using server = await ingestServer();
  const fetch = vi.fn(() => Promise.reject(new Error('mine')));
  vi.stubGlobal('fetch', fetch);
  const { exporter } = exporterWith(server.url);
  recordSingles(exporter, 1);
  await exporter.close();

  expect(exporter.stats()).toMatchObject({ sent: 1 });
  expect(fetch).not.toHaveBeenCalled();
});

function throws(thrown: unknown): never {
  throw thrown;
}

it.each<[string, () => unknown]>([
  ['throws', () => throws(new Error('mine sk-secret'))],
  ['throws null', () => throws(null)],
  ['rejects with undefined', () => Promise.reject()],
  ['responds with undefined', () => Promise.resolve(undefined)],
  ['responds with an object that is no response', () => Promise.resolve({ ok: true })],
  ['responds with text', () => 'yes'],
])('a dispatcher that %s fails the request, and the runs are sent again', async (_, request) => {
  await using server = await ingestServer();
  const agent = new Agent();
  let requests = 0;
  const dispatcher = { request: (options: never) => (requests++ < 5 ? request() : agent.request(options)) };
  const { exporter, lines } = exporterWith(server.url, {}, { dispatcher: dispatcher as never });
  recordSingles(exporter, 1);
  await exporter.close();
  await agent.close();

  expect(exporter.stats()).toMatchObject({ sent: 1, dropped: 0 });
  expect(lines).toEqual([
    // The name of a TypeError of runspan itself is logged too.
    expect.stringMatching(
      /failed: the request failed for an unknown reason( \(TypeError\))?; the runs are retried while the process runs/,
    ),
    `delivery to ${server.url} works again`,
  ]);
});
