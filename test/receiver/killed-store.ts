import { expect } from 'vitest';
import { loadEngine } from '#src/receiver/store/sqlite/file/database.ts';
import { openToWrite } from '#src/receiver/store/sqlite/file/file.ts';
import { isoTimestamp } from '#src/run/time.ts';
import { startNode } from '../support/program.ts';
import { sendJson } from './wire.ts';

/** The runs in one request, which are stored completely or not at all. */
const RUNS = 20;
const REQUESTS_AT_ONCE = 4;

export function idOf(request: number, run: number): string {
  const hex = (number: number, length: number) => number.toString(16).padStart(length, '0');
  return `0193b3a0-${hex(run, 4)}-7000-8000-${hex(request, 12)}`;
}

/** Returns one request's body: a trace with a root and its nested runs. */
function batch(number: number): unknown {
  const root = idOf(number, 0);
  return {
    post: Array.from({ length: RUNS }, (_, run) => ({
      id: idOf(number, run),
      name: `run ${run}`,
      run_type: 'chain',
      start_time: isoTimestamp(Date.UTC(2026, 10, 20) * 1_000 + number * 1_000 + run),
      inputs: { text: `request ${number} ${'word '.repeat(200)}` },
      ...(run === 0 ? {} : { parent_run_id: root }),
    })),
    patch: [],
  };
}

/** Sends the request with this number, and returns the response status. */
export async function sendRequest(url: string | undefined, number: number): Promise<number> {
  return (await sendJson({ url: `${url}` }, 'POST', '/runs/batch', batch(number))).status;
}

/**
 * Sends runs to a receiver in a separate process, kills it some time after the first response, and asserts that all
 * acknowledged runs are stored, no request is stored partially, and the file is intact. Starts with request number
 * `from` and returns the next number.
 */
export async function killedUnderLoad(path: string, from: number, afterMs: number): Promise<number> {
  const { child, printed, ended } = startNode(['test/fixtures/store-program.mjs', path]);
  const [url] = await printed(/http:\S+/);
  const acknowledged: number[] = [];
  let next = from;
  let isDead = false;
  const send = async (): Promise<void> => {
    while (!isDead) {
      const number = next;
      next += 1;
      if ((await sendRequest(url, number)) !== 202) continue;
      acknowledged.push(number);
      if (acknowledged.length === 1) setTimeout(() => child.kill('SIGKILL'), afterMs);
    }
  };
  const senders = Array.from({ length: REQUESTS_AT_ONCE }, () => send().catch(() => {}));
  await ended;
  isDead = true;
  await Promise.all(senders);
  expect(acknowledged.length).toBeGreaterThan(0);
  await expectWhole(path, acknowledged);
  return next;
}

/** Asserts that the runs of these requests are stored, that no request is stored partially, and that the file is intact. */
export async function expectWhole(path: string, acknowledged: readonly number[]): Promise<void> {
  const { connection, lock } = openToWrite(await loadEngine(), path);
  try {
    const requests = connection.all<{ request: string; runs: number }>(
      'SELECT substr(hex(id), 21) AS request, count(start_us) AS runs FROM runs GROUP BY 1',
    );
    const there = new Map(requests.map(({ request, runs }) => [Number.parseInt(request, 16), runs]));
    expect(acknowledged.filter((number) => there.get(number) !== RUNS)).toEqual([]);
    expect([...there.values()].filter((runs) => runs !== RUNS)).toEqual([]);
    const count = (sql: string): number => connection.number(`SELECT count(*) FROM ${sql}`);
    expect(count('payloads')).toBe(count('runs'));
    expect(count('details')).toBe(count('runs'));
    expect(count(`traces WHERE runs <> ${RUNS} OR pending <> ${RUNS}`)).toBe(0);
    // Each run is indexed or waiting to be indexed.
    expect(count('runs WHERE n NOT IN (SELECT rowid FROM words) AND n NOT IN unindexed')).toBe(0);
    expect(connection.all('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
  } finally {
    connection.close();
    lock.close();
  }
}
