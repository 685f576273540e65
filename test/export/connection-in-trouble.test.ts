// A whole exporter before services that cannot be reached, or that break off.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createRawServer, type LookupFunction } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { Agent } from 'undici';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ConfigureOptions } from '../../src/export/settings.ts';
import { exporterTo, record, recordSingles } from '../support/delivering.ts';
import { ended, makeRun } from '../support/encoded-run.ts';
import { root } from '../support/folders.ts';
import { ingestServer } from '../support/ingest-server.ts';
import { requestBody } from '../support/request-body.ts';
import { accepting, acceptOne, type Connection, scriptServer } from '../support/script-server.ts';
import { told } from '../support/told.ts';
import { until, virtualTime } from '../support/virtual-time.ts';

const warnings = (): { lines: string[]; log: NonNullable<ConfigureOptions['log']> } => {
  const lines: string[] = [];
  return { lines, log: (level, line) => void (level === 'warn' && lines.push(line)) };
};

/** The ids of the runs whose posts came, each as often as it came. */
const posted = (requests: readonly string[]): string[] =>
  requests.flatMap((request) => [...request.matchAll(/name="post\.([0-9a-f-]+)"/g)].map(([, id = '']) => id));

describe('a connection that is reset', () => {
  it('after any part of a request costs no run, and at worst sends it twice', async () => {
    told();
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 2_000_000 }), async (bytes) => {
        const server = await scriptServer(async (connection: Connection) => {
          await connection.bytes(bytes);
          connection.socket.resetAndDestroy();
        }, accepting);
        const exporter = exporterTo(server.url, {}, {}, virtualTime(true));
        const run = ended(makeRun({ inputs: JSON.stringify('x'.repeat(2_000_000)) }));
        exporter.start(run);
        exporter.end(run);
        await exporter.close();

        expect(server.connections).toBe(2);
        expect(posted(server.requests)).toEqual([run.id]);
        expect(exporter.stats()).toMatchObject({ sent: 1, dropped: 0 });
      }),
      { numRuns: 15 },
    );
  });

  it('after a whole request has the same runs sent again, under the same ids', async () => {
    told();
    const server = await scriptServer(async (connection) => {
      await connection.request();
      connection.socket.resetAndDestroy();
    }, accepting);
    const exporter = exporterTo(server.url, {}, {}, virtualTime(true));
    const ids = record(exporter, 2);
    await exporter.close();
    const arrived = posted(server.requests);

    expect(arrived.sort()).toEqual([...new Set(arrived), ...new Set(arrived)].sort());
    expect(new Set(arrived)).toEqual(new Set(ids));
    expect(exporter.stats()).toMatchObject({ sent: 4, dropped: 0 });
  });

  it('while the process was frozen costs no run and no line', async () => {
    const { lines, log } = warnings();
    const server = await scriptServer(accepting);
    const exporter = exporterTo(server.url, {}, { log });
    recordSingles(exporter, 1);
    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
    // What is sent in the same turn has not heard of it, as after a thaw.
    server.dropConnections();
    recordSingles(exporter, 1);
    expect(await exporter.close()).toEqual({ ok: true, pending: 0 });

    expect(exporter.stats()).toMatchObject({ sent: 2, dropped: 0 });
    expect(lines).toEqual([]);
  });
});

describe('a service that hangs', () => {
  it('at one request does not keep the others waiting, and gets that one again', async () => {
    told();
    await using server = await ingestServer((_, index) => (index === 0 ? 'hold' : { status: 202 }));
    const exporter = exporterTo(server.url, { batchRuns: 1, requestsInFlight: 2, requestTimeoutMs: 1_000 });
    recordSingles(exporter, 9);
    await until(() => exporter.stats().sent === 8);
    expect(exporter.stats()).toMatchObject({ inFlight: 1 });
    await exporter.close();

    expect(exporter.stats()).toMatchObject({ sent: 9, dropped: 0, requests: { multipart: 10 } });
  });
});

describe('an answer that is no HTTP', () => {
  it.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['a length that is too long', 'HTTP/1.1 202 Accepted\r\nContent-Length: 10\r\n\r\n{}'],
    ['a status of 099', 'HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n'],
    ['chunks without an end', 'HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}'],
  ])('but %s has the runs sent again', async (_, bytes) => {
    told();
    const server = await scriptServer(async (connection) => {
      await connection.request();
      connection.socket.end(bytes);
    }, accepting);
    const exporter = exporterTo(server.url, {}, {}, virtualTime(true));
    recordSingles(exporter, 2);
    await exporter.close();

    expect(exporter.stats()).toMatchObject({ sent: 2, dropped: 0 });
  });
});

