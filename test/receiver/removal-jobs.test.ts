import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import type { RemovalJob } from '#src/receiver/domain/removal.ts';
import { DEFAULT_SCOPE, MemoryStore, type Receiver, type Store } from '#src/receiver.ts';
import { gate } from '../support/gate.ts';
import { id, numberOf, post } from './conformance/support.ts';
import { openLocalStore, runsIn, storePath } from './local-store.ts';
import { slowed } from './slow-removal.ts';
import { call, start, startWithin } from './wire.ts';

const warn = vi.fn();
beforeAll(() => void vi.spyOn(diagnostics, 'warn').mockImplementation(warn));
afterAll(() => void vi.restoreAllMocks());

/** Stores two runs of a project, and one of another project. */
async function fill(store: Store, project: string): Promise<void> {
  await store.apply(DEFAULT_SCOPE, [post(1, { session_name: project }), post(2, { session_name: project }), post(3)]);
}

/** Starts a receiver that responds with a job after a short time, and stores the counts of the job as often. */
const startWith = (store: Store) => startWithin(store, { responseMs: 50, updateMs: 50 });

async function started(project: string) {
  const [memory, opened] = [new MemoryStore(), gate()];
  await fill(memory, project);
  const store = slowed(memory, opened);
  const calls = vi.spyOn(store, 'remove').mock.results;
  const receiver = await startWith(store);
  const removing = await remove(receiver, project);
  return { memory, store, calls, opened, receiver, removing, url: `${receiver.url}${removing.headers.location}` };
}

const remove = ({ url }: Pick<Receiver, 'url'>, project: string) =>
  call(`${url}/query/projects/${project}?confirm=${project}`, 'DELETE');

const numbers = async (store: Store) => (await runsIn(store)).map((run) => numberOf(run.id));

const jobOf = (state: RemovalJob['state'], runs: number) => ({
  ...DEFAULT_SCOPE,
  id: expect.any(String),
  target: { kind: 'project', id: expect.any(String) },
  state,
  runs,
  traces: runs,
  start_time: expect.stringMatching(/Z$/),
  update_time: expect.stringMatching(/Z$/),
  ...(state !== 'running' && { end_time: expect.stringMatching(/Z$/) }),
});

function storedJob(fields: Partial<RemovalJob> = {}): RemovalJob {
  const target = { kind: 'project', id: 'shop' } as const;
  const counts = { runs: 5, traces: 5, start_time: new Date().toISOString(), update_time: new Date().toISOString() };
  return { ...DEFAULT_SCOPE, id: randomUUID(), target, state: 'running', ...counts, ...fields };
}

describe('a deletion that takes longer than a second', () => {
  test('is answered with a job that tells its counts and its end', async () => {
    const { memory, opened, receiver, removing, url } = await started('a');
    expect([removing.status, removing.body]).toEqual([202, { job: jobOf('running', 1) }]);
    expect(await call(url, 'GET')).toMatchObject({ status: 200, body: jobOf('running', 1) });
    expect((await call(`${receiver.url}/query/jobs`, 'GET')).body).toEqual({ items: [jobOf('running', 1)] });
    expect(warn).not.toHaveBeenCalledWith(expect.stringContaining('the project a '));

    opened.open();
    await expect.poll(async () => (await call(url, 'GET')).body, { timeout: 5_000 }).toEqual(jobOf('done', 2));
    expect(warn).toHaveBeenCalledWith('the receiver deleted the project a of the tenant default: 2 runs of 2 traces');
    expect(await numbers(memory)).toEqual([3]);
    expect((await call(`${receiver.url}/query/jobs/${id(9)}`, 'GET')).status).toBe(404);
  });

  test('can be cancelled, and what is deleted stays deleted', async () => {
    const { memory, opened, url } = await started('b');
    expect(await call(url, 'DELETE')).toMatchObject({ status: 200, body: jobOf('cancelled', 1) });
    const text = 'the deletion of the project b of the tenant default ended after 1 run of 1 trace: it was cancelled';
    expect(warn).toHaveBeenCalledWith(text);
    opened.open();
    for (const method of ['DELETE', 'GET'] as const) {
      expect(await call(url, method)).toMatchObject({ status: 200, body: jobOf('cancelled', 1) });
    }
    expect(await numbers(memory)).toEqual([1, 2, 3]);
  });

  test('can be cancelled at another receiver of the store', async () => {
    const { store, calls, url, receiver } = await started('c');
    const other = await startWith(store);
    const cancelled = await call(url.replace(receiver.url, other.url), 'DELETE');
    expect(cancelled).toMatchObject({ status: 200, body: jobOf('cancelled', 1) });
    expect(await calls[0]?.value).toEqual({ runs: 1, traces: 1 });
    expect(await call(url, 'GET')).toMatchObject({ body: jobOf('cancelled', 1) });
  });

  test('tells why it failed', async () => {
    const { opened, url } = await started('d');
    opened.fail(new Error('no disk'));
    const failed = { ...jobOf('failed', 1), error: 'no disk' };
    await expect.poll(async () => (await call(url, 'GET')).body, { timeout: 5_000 }).toEqual(failed);
    const text = 'the deletion of the project d of the tenant default ended after 1 run of 1 trace: no disk';
    expect(warn).toHaveBeenCalledWith(text);
  });

  test('continues after a restart, and deletes nothing else', async () => {
    const path = storePath();
    const first = await openLocalStore(path);
    await fill(first, 'e');
    const receiver = await startWith(slowed(first, gate()));
    const { headers } = await remove(receiver, 'e');
    await receiver.close();
    expect(await numbers(first)).toEqual([1, 2, 3]);
    const [{ start_time = '', update_time = '' } = {}] = await first.jobs();
    expect(update_time >= start_time).toBe(true);
    await first.close();

    const second = await openLocalStore(path);
    const { url } = await startWith(second);
    const job = () => call(`${url}${headers.location}`, 'GET');
    await expect.poll(async () => (await job()).body, { timeout: 5_000 }).toEqual(jobOf('done', 3));
    expect(await numbers(second)).toEqual([3]);
  });
});

