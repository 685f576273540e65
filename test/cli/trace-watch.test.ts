import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Progress, progressOf, type Reason, type Step, stepAfter, TraceWatch } from '../../src/cli/trace-watch.ts';
import { MemoryStore, type MemoryStoreOptions } from '../../src/receiver/store/memory-store.ts';
import type { RunFields } from '../../src/receiver/store/store.ts';
import type { RunRecord } from '../../src/run/record.ts';
import { gate } from '../support/gate.ts';
import { makeOpenRun, makeRun, outlined } from '../support/records.ts';
import { told } from '../support/told.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** A watch of a store of its own; a drawing is the names of the runs. */
function makeWatch(options?: MemoryStoreOptions, rememberedMax = 2) {
  const store = new MemoryStore(options);
  const shown: string[] = [];
  const draw = (runs: readonly { name: string }[]): string => runs.map(({ name }) => name).join(' ');
  const watch = new TraceWatch({ store, draw, show: (text) => shown.push(text), rememberedMax });
  const take = (...runs: ({ id: string } & RunFields)[]): Promise<void> =>
    store.apply(runs.map(({ id, ...fields }) => ({ kind: 'post', id, fields, attachments: [] })));
  return { store, watch, shown, take, pass: (ms: number) => vi.advanceTimersByTimeAsync(ms) };
}

it.each<[string, RunRecord[], Progress]>([
  ['whose runs have all ended', [makeRun('1', 'a'), makeRun('1.1', 'b')], 'finished'],
  ['whose root has not ended', [makeOpenRun('1', 'a'), makeRun('1.1', 'b')], 'open'],
  ['of whose roots one has not ended', [makeRun('1', 'a'), makeOpenRun('2', 'b')], 'open'],
  ['with a child that has not ended', [makeRun('1', 'a'), makeOpenRun('1.1', 'b')], 'ragged'],
  ['without its root', [makeRun('1.1', 'b')], 'ragged'],
  ['with a gap', [makeRun('1', 'a'), makeRun('1.1.1', 'c')], 'ragged'],
  ['without runs', [], 'ragged'],
])('a trace %s counts as such', (_, runs, progress) => {
  expect(progressOf(runs.map(outlined))).toBe(progress);
});

it.each<[Progress, Reason, number, Step]>([
  ['finished', 'quiet', 1, 'show'],
  ['open', 'quiet', 1, 'leave'],
  ['open', 'quiet', 100, 'leave'],
  ['ragged', 'quiet', 1, 'look again'],
  ['ragged', 'quiet', 2, 'look again'],
  ['ragged', 'quiet', 3, 'show'],
  ['ragged', 'quiet', 4, 'show'],
  ['finished', 'end', 1, 'show'],
  ['open', 'end', 1, 'show'],
  ['ragged', 'end', 1, 'show'],
])(
  'after a look at a %s trace for the reason "%s", the %i. at it, the step is to %s',
  (progress, reason, looks, step) => {
    expect(stepAfter(progress, reason, looks)).toBe(step);
  },
);

/** From now on the store answers looks at a trace when the gate is opened. */
function held(store: MemoryStore) {
  const [answered, outline] = [gate(), store.outline.bind(store)];
  store.outline = async (traceId) => {
    await answered;
    return outline(traceId);
  };
  return answered;
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
    await pass(599);
    expect(shown).toEqual([]);
    await pass(1);
    expect(shown).toEqual(['ask call']);
  });

  it('is shown as incomplete after a while when its root has ended and a child has not', async () => {
    const { shown, take, pass } = makeWatch();
    await take(makeRun('1', 'ask'), makeOpenRun('1.1', 'call'));
    await pass(2_099);
    expect(shown).toEqual([]);
    await pass(1);
    expect(shown).toEqual(['ask call\n(incomplete: 1 run has not ended)']);
  });

  it('is shown after a while when its first parent never comes', async () => {
    const { shown, take, pass } = makeWatch();
    await take(makeRun('1.1', 'call'));
    await pass(2_100);
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

  it('never has to be quiet for longer than 4.8 s', async () => {
    const { shown, take, pass } = makeWatch();
    for (let looks = 0; looks < 10; looks++) {
      await take(makeOpenRun('1', 'ask'));
      await pass(60_000);
    }
    await take(makeRun('1', 'ask'));
    await pass(4_799);
    expect(shown).toEqual([]);
    await pass(1);
    expect(shown).toEqual(['ask']);
  });

  it('is not shown from a look during which more came', async () => {
    const { store, shown, take, pass } = makeWatch();
    const answered = held(store);
    await take(makeRun('1', 'ask'));
    await pass(300);
    await take(makeRun('1.1', 'call'));
    answered.open();
    await pass(599);
    expect(shown).toEqual([]);
    await pass(1);
    expect(shown).toEqual(['ask call']);
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

  it('is shown like a new one when more of it comes and it is none of those shown last', async () => {
    const { shown, take, pass } = makeWatch();
    for (const place of ['1', '2', '3']) {
      await take(makeRun(place, place));
      await pass(300);
    }
    await take(makeRun('2.1', 'late'), makeRun('1.1', 'too late'));
    await pass(600);
    expect(shown).toEqual(['1', '2', '3', '1 too late', '(again, with 1 more run)\n2 late']);
  });

  it('that the store cannot tell is not shown, which is told, and the others are', async () => {
    const lines = told();
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

  it('is shown without the others', async () => {
    const { shown, take, pass } = makeWatch();
    await take(makeRun('1', 'first'), makeOpenRun('2', 'second'));
    await pass(300);
    expect(shown).toEqual(['first']);
  });

  it.each([
    [['1', '2'], '1 trace'],
    [['1', '2', '3'], '2 traces'],
  ])(
    'is left out when the store has forgotten it, which is said at the end: of %j it has %s',
    async (places, count) => {
      told();
      const { watch, shown, take } = makeWatch({ runsMax: 1 });
      for (const place of places) await take(makeRun(place, `trace ${place}`));
      await watch.end();
      expect(shown).toEqual([
        `trace ${places.at(-1)}`,
        `(the receiver has forgotten ${count} to stay within its limits; what was not drawn before is lost)`,
      ]);
    },
  );
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

  it('sets no timer when a look is under way as it comes', async () => {
    const { store, watch, shown, take, pass } = makeWatch();
    const answered = held(store);
    await take(makeRun('1.1', 'call'));
    await pass(300);
    const ended = watch.end();
    answered.open();
    await ended;
    expect(vi.getTimerCount()).toBe(0);
    expect(shown).toEqual(['call']);
  });
});