describe('an answer of 202', () => {
  const head = 'HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n{';

  it.each<[string, (connection: Connection) => void]>([
    ['breaks off', ({ socket }) => void socket.end(head)],
    ['is reset', ({ socket }) => void socket.write(head, () => setImmediate(() => socket.resetAndDestroy()))],
    ['never ends', ({ socket }) => void socket.write(head)],
  ])('whose body %s counts as delivered', async (_, answer) => {
    const server = await scriptServer(async (connection) => {
      await connection.request();
      answer(connection);
    }, acceptOne);
    const exporter = exporterTo(server.url, { lingerMs: 1_000_000, requestsInFlight: 1 });
    recordSingles(exporter, 2);

    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
    expect(server.requests).toHaveLength(1);
    await exporter.close();
  });
});

describe('a service that goes away', () => {
  it('under load and comes back gets every run', async () => {
    told();
    const seen = new Set<string>();
    const listen = async (port: number): Promise<Server> => {
      const server = createHttpServer(async (request, response) => {
        const body = await requestBody(request);
        if (body === undefined) return;
        for (const id of posted([body.toString('latin1')])) seen.add(id);
        response.writeHead(202).end('{}');
      });
      await once(server.listen(port, '127.0.0.1'), 'listening');
      return server;
    };
    const stop = async (server: Server): Promise<void> => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    };
    const first = await listen(0);
    const { port } = first.address() as AddressInfo;
    const exporter = exporterTo(`http://127.0.0.1:${port}`, { batchRuns: 5 }, {}, virtualTime(true));
    const ids = record(exporter, 30);
    await until(() => exporter.stats().sent > 0);
    await stop(first);
    ids.push(...record(exporter, 30));
    const { requests } = exporter.stats();
    // It has tried and failed.
    await until(() => exporter.stats().requests.multipart > requests.multipart + 4);
    const second = await listen(port);
    onTestFinished(() => stop(second));
    expect(await exporter.close()).toEqual({ ok: true, pending: 0 });

    expect(exporter.stats()).toMatchObject({ created: 120, sent: 120, dropped: 0 });
    expect(seen).toEqual(new Set(ids));
  });

  it('is told in one line with what to do, and another when it is back', async () => {
    const { lines, log } = warnings();
    const free = createRawServer();
    await once(free.listen(0, '127.0.0.1'), 'listening');
    const { port } = free.address() as AddressInfo;
    free.close();
    await once(free, 'close');
    const exporter = exporterTo(`http://127.0.0.1:${port}`, { batchRuns: 1 }, { log }, virtualTime(true));
    recordSingles(exporter, 8);
    await until(() => exporter.stats().requests.multipart > 12);
    const server = createHttpServer((request, response) => request.resume().on('end', () => response.end('{}')));
    await once(server.listen(port, '127.0.0.1'), 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    await exporter.close();

    const service = `delivery to http://127.0.0.1:${port}`;
    expect(lines).toEqual([
      `${service} failed: nothing listens there; check the endpoint, and that the service runs (ECONNREFUSED); ` +
        'the runs are kept and sent again',
      `${service} works again`,
    ]);
  });
});

describe('the name of a host', () => {
  it.each([
    ['ENOTFOUND', 'the name of the host is not known; check the endpoint (ENOTFOUND)'],
    ['EAI_AGAIN', 'names of hosts cannot be looked up for now (EAI_AGAIN)'],
  ])('that is not found (%s) is told, and looked up again until it is', async (code, detail) => {
    const { lines, log } = warnings();
    await using server = await ingestServer();
    let lookups = 0;
    const lookup: LookupFunction = (hostname, _, callback) => {
      const error = Object.assign(new Error(`getaddrinfo ${code} ${hostname}`), { code });
      if (++lookups <= 3) callback(error, '');
      else callback(null, [{ address: '127.0.0.1', family: 4 }]);
    };
    const dispatcher = new Agent({ connect: { lookup } });
    const endpoint = server.url.replace('127.0.0.1', 'service.test');
    const exporter = exporterTo(endpoint, {}, { dispatcher, log }, virtualTime(true));
    recordSingles(exporter, 1);
    await exporter.close();
    await dispatcher.close();

    expect(exporter.stats()).toMatchObject({ sent: 1, dropped: 0 });
    expect(lines).toEqual([
      `delivery to ${endpoint} failed: ${detail}; the runs are kept and sent again`,
      `delivery to ${endpoint} works again`,
    ]);
  });
});

