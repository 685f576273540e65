import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceInfo } from '../../src/export/service-info.ts';
import type { HttpAnswer, HttpClient, HttpRequest } from '../../src/http/client.ts';
import { clientOf } from '../support/http-client.ts';
import { type Answer, ingestServer } from '../support/ingest-server.ts';

const defaults = { runs: 100, bytes: 20_971_520 };

async function asked(answer: Answer): Promise<ServiceInfo> {
  await using server = await ingestServer(() => ({ status: 202 }), answer);
  const info = new ServiceInfo(clientOf(server.url), defaults);
  await info.ask();
  return info;
}

const ok = (body: unknown): Answer => ({ status: 200, body: JSON.stringify(body) });
const limits = (size_limit: unknown, size_limit_bytes: unknown) =>
  ok({ batch_ingest_config: { size_limit, size_limit_bytes } });

describe('ServiceInfo', () => {
  it('takes the limits that the service gives', async () => {
    expect((await asked(limits(25, 1_000_000))).batch).toEqual({ runs: 25, bytes: 1_000_000 });
  });

  it.each([
    [0, 1],
    [1, 1],
    [2, 2],
    [999, 999],
    [1_000, 1_000],
    [1_001, 1_000],
    [-5, 1],
    [1e9, 1_000],
  ])('brings a batch of %d runs to %d [fault 34]', async (given, taken) => {
    expect((await asked(limits(given, 1_000_000))).batch.runs).toBe(taken);
  });

  it.each([
    [65_535, 65_536],
    [65_536, 65_536],
    [65_537, 65_537],
    [67_108_863, 67_108_863],
    [67_108_864, 67_108_864],
    [67_108_865, 67_108_864],
  ])('brings a batch of %d bytes to %d [fault 34]', async (given, taken) => {
    expect((await asked(limits(10, given))).batch.bytes).toBe(taken);
  });

  it.each([
    ['a missing page', { status: 404 }],
    ['an error', { status: 500, body: '{"batch_ingest_config":{"size_limit":5}}' }],
    ['no JSON', { status: 200, body: '<html>' }],
    ['null', ok(null)],
    ['a list', ok([1, 2])],
    ['limits of the wrong type', limits('10', null)],
    ['a polluting key', { status: 200, body: '{"__proto__":{"batch_ingest_config":{"size_limit":5}}}' }],
    ['a body beyond 64 KiB', ok({ batch_ingest_config: { size_limit: 5 }, filler: 'x'.repeat(70_000) })],
  ] as [string, Answer][])('keeps the defaults after %s [fault 34]', async (_, answer) => {
    const info = await asked(answer);

    expect(info.batch).toEqual(defaults);
    expect([info.refusesMultipart(), info.takesGzip]).toEqual([false, false]);
  });

  it('hears that multipart is off and gzip on', async () => {
    const info = await asked(
      ok({ batch_ingest_config: { use_multipart_endpoint: false }, instance_flags: { gzip_body_enabled: true } }),
    );

    expect([info.refusesMultipart(), info.takesGzip]).toEqual([true, true]);
    info.refuseGzip();
    expect(info.takesGzip).toBe(false);
  });

  it('asks once, and does not fail when nobody answers', async () => {
    const server = await ingestServer();
    await server.close();
    const info = new ServiceInfo(clientOf(server.url), defaults);

    expect(info.ask()).toBe(info.ask());
    await info.ask();
    expect(info.batch).toEqual(defaults);
  });

  it('is within its bounds whatever the service says [fault 34]', async () => {
    let text = '';
    const info = new ServiceInfo(
      answering(() => ({ status: 200, headers: {}, text })),
      defaults,
      () => Number.POSITIVE_INFINITY,
    );
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.json(),
          fc.json().map((json) => `{"batch_ingest_config":{"size_limit":${json},"size_limit_bytes":${json}}}`),
        ),
        async (json) => {
          text = json;
          await info.ask();
          expect(info.batch.runs).toBeGreaterThanOrEqual(1);
          expect(info.batch.runs).toBeLessThanOrEqual(1_000);
          expect(info.batch.bytes).toBeGreaterThanOrEqual(65_536);
          expect(info.batch.bytes).toBeLessThanOrEqual(67_108_864);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('is waited for no longer than two seconds [fault 34]', async () => {
    const sent: HttpRequest[] = [];
    await new ServiceInfo(
      answering(() => ({ status: 404, headers: {}, text: '' }), sent),
      defaults,
    ).ask();

    expect(sent).toMatchObject([{ path: '/info', timeoutMs: 2_000 }]);
  });

  it.each<[string, () => HttpAnswer]>([
    [
      'no answer',
      () => {
        throw new Error('reset');
      },
    ],
    ['status 503', () => ({ status: 503, headers: {}, text: '' })],
    ['no JSON', () => ({ status: 200, headers: {}, text: '<html>' })],
  ])('is asked again after %s, later each time, and not after it has answered [fault 34]', async (_, answer) => {
    let nowMs = 0;
    const sent: HttpRequest[] = [];
    const asks: number[] = [];
    const good: HttpAnswer = { status: 200, headers: {}, text: '{"batch_ingest_config":{"size_limit":5}}' };
    const info = new ServiceInfo(
      answering(() => (asks.length < 7 ? answer() : good), sent),
      defaults,
      () => nowMs,
    );
    for (; nowMs < 3_600_000; nowMs += 10_000) {
      const before = sent.length;
      await info.ask();
      if (sent.length > before) asks.push(nowMs / 1_000);
    }

    expect(asks).toEqual([0, 30, 90, 210, 450, 930, 1_530, 2_130]);
    expect(info.batch.runs).toBe(5);
  });

  it('is not asked again after a missing page [fault 34]', async () => {
    let nowMs = 0;
    const sent: HttpRequest[] = [];
    const info = new ServiceInfo(
      answering(() => ({ status: 404, headers: {}, text: '' }), sent),
      defaults,
      () => nowMs,
    );
    for (; nowMs < 3_600_000; nowMs += 60_000) await info.ask();

    expect(sent).toHaveLength(1);
  });
});

/** A client whose answers the test decides. */
function answering(answer: () => HttpAnswer, sent: HttpRequest[] = []): HttpClient {
  const send = async (request: HttpRequest): Promise<HttpAnswer> => {
    sent.push(request);
    return answer();
  };
  return { send } as HttpClient;
}
