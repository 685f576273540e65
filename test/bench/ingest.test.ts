import { describe, expect, it } from 'vitest';
import { createReceiver, DEFAULT_SCOPE, MemoryStore, parsedQuery } from '#src/receiver.ts';
import { complaintOf } from '../../bench/complaint.mjs';
import { intakeFigures } from '../../bench/ingest.mjs';
import { Intake } from '../../bench/receiver/intake.mjs';

const ID = '019a9f8e-0d3c-7000-8000-000000000001';
const OTHER = '019a9f8e-0d3c-7000-8000-000000000002';

const START = { name: 'a', run_type: 'chain', start_time: '2026-11-20T10:00:00.000000Z', inputs: {} };
const END = { end_time: '2026-11-20T10:00:01.000000Z' };

type Send = (method: string, path: string, record: object) => Promise<{ status: number; bytes: number }>;

/** Returns what the receiver counts while `work` sends requests. An earlier run does not count. */
async function countOf(work: (send: Send) => Promise<unknown>, isSimple = false) {
  const store = new MemoryStore();
  const totals = async () => (await store.statistics(DEFAULT_SCOPE, parsedQuery({}))).total;
  const intake = new Intake(store, totals, isSimple);
  const receiver = await createReceiver({ store });
  const send: Send = async (method, path, record) => {
    const body = JSON.stringify(record);
    const headers = { 'content-type': 'application/json' };
    const { status } = await fetch(receiver.url + path, { method, headers, body });
    return { status, bytes: body.length };
  };
  await send('POST', '/runs', { id: '019a9f8e-0d3c-7000-8000-000000000009', ...START });
  await intake.reset();
  await work(send);
  const count = await intake.count();
  await receiver.close();
  intake.close();
  return count;
}

describe('the count of a receiver', () => {
  it('has each run that is stored with its end, and the bytes of all bodies', async () => {
    let bytes = 0;
    const count = await countOf(async (send) => {
      for (const [method, path, record] of [
        ['POST', '/runs', { id: ID, ...START, ...END }],
        ['POST', '/runs', { id: OTHER, ...START }],
        ['PATCH', `/runs/${OTHER}`, END],
      ] as const) {
        bytes += (await send(method, path, record)).bytes;
      }
    });
    expect(count).toMatchObject({ posted: 2, complete: 2, startRecords: 2, endRecords: 2, requests: 3, bytes });
    expect(complaintOf(count, 2)).toBeUndefined();
  });

  it('reports a run without its end, and a run that arrived twice', async () => {
    const unended = await countOf((send) => send('POST', '/runs', { id: ID, ...START }));
    expect(complaintOf(unended, 1)).toBe('1 runs created, 0 arrived whole');
    const twice = await countOf(async (send) => {
      for (let time = 0; time < 2; time++) await send('POST', '/runs', { id: ID, ...START, ...END });
    });
    expect(complaintOf(twice, 1)).toBe('2 starts arrived of 1 runs');
  });

  it('counts the requests of a receiver without a multipart route', async () => {
    const statuses: number[] = [];
    const count = await countOf(async (send) => {
      for (const path of ['/runs/multipart', '/runs']) {
        statuses.push((await send('POST', path, { id: ID, ...START, ...END })).status);
      }
    }, true);
    expect(statuses).toEqual([404, 202]);
    expect(count).toMatchObject({ posted: 1, requests: 1 });
  });
});

describe('the figures of a driver that sends to a receiver', () => {
  const count = { requests: 3, bytes: 4_000_000, cpuUs: 500_000 };

  it('are bytes, and the processor time of the receiver', () => {
    expect(intakeFigures(count, 1_000, { runsPerSecond: 500 })).toEqual({
      requests: 3,
      bytesPerRun: 4_000,
      mbPerSecond: 2,
      receiverCpuUsPerRun: 500,
    });
  });

  it('include the time of indexing, if the receiver has indexed', () => {
    const indexed = { seconds: 3, cpuUs: 900_000 };
    expect(intakeFigures({ ...count, indexed }, 1_000, { runsPerSecond: 500 })).toMatchObject({
      indexedRunsPerSecond: 200,
      indexedCpuUsPerRun: 900,
    });
  });
});
