import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceInfo } from '../../src/export/service-info.ts';
import type { HttpAnswer, HttpClient, HttpRequest } from '../../src/http/client.ts';
import { clientOf } from '../support/http-client.ts';
import { type Answer, ingestServer } from '../support/ingest-server.ts';

const defaults = { runs: 100, bytes: 20_971_520 };

async function asked(answer: Answer, size = defaults): Promise<ServiceInfo> {
  await using server = await ingestServer(() => ({ status: 202 }), answer);
  const info = new ServiceInfo(clientOf(server.url), size);
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
    ['a body beyond 64 KiB', ok({ batch_ingest_config: { size_limit: 5 }, filler: 'x'.repeat(70_000) })],
  ] as [string, Answer][])('keeps the defaults after %s [fault 34]', async (_, answer) => {
    const info = await asked(answer);

    expect(info.batch).toEqual(defaults);
    expect([info.refusesMultipart(), info.takesGzip]).toEqual([false, false]);
  });

  it.each([
    ['no limit', ok({}), 100, 500],
    ['a polluting key', { status: 200, body: '{"__proto__":{"batch_ingest_config":{"size_limit":5}}}' }, 100, 500],
    ['no limit, beside a limit of the application', ok({}), 30, 30],
  ] as [string, Answer, number, number][])(
    'allows, after a response with %s, the right number of runs',
    async (_, answer, own, runs) => {
      expect((await asked(answer, { ...defaults, runs: own })).batch.runs).toBe(runs);
    },
  );

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

const KIB = 1024;
const MIB = 1024 * KIB;

/** The client is not used. */
const newLimit = () => new ServiceInfo({} as HttpClient, defaults).limit;

/** A limit after a refusal of so many bytes. */
function refused(bytes: number): ServiceInfo['limit'] {
  const limit = newLimit();
  limit.refused(bytes);
  return limit;
}

describe('the limit of a batch', () => {
  it.each([
    [10 * MIB, 5 * MIB],
    [2 * MIB + 1, MIB],
    [128 * KIB + 2, 64 * KIB + 1],
    [128 * KIB, 64 * KIB],
    [128 * KIB - 2, 64 * KIB],
    [10, 64 * KIB],
  ])('of a service that has refused %i bytes is %i bytes [fault 11]', (bytes, expected) => {
    expect(refused(bytes).size).toEqual({ runs: 100, bytes: expected });
  });

  it('is not raised by a refusal [fault 11]', () => {
    const limit = refused(2 * MIB);
    limit.refused(10 * MIB);
    expect(limit.size.bytes).toBe(MIB);
  });

  it.each([
    [500_000, 1_010_000],
    [499_999, 1_000_000],
    [1_000_000, 1_010_000],
  ])('of 1 000 000 bytes is after an accepted batch of %i bytes %i bytes [fault 11]', (bytes, expected) => {
    const limit = refused(2_000_000);
    limit.accepted(bytes);
    expect(limit.size.bytes).toBe(expected);
  });

  it('is back where it was after 70 full batches, and goes no further than the service says [fault 11]', () => {
    const limit = refused(20 * MIB);
    for (let batch = 0; batch < 69; batch++) limit.accepted(limit.size.bytes);
    expect(limit.size.bytes).toBeLessThan(20 * MIB);
    limit.accepted(limit.size.bytes);
    expect(limit.size).toEqual(defaults);
    limit.accepted(20 * MIB);
    expect(limit.size).toEqual(defaults);
  });

  it.each([
    [50_000, 50_000],
    [5 * MIB, MIB],
  ])('is, lowered to 1 MiB, when the service says %i bytes, %i bytes', (said, expected) => {
    const limit = refused(2 * MIB);
    limit.set({ runs: 7, bytes: said });
    expect(limit.size).toEqual({ runs: 7, bytes: expected });
  });

  it('is what the service says, where nothing was refused, more than the default too', () => {
    const limit = newLimit();
    limit.set({ runs: 500, bytes: 40 * MIB });
    expect(limit.size).toEqual({ runs: 500, bytes: 40 * MIB });
  });
});
