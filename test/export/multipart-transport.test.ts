import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { MultipartTransport } from '../../src/export/multipart-transport.ts';
import { Pace } from '../../src/export/pace.ts';
import { ServiceInfo } from '../../src/export/service-info.ts';
import { ended, makeItem, makeRun } from '../support/encoded-run.ts';
import { clientOf } from '../support/http-client.ts';
import { ingestServer, type Received } from '../support/ingest-server.ts';
import { readParts } from '../support/multipart-reader.ts';
import { requestLog } from '../support/request-log.ts';
import { scriptServer } from '../support/script-server.ts';
import { kindsOf, settled } from '../support/settled.ts';

async function multipart(url: string) {
  const client = clientOf(url, 2_000);
  const info = new ServiceInfo(client, { runs: 100, bytes: 1_000_000 });
  await info.ask();
  return new MultipartTransport(client, info, new Pace(() => 0), requestLog());
}

const takesGzip = { status: 200, body: '{"instance_flags":{"gzip_body_enabled":true}}' };

describe('MultipartTransport', () => {
  it('sends a batch as one request with its length', async () => {
    await using server = await ingestServer();
    const items = [makeItem(), makeItem()];
    const settlements = await settled(await multipart(server.url), items);
    const [request] = server.received;

    expect(settlements).toEqual([{ items, outcome: { kind: 'accepted' } }]);
    expect(`${request?.method} ${request?.path}`).toBe('POST /runs/multipart');
    expect(request?.headers['content-length']).toBe(String(request?.body.length));
    expect(readParts(request as Received)).toHaveLength(2);
  });

  it('uses another boundary for each request', async () => {
    await using server = await ingestServer();
    const transport = await multipart(server.url);
    await settled(transport, [makeItem()]);
    await settled(transport, [makeItem()]);

    expect(new Set(server.received.map(({ headers }) => headers['content-type'])).size).toBe(2);
  });

  it('compresses when the service says that it takes gzip', async () => {
    await using server = await ingestServer(() => ({ status: 202 }), takesGzip);
    await settled(await multipart(server.url), [makeItem()]);
    const request = server.received[0] as Received;

    expect(request.headers['content-encoding']).toBe('gzip');
    expect(readParts({ headers: request.headers, body: gunzipSync(request.body) })).toHaveLength(1);
  });

  it('sends the same batch plain, and all later ones, when gzip is answered with 415 [fault 12]', async () => {
    await using server = await ingestServer(
      ({ headers }) => ({ status: headers['content-encoding'] === 'gzip' ? 415 : 202 }),
      takesGzip,
    );
    const transport = await multipart(server.url);

    expect(kindsOf(await settled(transport, [makeItem()]))).toEqual(['accepted']);
    await settled(transport, [makeItem()]);
    expect(server.received.map(({ headers }) => headers['content-encoding'])).toEqual(['gzip', undefined, undefined]);
  });

  it('does not ask a service that says it has no multipart ingestion', async () => {
    const info = { status: 200, body: '{"batch_ingest_config":{"use_multipart_endpoint":false}}' };
    await using server = await ingestServer(() => ({ status: 202 }), info);

    const transport = await multipart(server.url);
    expect(kindsOf(await settled(transport, [makeItem()]))).toEqual(['unsupported']);
    expect(server.received).toHaveLength(0);
    // Asked again, which is when the fallback has lasted for its time, it tries.
    expect(kindsOf(await settled(transport, [makeItem()]))).toEqual(['accepted']);
  });

  it('says once that the endpoint answers with a web page, and takes it for accepted [fault 33]', async () => {
    const lines: string[] = [];
    diagnostics.setLog((_, line) => lines.push(line));
    const page = { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } };
    await using server = await ingestServer(() => page);
    const transport = await multipart(server.url);
    const settlements = [...(await settled(transport, [makeItem()])), ...(await settled(transport, [makeItem()]))];
    diagnostics.setLog('warn');

    expect(kindsOf(settlements)).toEqual(['accepted', 'accepted']);
    expect(lines.filter((line) => line.includes('web page'))).toHaveLength(1);
  });

  it('reports a service that hangs as failed when its deadline is over', async () => {
    await using server = await ingestServer(() => 'hold');
    const client = clientOf(server.url, 50);
    const transport = new MultipartTransport(
      client,
      new ServiceInfo(client, { runs: 1, bytes: 1_000_000 }),
      new Pace(() => 0),
      requestLog(),
    );

    expect((await settled(transport, [makeItem()])).map(({ outcome }) => outcome)).toEqual([
      { kind: 'failed', detail: 'no answer within 50 ms', isSuspect: true },
    ]);
  });

  it('throws when it is told to stop while a Blob is read, so that no run is called malformed', async () => {
    await using server = await ingestServer();
    const attachments = [{ name: 'a', bytes: new Blob([Buffer.alloc(1_000_000)]), mimeType: 'image/png' }];
    const stop = new AbortController();
    const transport = await multipart(server.url);
    const sent = transport
      .send([makeItem(ended(makeRun({ attachments })))], stop.signal)
      [Symbol.asyncIterator]()
      .next();
    stop.abort(new Error('closed'));

    await expect(sent).rejects.toThrow('closed');
    expect(server.received).toEqual([]);
  });

  it('takes two breaks of a large upload for a refusal of its size, and lowers the limit [fault 11]', async () => {
    const server = await scriptServer(async (connection) => {
      await connection.bytes(500_000);
      connection.socket.resetAndDestroy();
    });
    const { transport, info } = parts(server.url);
    const items = [1, 2].map(() => makeItem(ended(makeRun({ inputs: JSON.stringify('x'.repeat(800_000)) }))));

    expect((await settled(transport, items))[0]?.outcome).toMatchObject({ kind: 'failed', isSuspect: true });
    expect(info.batch.bytes).toBe(1_000_000_000);
    expect((await settled(transport, items))[0]?.outcome).toMatchObject({ kind: 'too_large' });
    expect(info.batch.bytes).toBeGreaterThan(800_000);
    expect(info.batch.bytes).toBeLessThan(802_000);
  });

  it.each([
    ['a single run, which would lose its payloads', 1, 1_600_000],
    ['a small batch', 2, 400_000],
  ])('does not do so of %s [fault 11]', async (_, runs, length) => {
    const server = await scriptServer(async (connection) => {
      await connection.bytes(1_000);
      connection.socket.resetAndDestroy();
    });
    const { transport } = parts(server.url);
    const inputs = JSON.stringify('x'.repeat(length));
    const items = Array.from({ length: runs }, () => makeItem(ended(makeRun({ inputs }))));
    const settlements = [];
    for (let time = 0; time < 3; time++) settlements.push(...(await settled(transport, items)));

    expect(kindsOf(settlements)).toEqual(['failed', 'failed', 'failed']);
  });

  it('lowers the limit when a batch is refused, not when a run is, and raises it with full batches [fault 11]', async () => {
    await using server = await ingestServer(({ body }) => ({ status: body.length > 300_000 ? 413 : 202 }));
    const { transport, info } = parts(server.url);
    const item = (length: number) => makeItem(ended(makeRun({ inputs: JSON.stringify('x'.repeat(length)) })));
    await settled(transport, [item(400_000)]);
    expect(info.batch.bytes).toBe(1_000_000_000);
    await settled(transport, [item(200_000), item(200_000)]);
    const lowered = info.batch.bytes;
    expect(lowered).toBe(Math.floor((server.received[1]?.body.length ?? 0) / 2));
    await settled(transport, [item(200_000)]);
    expect(info.batch.bytes).toBe(Math.ceil(lowered * 1.01));
  });

  it.each(['{"errors":[{"id":"a","status":422}]}', '{"errors":', 'thanks'])(
    'accepts the whole batch at 207 with %s [fault 36]',
    async (body) => {
      await using server = await ingestServer(() => ({ status: 207, body }));
      const items = [makeItem(), makeItem()];

      expect(await settled(parts(server.url).transport, items)).toEqual([{ items, outcome: { kind: 'accepted' } }]);
    },
  );
});

/** A transport whose service has said nothing of itself. */
function parts(url: string): { transport: MultipartTransport; info: ServiceInfo } {
  const client = clientOf(url, 10_000);
  const info = new ServiceInfo(client, { runs: 100, bytes: 1_000_000_000 });
  return { transport: new MultipartTransport(client, info, new Pace(() => 0), requestLog()), info };
}
