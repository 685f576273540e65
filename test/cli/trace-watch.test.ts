import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TraceWatch } from '../../src/cli/trace-watch.ts';
import { MemoryStore, type MemoryStoreOptions } from '../../src/receiver/memory-store.ts';
import type { RunFields } from '../../src/receiver/store.ts';
import { makeOpenRun, makeRun } from './records.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** A watch of a store of its own; a drawing is the names of the runs. */
function makeWatch(options?: MemoryStoreOptions) {
  const store = new MemoryStore(options);
  const shown: string[] = [];
  const draw = (runs: readonly { name: string }[]): string => runs.map(({ name }) => name).join(' ');
  const watch = new TraceWatch({ store, draw, show: (text) => shown.push(text) });
  const take = (...runs: ({ id: string } & RunFields)[]): Promise<void> =>
    store.apply(runs.map(({ id, ...fields }) => ({ kind: 'post', id, fields, attachments: [] })));
  return { watch, shown, take, pass: (ms: number) => vi.advanceTimersByTimeAsync(ms) };
}

describe('a trace', () => {
  it('is shown once, when it has finished and nothing has come for a moment', async () => {
    const { shown, take, pass } = makeWatch();
    await take(makeRun('1', 'ask'));
    await pass(299);
    await take(makeRun('1.1', 'call'));
    await pass(299);
    expect(shown).toEqual([]);
    await pass(1);
    expect(shown).toEqual(['ask call']);
    await pass(60_000);
    expect(shown).toEqual(['ask call']);
  });

  it('waits for its root without end', async () => {
    const { shown, take, pass } = makeWatch();
    await take(makeOpenRun('1', 'ask'), makeRun('1.1', 'call'));
    await pass(3_600_000);
    expect(shown).toEqual([]);
    await take(makeRun('1', 'ask'));
    await pass(300);
    expect(shown).toEqual(['ask call']);
  });

  it('is shown as incomplete after a while when its root has ended and a child has not', async () => {
    const { shown, take, pass } = makeWatch();
    await take(makeRun('1', 'ask'), makeOpenRun('1.1', 'call'));
    await pass(2_299);
    expect(shown).toEqual([]);
    await pass(1);
    expect(shown).toEqual(['ask call\n(incomplete: 1 run has not ended)']);
  });

  it('is shown after a while when its first parent never comes', async () => {
    const { shown, take, pass } = makeWatch();
    await take(makeRun('1.1', 'call'));
    await pass(2_300);
    expect(shown).toEqual(['call']);
  });

  it('is shown again when more of it comes, each time after a longer quiet', async () => {
    const { shown, take, pass } = makeWatch();
    await take(makeRun('1', 'ask'));
    await pass(300);
    await take(makeRun('1.1', 'late'), makeRun('1.2', 'later'));
    await pass(599);
    expect(shown).toEqual(['ask']);
    await pass(1);
    await take(makeRun('1.3', 'last'));
    await pass(1_200);
    expect(shown).toEqual([
      'ask',
      '(again, with 2 more runs)\nask late later',
      '(again, with 1 more run)\nask late later last',
    ]);
  });

  it('is shown again when a run has got another name or an end, and not when a message came twice', async () => {
    const { shown, take, pass } = makeWatch();
    await take(makeRun('1', 'ask'));
    await pass(300);
    await take(makeRun('1', 'ask'));
    await pass(60_000);
    expect(shown).toEqual(['ask']);
    await take(makeRun('1', 'asked'));
    await pass(60_000);
    expect(shown).toEqual(['ask', '(again, as it is now)\nasked']);
  });

  it('is shown without the others', async () => {
    const { shown, take, pass } = makeWatch();
    await take(makeRun('1', 'first'), makeOpenRun('2', 'second'));
    await pass(300);
    expect(shown).toEqual(['first']);
  });

  it('is left out when the store has forgotten it', async () => {
    const { watch, shown, take } = makeWatch({ runsMax: 1 });
    await take(makeRun('1', 'first'));
    await take(makeRun('2', 'second'));
    await watch.end();
    expect(shown).toEqual(['second']);
  });
});

describe('the end', () => {
  it('shows at once what has not been shown, finished or not, and watches no more', async () => {
    const { watch, shown, take, pass } = makeWatch();
    await take(makeRun('1', 'shown'));
    await pass(300);
    await take(makeRun('2', 'finished'), makeOpenRun('3', 'open'), makeOpenRun('3.1', 'open too'));
    await watch.end();
    expect(shown).toEqual(['shown', 'finished', 'open open too\n(incomplete: 2 runs have not ended)']);
    await take(makeRun('4', 'after'));
    await pass(60_000);
    expect(shown.length).toBe(3);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('can be held until nothing has come for a moment', async () => {
    const { watch, take, pass } = makeWatch();
    let isQuiet = false;
    void watch.quiet().then(() => {
      isQuiet = true;
    });
    await pass(299);
    await take(makeRun('1', 'ask'));
    await pass(299);
    expect(isQuiet).toBe(false);
    await pass(1);
    expect(isQuiet).toBe(true);
  });
});