test('a deletion whose job cannot be stored ends', async () => {
  const memory = new MemoryStore();
  await fill(memory, 'g');
  const store = slowed(memory, gate());
  const removals = vi.spyOn(store, 'remove').mock.results;
  vi.spyOn(store, 'jobs').mockRejectedValue(new Error('no disk'));
  const receiver = await startWith(store);
  expect((await remove(receiver, 'g')).status).toBeGreaterThanOrEqual(500);
  expect(await removals[0]?.value).toEqual({ runs: 1, traces: 1 });
  const states = async () => (await memory.jobs()).map(({ state }) => state);
  await expect.poll(states, { timeout: 5_000 }).toEqual(['failed']);
});

test('a deletion that is cancelled while the store cannot write is stored as cancelled later', async () => {
  const { memory, store, url } = await started('h');
  const put = vi.spyOn(store, 'putJob').mockRejectedValue(new Error('no disk'));
  expect((await call(url, 'DELETE')).status).toBeGreaterThanOrEqual(500);
  put.mockRestore();
  const states = async () => (await memory.jobs()).map(({ state }) => state);
  await expect.poll(states, { timeout: 5_000 }).toEqual(['cancelled']);
});

test('a deletion that its receiver stops in the first second continues at the next start', async () => {
  const memory = new MemoryStore();
  await fill(memory, 'i');
  const store = slowed(memory, gate());
  const removing = vi.spyOn(store, 'remove');
  const receiver = await start({ store });
  const response = remove(receiver, 'i').catch(() => undefined);
  await vi.waitFor(() => expect(removing).toHaveBeenCalled());
  await receiver.close();
  await response;
  expect(await memory.jobs()).toMatchObject([{ state: 'running', released: true }]);
  expect(await numbers(memory)).toEqual([1, 2, 3]);
});

test('a receiver continues the jobs of receivers that stopped a minute to a day ago', async () => {
  const store = new MemoryStore();
  await store.apply(
    DEFAULT_SCOPE,
    [1, 2, 3].map((number) => post(number, { session_name: `project ${number}` })),
  );
  const ages = [50_000, 61_000, 25 * 3_600_000];
  const jobs = ages.map((ageMs, at) =>
    storedJob({
      target: { kind: 'project', id: `project ${at + 1}` },
      update_time: new Date(Date.now() - ageMs).toISOString(),
    }),
  );
  const ended = storedJob({
    state: 'cancelled',
    update_time: '2026-01-01T00:00:00Z',
    end_time: new Date().toISOString(),
  });
  for (const job of [...jobs, ended]) await store.putJob(job);
  const { url } = await startWith(store);
  const stateOf = async (job: RemovalJob | undefined) => (await call(`${url}/query/jobs/${job?.id}`, 'GET')).body;
  await expect.poll(() => stateOf(jobs[1]), { timeout: 5_000 }).toMatchObject({ state: 'done', runs: 6, traces: 6 });
  const failed = { state: 'failed', runs: 5, error: 'no receiver continued it within a day' };
  await expect.poll(() => stateOf(jobs[2])).toMatchObject(failed);
  expect(await stateOf(jobs[0])).toMatchObject({ state: 'running', runs: 5 });
  expect(await stateOf(ended)).toMatchObject({ state: 'cancelled', runs: 5 });
  expect(await numbers(store)).toEqual([1, 3]);
});

test('a deletion of less than a second becomes no job', async () => {
  const store = new MemoryStore();
  await fill(store, 'f');
  const receiver = await start({ store });
  expect(await remove(receiver, 'f')).toMatchObject({ status: 200, body: { runs: 2, traces: 2 } });
  expect((await call(`${receiver.url}/query/jobs`, 'GET')).body).toEqual({ items: [] });
});
