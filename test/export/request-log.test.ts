import { describe, expect, it } from 'vitest';
import { Ledger, totalStats } from '../../src/export/ledger.ts';
import type { Load } from '../../src/export/request-log.ts';
import type { HttpAnswer, HttpClient, HttpRequest } from '../../src/http/client.ts';
import { clientOf } from '../support/http-client.ts';
import { ingestServer } from '../support/ingest-server.ts';
import { published } from '../support/published.ts';
import { requestLog } from '../support/request-log.ts';

const BATCH: Load = { kind: 'multipart', runs: 2 };
const POST: HttpRequest = { method: 'POST', path: '/runs/multipart', body: ['é', Buffer.alloc(3)] };

/** A client that does as it is told, `ms` of the clock later. */
function clientThat(answer: () => HttpAnswer, ms = 0) {
  const time = { nowMs: 100 };
  const send = async (): Promise<HttpAnswer> => {
    time.nowMs += ms;
    return answer();
  };
  return { client: { send } as unknown as HttpClient, monotonicMs: () => time.nowMs };
}

const answering = (status: number, ms = 0) => clientThat(() => ({ status, headers: {}, text: 'canary' }), ms);

describe('a log of requests', () => {
  it('counts what is sent over the wire, by kind, and times it', async () => {
    await using server = await ingestServer();
    const ledger = new Ledger();
    const log = requestLog({ ledger });
    await log.send(clientOf(server.url), BATCH, POST);
    await log.send(clientOf(server.url), { kind: 'simple', runs: 1 }, { method: 'PATCH', path: '/runs/1' });

    const { requests, latency, lastError } = totalStats([ledger]);
    expect([requests, lastError]).toEqual([{ multipart: 1, simple: 1 }, undefined]);
    expect(latency?.p50Ms).toBeGreaterThan(0);
    expect(server.received).toHaveLength(2);
  });

  it('keeps durations by its clock', async () => {
    const ledger = new Ledger();
    for (const ms of [5, 40]) {
      const { client, monotonicMs } = answering(202, ms);
      await requestLog({ ledger, monotonicMs }).send(client, BATCH, POST);
    }
    expect(totalStats([ledger]).latency).toEqual({ p50Ms: 5, p99Ms: 40 });
  });

  it.each([
    [202, undefined],
    [409, 'status 409'],
    [401, 'status 401: the API key was rejected'],
    [413, 'status 413'],
    [503, 'status 503'],
  ])('of status %i keeps the error %j, and nothing of the answer', async (status, message) => {
    const ledger = new Ledger();
    const before = new Date().toISOString();
    const { client } = answering(status);
    await requestLog({ ledger }).send(client, BATCH, POST);
    const { lastError } = totalStats([ledger]);

    expect(lastError?.message).toBe(message);
    if (message === undefined) return;
    expect(lastError?.at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    // Both clocks are cut, to the millisecond and to the microsecond.
    expect(Date.parse(lastError?.at ?? '') - Date.parse(before)).toBeGreaterThanOrEqual(-20);
  });

  it('keeps the last error when requests succeed again', async () => {
    const ledger = new Ledger();
    for (const status of [503, 500, 202]) await requestLog({ ledger }).send(answering(status).client, BATCH, POST);
    expect(ledger.lastError?.message).toBe('status 500');
  });

  it('counts a request without an answer, and hands its error on as it is', async () => {
    const [ledger, refused] = [new Ledger(), Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })];
    const { client, monotonicMs } = clientThat(() => {
      throw refused;
    }, 3);
    await expect(requestLog({ ledger, monotonicMs }).send(client, BATCH, POST)).rejects.toBe(refused);
    expect(totalStats([ledger])).toMatchObject({
      requests: { multipart: 1 },
      latency: { p99Ms: 3 },
      lastError: { message: 'nothing listens there; check the endpoint, and that the service runs (ECONNREFUSED)' },
    });
  });

  it('tells no secret of an error that has one', async () => {
    const ledger = new Ledger();
    const { client } = clientThat(() => {
      throw new Error('bad header: lsv2_canary through http://me:canary@proxy');
    });

    await expect(requestLog({ ledger }).send(client, BATCH, POST)).rejects.toThrow();
    expect(JSON.stringify(totalStats([ledger]))).not.toContain('canary');
  });

  it('takes what is broken off by us for no error of the service', async () => {
    const [ledger, stop] = [new Ledger(), new AbortController()];
    const { client } = clientThat(() => {
      stop.abort();
      throw new Error('closed');
    });
    await expect(requestLog({ ledger }).send(client, BATCH, { ...POST, signal: stop.signal })).rejects.toThrow();
    expect(totalStats([ledger])).toMatchObject({ latency: undefined, lastError: undefined });
  });
});

describe('the channel of requests', () => {
  it('has a message for each end, with what was sent and how it went, and no payload', async () => {
    const messages = published('runspan:request:end');
    const { client, monotonicMs } = answering(202, 8);
    await requestLog({ monotonicMs, endpoint: 'https://traces.example' }).send(client, BATCH, POST);

    expect(messages).toEqual([
      {
        endpoint: 'https://traces.example',
        kind: 'multipart',
        runs: 2,
        status: 202,
        error: undefined,
        durationMs: 8,
        bytes: 5,
      },
    ]);
  });

  it('tells of requests that were refused or not answered', async () => {
    const messages = published('runspan:request:end');
    const { client } = clientThat(() => {
      throw Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    });
    await requestLog().send(answering(503).client, BATCH, POST);
    await requestLog()
      .send(client, BATCH, POST)
      .catch(() => {});

    expect(messages.map(({ status, error }) => [status, error])).toEqual([
      [503, 'status 503'],
      [undefined, 'nothing listens there; check the endpoint, and that the service runs (ECONNREFUSED)'],
    ]);
  });
});
