import { beforeEach, describe, expect, it, vi } from 'vitest';
import { TraceWatch, type TraceWatchOptions } from '#src/cli/dev/trace-watch.ts';
import type { RunFields } from '#src/receiver/domain/run-message.ts';
import { MemoryStore } from '#src/receiver/store/memory-store.ts';
import { DEFAULT_SCOPE } from '#src/receiver.ts';
import { gate } from '../support/gate.ts';
import { logLines } from '../support/log-lines.ts';
import { makeOpenRun, makeRun } from '../support/records.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));

/** Returns a watch of a new store. A drawing consists of the names of the runs. */
function makeWatch(options: Partial<TraceWatchOptions> = {}) {
  const store = new MemoryStore();
  const shown: string[] = [];
  const draw = (runs: readonly { name: string }[]): string => runs.map(({ name }) => name).join(' ');
  const watch = new TraceWatch({ store, draw, show: (text) => shown.push(text), rememberedMax: 2, ...options });
  const posted = ({ id, ...fields }: { id: string } & RunFields) =>
    ({ kind: 'post', id, fields, attachments: [] }) as const;
  const take = (...runs: Parameters<typeof posted>[0][]) => store.apply(DEFAULT_SCOPE, runs.map(posted));
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  /** Expects that the first drawing is shown after a time, and not before. */
  const expectFirst = async (ms: number, drawing: string): Promise<void> => {
    await pass(ms - 1);
    expect(shown).toEqual([]);
    await pass(1);
    expect(shown).toEqual([drawing]);
  };
  return { store, watch, shown, take, pass, expectFirst };
}

describe('a trace', () => {
  it('is drawn once when it has finished and no run has arrived for 300 ms', async () => {
    const { shown, take, pass, expectFirst } = makeWatch();
    await take(makeRun('1', 'ask'));
    await pass(299);
    await take(makeRun('1.1', 'call'));
    await expectFirst(300, 'ask call');
    await pass(60_000);
    expect(shown).toEqual(['ask call']);
  });

  it('is not drawn before its root has ended', async () => {
    const { shown, take, pass, expectFirst } = makeWatch();
    await take(makeOpenRun('1', 'ask'), makeRun('1.1', 'call'));
    await pass(3_600_000);
    expect(shown).toEqual([]);
    await take(makeRun('1', 'ask'));
    await expectFirst(600, 'ask call');
  });

  it('is drawn as incomplete after 2.1 s if its root has ended and a child has not', async () => {
    const { take, expectFirst } = makeWatch();
    await take(makeRun('1', 'ask'), makeOpenRun('1.1', 'call'));
    await expectFirst(2_100, 'ask call\n(incomplete: 1 run has not ended)');
  });

  it('is drawn after 2.1 s if a parent is missing', async () => {
    const { take, expectFirst } = makeWatch();
    await take(makeRun('1.1', 'call'));
    await expectFirst(2_100, 'call');
  });

  it('is drawn again if more runs arrive, with a delay that doubles', async () => {
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
      '(updated, with 2 more runs)\nask late later',
      '(updated, with 1 more run)\nask late later last',
    ]);
  });

  it('is drawn after a delay of at most 4.8 s', async () => {
    const { take, pass, expectFirst } = makeWatch();
    for (let looks = 0; looks < 10; looks++) {
      await take(makeOpenRun('1', 'ask'));
      await pass(60_000);
    }
    await take(makeRun('1', 'ask'));
    await expectFirst(4_800, 'ask');
  });

  it('is drawn again if a run changes, and not if a message arrives twice', async () => {
    const { shown, take, pass } = makeWatch();
    await take(makeRun('1', 'ask'));
    await pass(300);
    await take(makeRun('1', 'ask'));
    await pass(60_000);
    expect(shown).toEqual(['ask']);
    await take(makeRun('1', 'asked'));
    await pass(60_000);
    expect(shown).toEqual(['ask', '(updated)\nasked']);
  });

  it('is drawn as a new trace if it is no longer remembered', async () => {
    const { shown, take, pass } = makeWatch();
    for (const place of ['1', '2', '3']) {
      await take(makeRun(place, place));
      await pass(300);
    }
    await take(makeRun('2.1', 'late'), makeRun('1.1', 'too late'));
    await pass(600);
    expect(shown).toEqual(['1', '2', '3', '1 too late', '(updated, with 1 more run)\n2 late']);
  });

  it('that cannot be read is logged, and the others are drawn', async () => {
    const lines = logLines();
    const { store, shown, take, pass, watch } = makeWatch();
    const outline = store.outline.bind(store);
    store.outline = () => Promise.reject(new Error('disk gone'));
    await take(makeRun('1', 'lost'));
    await pass(300);
    store.outline = outline;
    await take(makeRun('2', 'kept'));
    await pass(300);
    await watch.end();
    expect(shown).toEqual(['kept', 'lost']);
    expect(lines.join()).toContain('cannot be drawn: disk gone');
  });
});

it('a drawing ends with the last line, which another drawing of the trace repeats', async () => {
  const { watch, shown, take, pass } = makeWatch({ lastLine: (traceId) => `link to ${traceId}` });
  await take(makeRun('7', 'ask'));
  await pass(300);
  await take(makeOpenRun('7.1', 'call'));
  await watch.end();
  const note = '(incomplete: 1 run has not ended)';
  expect(shown).toEqual(['ask\nlink to 7', `(updated, with 1 more run)\nask call\n${note}\nlink to 7`]);
});

describe('the end', () => {
  it('draws the other traces, finished or not, and stops watching', async () => {
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

  it('waits for a check that is in progress, and leaves no timer', async () => {
    const { store, watch, shown, take, pass } = makeWatch();
    const [answered, outline] = [gate(), store.outline.bind(store)];
    store.outline = async (scope, traceId) => {
      await answered;
      return outline(scope, traceId);
    };
    await take(makeRun('1.1', 'call'));
    await pass(300);
    const ended = watch.end();
    answered.open();
    await ended;
    expect(vi.getTimerCount()).toBe(0);
    expect(shown).toEqual(['call']);
  });
});
