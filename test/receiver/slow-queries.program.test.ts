import { expect, onTestFinished, test } from 'vitest';
import { startNode } from '../support/program.ts';
import { storePath } from './local-store.ts';
import { sendJson } from './wire.ts';

const RUNS = 8_000;
const KEYS = Array.from({ length: 25 }, (_, at) => `key${at}`);
const START = Date.parse('2026-11-20T07:00:00Z');

function runOf(number: number): object {
  const metadata = Object.fromEntries(KEYS.map((key) => [key, `the value of ${key} in run ${number}`]));
  const fields = { name: 'n', run_type: 'chain', start_time: new Date(START + number).toISOString() };
  const id = `00000000-0000-7000-8000-${`${number}`.padStart(12, '0')}`;
  return { id, ...fields, inputs: { text: 'zebra' }, extra: { metadata } };
}

/** Starts a receiver with an SQLite file in another process, with runs for which `slow` takes seconds. */
async function startFilled() {
  const { printed, child, ended } = startNode(['test/fixtures/store-program.mjs', storePath()], {}, undefined, 60_000);
  onTestFinished(() => void child.kill('SIGKILL'));
  const [url = ''] = await printed(/http:\S+/);
  for (let at = 0; at < RUNS; at += 1_000) {
    const post = Array.from({ length: 1_000 }, (_, index) => runOf(at + index + 1));
    expect((await sendJson({ url }, 'POST', '/runs/batch', { post })).status).toBe(202);
  }
  const get = async (path: string, signal?: AbortSignal) => {
    const response = await fetch(url + path, signal ? { signal } : {});
    await response.text();
    return response.status;
  };
  /** Starts a query that compares each run 49 times. Resolves when the receiver has received the request. */
  const startSlow = async (signal?: AbortSignal): Promise<{ ended: Promise<string> }> => {
    const conditions = Array.from({ length: 49 }, (_, at) => `meta.${KEYS[at % 25]}:*nothing${at}*`);
    const query = get(`/query/runs?filter=${encodeURIComponent(conditions.join(' OR '))}`, signal);
    const ended = query.then(
      () => 'slow',
      () => 'left',
    );
    await get('/healthz');
    return { ended };
  };
  const errors = async (): Promise<string> => {
    child.kill('SIGKILL');
    return (await ended).stderr;
  };
  return { get, startSlow, errors };
}

test('lists, searches and statistics do not wait for a slow query, and a query ends when its client leaves', async () => {
  const { get, startSlow, errors } = await startFilled();
  const search = async () => get(`/query/runs?filter=${encodeURIComponent('zebra name:n latency<0s')}`);
  const first = await startSlow();
  const quick = Promise.all([get('/query/runs'), get('/query/traces'), search(), get('/query/statistics')]);
  expect(await Promise.race([first.ended, quick])).toEqual([200, 200, 200, 200]);

  // All threads for slow queries are busy now.
  const [leaving, last] = [new AbortController(), await startSlow()];
  const left = await startSlow(leaving.signal);
  // A query that waits for a thread ends too.
  const behind = await startSlow(leaving.signal);
  const waiting = search();
  leaving.abort();
  expect(await Promise.all([left.ended, behind.ended])).toEqual(['left', 'left']);
  expect(await Promise.race([first.ended, last.ended, waiting])).toBe(200);
  expect(await errors()).toBe('');
}, 60_000);
