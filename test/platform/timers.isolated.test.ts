import { AsyncLocalStorage } from 'node:async_hooks';
import { getEventListeners } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { delay, runInRootContext, setSoon, setTimer } from '#src/platform/timers.ts';
import { ingestServer } from '../support/ingest-server.ts';
import { moduleText, runNode } from '../support/program.ts';

const storage = new AsyncLocalStorage<string>();
const seenIn = (start: (callback: () => void) => unknown): Promise<string | undefined> =>
  storage.run('request', () => new Promise((resolve) => start(() => resolve(storage.getStore()))));

describe('timers', () => {
  it('call the callback outside the async context in which they were set', async () => {
    expect(await seenIn((callback) => setTimer(callback, 1))).toBeUndefined();
    expect(await seenIn(setSoon)).toBeUndefined();
    expect(await seenIn((callback) => setImmediate(callback))).toBe('request');
  });

  it('work with fake timers of the application', async () => {
    vi.useFakeTimers();

    const inTime = new Promise((resolve) => setTimer(() => resolve('in time'), 1));
    const soon = new Promise((resolve) => setSoon(() => resolve('soon')));
    expect([await inTime, await soon]).toEqual(['in time', 'soon']);
  });

  it('accept a time that has already passed, without a warning of Node', async () => {
    const warn = vi.spyOn(process, 'emitWarning');

    await new Promise<void>((resolve) => setTimer(resolve, -0.5));
    await delay(-0.5, undefined);
    expect(warn).not.toHaveBeenCalled();
  });
});

it('runInRootContext calls the function immediately with its arguments, and returns its result', () => {
  const read = (a: number, b: number) => [storage.getStore(), a + b];

  expect(storage.run('request', () => runInRootContext(read, 1, 2))).toEqual([undefined, 3]);
});

describe('delay', () => {
  it('rejects with the reason if its signal is aborted before or during the delay', async () => {
    const ends = new AbortController();
    const waiting = delay(1_000_000, ends.signal);
    ends.abort(new Error('over'));

    await expect(waiting).rejects.toThrow('over');
    await expect(delay(1_000_000, ends.signal)).rejects.toThrow('over');
  });

  it('resolves after its time, which may be longer than a timer supports', async () => {
    const signal = new AbortController().signal;
    await delay(1, signal);
    const ends = new AbortController();
    const waiting = delay(1e12, ends.signal);
    await new Promise((resolve) => setImmediate(resolve));
    ends.abort(new Error('still waiting'));

    await expect(waiting).rejects.toThrow('still waiting');
  });

  it('removes its listener from the signal when it settles', async () => {
    const ends = new AbortController();
    await delay(1, ends.signal);
    expect(getEventListeners(ends.signal, 'abort')).toEqual([]);
    const waiting = delay(1_000_000, ends.signal);
    ends.abort(new Error('over'));
    await expect(waiting).rejects.toThrow('over');
    expect(getEventListeners(ends.signal, 'abort')).toEqual([]);
  });

  it.each([
    [true, true],
    [false, false],
    [undefined, false],
  ])('with holdsProcess %s keeps the process alive: %s', async (holdsProcess, isHeld) => {
    const unref = vi.spyOn(Object.getPrototypeOf(setTimer(() => {}, 1)), 'unref');
    await Promise.all([delay(1, undefined, holdsProcess), new Promise<void>((resolve) => setTimer(resolve, 2))]);
    expect(unref).toHaveBeenCalledTimes(isHeld ? 0 : 1);
  });
});

it('the library, imported during a request, runs timers and requests outside the async context of the request', async () => {
  await using server = await ingestServer();
  const program = `
      import { AsyncLocalStorage } from 'node:async_hooks';
      const request = new AsyncLocalStorage();
      const { configure, traceable, flush } = await request.run('the first request', () => import('runspan'));
      const later = new AsyncLocalStorage();
      const seen = [];
      const note = () => seen.push(request.getStore() ?? 'none', later.getStore() ?? 'none');
      const { Agent } = await import('undici');
      const agent = new Agent();
      const sent = new Promise((resolve) => {
        const dispatcher = { request: (options) => { note(); resolve(); return agent.request(options); } };
        configure({ endpoint: ${JSON.stringify(server.url)}, dispatcher, limits: { lingerMs: 1 } });
      });
      request.run('the second request', () => later.run('this, too', traceable(() => 1)));
      await sent;
      request.run('the third request', () => { traceable(() => 2)(); void flush(); });
      await flush();
      console.log(JSON.stringify([...new Set(seen)]));
      process.exit();
    `;
  const { stdout, stderr } = await runNode(moduleText(program));

  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual(['none']);
});