describe('a certificate', () => {
  const pem = (name: string): string =>
    readFileSync(join(root, `test/fixtures/tls/for-tests-only-${name}.pem`), 'utf8');

  it.each([
    ['self-signed', false, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ['expired', true, 'CERT_HAS_EXPIRED'],
    ['other-host', true, 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ])(
    'that is %s is not taken: it pauses, one line says so by %3$s, and nothing is lost',
    async (name, isTrusted, code) => {
      const { lines, log } = warnings();
      let requests = 0;
      const server = createServer({ key: pem(name), cert: pem(name) }, (_, response) => {
        requests++;
        response.end();
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      onTestFinished(() => void server.close());
      const dispatcher = new Agent({ connect: isTrusted ? { ca: pem(name) } : {} });
      const options = { log, apiKey: 'sk-secret', ...(isTrusted ? { dispatcher } : {}) };
      const time = virtualTime();
      const { port } = server.address() as AddressInfo;
      const exporter = exporterTo(`https://127.0.0.1:${port}`, { batchRuns: 1 }, options, time);
      recordSingles(exporter, 6);
      await until(() => lines.length > 0);

      expect(requests).toBe(0);
      expect(lines).toEqual([
        expect.stringMatching(new RegExp(`failed: its certificate .*\\(${code}\\); .*5 minutes$`)),
      ]);
      expect(exporter.stats()).toMatchObject({ created: 6, sent: 0, dropped: 0 });
      await exporter.close({ timeoutMs: 0 });
      await dispatcher.close();
    },
  );

  it('is not asked of what does not speak TLS at all: it pauses likewise', async () => {
    const { lines, log } = warnings();
    await using server = await ingestServer();
    const time = virtualTime();
    const exporter = exporterTo(server.url.replace('http:', 'https:'), {}, { log }, time);
    recordSingles(exporter, 1);
    void exporter.flush();
    await until(() => lines.length > 0);

    expect(lines).toEqual([expect.stringContaining('it does not speak TLS')]);
    expect(server.received).toEqual([]);
    await exporter.close({ timeoutMs: 0 });
  });
});

describe('what an application does to HTTP', () => {
  it.each([
    [
      'throws',
      () => {
        throw new Error('mine');
      },
    ],
    ['is gone', undefined],
  ])('does not matter: its fetch %s, and ours is not called', async (_, replacement) => {
    told();
    await using server = await ingestServer();
    const fetch = replacement && vi.fn(replacement);
    vi.stubGlobal('fetch', fetch);
    onTestFinished(() => void vi.unstubAllGlobals());
    const exporter = exporterTo(server.url);
    recordSingles(exporter, 1);
    await exporter.close();

    expect(exporter.stats()).toMatchObject({ sent: 1 });
    if (fetch !== undefined) expect(fetch).not.toHaveBeenCalled();
  });

  it.each<[string, () => unknown]>([
    [
      'throws at once',
      () => {
        throw new Error('mine sk-secret');
      },
    ],
    [
      'throws null',
      () => {
        throw null;
      },
    ],
    ['rejects with undefined', () => Promise.reject()],
    ['answers with nothing', () => Promise.resolve(undefined)],
    ['answers with an object that is no answer', () => Promise.resolve({ ok: true })],
    ['answers with a text', () => 'yes'],
  ])('with a dispatcher that %s is a failure, and the runs are sent again', async (_, request) => {
    const { lines, log } = warnings();
    await using server = await ingestServer();
    const agent = new Agent();
    let requests = 0;
    const dispatcher = { request: (options: never) => (requests++ < 5 ? request() : agent.request(options)) };
    const exporter = exporterTo(server.url, {}, { dispatcher: dispatcher as never, log }, virtualTime(true));
    recordSingles(exporter, 1);
    await exporter.close();
    await agent.close();

    expect(exporter.stats()).toMatchObject({ sent: 1, dropped: 0 });
    expect(lines).toEqual([
      `delivery to ${server.url} failed: the request failed without a reason; the runs are kept and sent again`,
      `delivery to ${server.url} works again`,
    ]);
  });
});
