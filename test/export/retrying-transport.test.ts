import { beforeEach, describe, expect, it } from 'vitest';
import { delay } from '../../src/base/timers.ts';
import type { Item } from '../../src/export/delivery.ts';
import { Outage } from '../../src/export/outage.ts';
import { Pace, type PaceOptions } from '../../src/export/pace.ts';
import { RetryingTransport, type RetryOptions } from '../../src/export/retrying-transport.ts';
import type { Outcome, Transport } from '../../src/export/transport.ts';
import { makeItem } from '../support/encoded-run.ts';
import { published } from '../support/published.ts';
import { kindsOf, settled } from '../support/settled.ts';
import { told } from '../support/told.ts';

const accepted: Outcome = { kind: 'accepted' };
const failed: Outcome = { kind: 'failed', detail: 'status 503' };
const AGE_MS = 10_000;

const options: RetryOptions = {
  ageMs: AGE_MS,
  endpoint: 'http://service',
  outage: new Outage(() => 0),
  monotonicMs: () => 0,
};
const paceOptions: PaceOptions = { retryDelayMs: 500, retryDelayMaxMs: 4_000, random: () => 1, delay };

/** Answers as told, the last answer for ever; every wait passes at once, and is noted. */
function retrying(outcomes: readonly Outcome[], pace?: Pace) {
  const time = { nowMs: 0 };
  const waits: number[] = [];
  const sent: (readonly Item[])[] = [];
  const inner: Transport = {
    async *send(items) {
      sent.push(items);
      yield { items, outcome: outcomes[Math.min(sent.length, outcomes.length) - 1] as Outcome };
    },
  };
  const monotonicMs = () => time.nowMs;
  const wait = async (ms: number) => {
    waits.push(ms);
    time.nowMs += ms;
  };
  const transport = new RetryingTransport(inner, pace ?? new Pace(monotonicMs, { ...paceOptions, delay: wait }), {
    ...options,
    outage: new Outage(monotonicMs),
    monotonicMs,
  });
  return { transport, waits, sent, time };
}

describe('RetryingTransport', () => {
  beforeEach(() => void told());

  it('sends again what failed, with delays that double up to the longest', async () => {
    const { transport, waits, sent } = retrying([failed, failed, failed, failed, failed, accepted]);

    expect((await settled(transport, [makeItem()])).map(({ outcome }) => outcome)).toEqual([accepted]);
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 4_000]);
    expect(sent).toHaveLength(6);
  });

  it('passes on at once what is settled, and sends only the rest again', async () => {
    const [good, bad] = [makeItem(), makeItem()];
    let requests = 0;
    const inner: Transport = {
      async *send(items) {
        requests++;
        if (items.includes(good)) yield { items: [good], outcome: accepted };
        yield { items: [bad], outcome: requests > 1 ? accepted : failed };
      },
    };
    const mixed = new RetryingTransport(inner, new Pace(() => 0, { delay: async () => {} }), options);

    expect((await settled(mixed, [good, bad])).map(({ items }) => items)).toEqual([[good], [bad]]);
  });

  it.each([
    [AGE_MS - 1, 'accepted'],
    [AGE_MS, 'accepted'],
    [AGE_MS + 1, 'dropped'],
  ])('treats a run that fails at the age of %i ms as %s', async (ageMs, kind) => {
    const { transport, time } = retrying([failed, accepted]);
    time.nowMs = ageMs;

    expect((await settled(transport, [makeItem()])).map(({ outcome }) => outcome.kind)).toEqual([kind]);
  });

  it('does not count time that the service asked to wait towards the age', async () => {
    const time = { nowMs: 0 };
    const pace = new Pace(() => time.nowMs);
    const { transport, time: own } = retrying([failed, accepted], pace);
    pace.pause(60_000);
    time.nowMs = 60_000;
    own.nowMs = 60_000;

    expect((await settled(transport, [makeItem()])).map(({ outcome }) => outcome.kind)).toEqual(['accepted']);
  });

  it('pauses the endpoint for as long as the service asks', async () => {
    const pace = new Pace(() => 0, { random: () => 0 });
    const { transport } = retrying([{ ...failed, afterMs: 120_000 }], pace);
    const ends = new AbortController();
    const sending = settled(transport, [makeItem()], ends.signal);
    while (pace.remainingMs === 0) await new Promise((resolve) => setImmediate(resolve));

    expect(pace.remainingMs).toBe(120_000);
    ends.abort(new Error('enough'));
    await expect(sending).rejects.toThrow('enough');
  });

  it('keeps refused runs and waits for the pause only [fault 4]', async () => {
    const { transport, waits } = retrying([{ kind: 'misconfigured', detail: 'status 401' }, accepted]);

    expect(kindsOf(await settled(transport, [makeItem()]))).toEqual(['accepted']);
    expect(waits).toEqual([1_000]);
  });

  it('tries at once when somebody waits for a flush, and then waits for longer again', async () => {
    told();
    const time = { nowMs: 0 };
    const waiting: AbortSignal[] = [];
    const pace = new Pace(() => time.nowMs, {
      ...paceOptions,
      retryDelayMs: 1_000_000,
      retryDelayMaxMs: 1_000_000,
      delay: (ms, signal) => {
        waiting.push(signal);
        return delay(ms, signal);
      },
    });
    let requests = 0;
    const inner: Transport = {
      async *send(items) {
        requests++;
        yield { items, outcome: requests < 3 ? failed : accepted };
      },
    };
    const transport = new RetryingTransport(inner, pace, options);
    const sending = settled(transport, [makeItem()]);
    for (const attempt of [1, 2]) {
      while (waiting.length < attempt) await new Promise((resolve) => setImmediate(resolve));
      time.nowMs += 500;
      pace.hurry();
    }

    expect(kindsOf(await sending)).toEqual(['accepted']);
  });

  it.each([
    [59_999, 2],
    [60_000, 4],
    [60_001, 4],
  ])('of a service that fails again after %i ms has told %i lines', async (laterMs, count) => {
    const lines = told();
    const { transport, time } = retrying([failed, accepted, failed, accepted]);
    await settled(transport, [makeItem()]);
    time.nowMs = laterMs;
    const item = makeItem();
    item.delivery.recordedAtMs = laterMs;
    await settled(transport, [item]);

    expect(lines).toHaveLength(count);
  });

  it('gives back after three failures what may be the cause, and tries it once when it comes again [fault 21]', async () => {
    const suspect: Outcome = { ...failed, isSuspect: true };
    const { transport, sent } = retrying([suspect, failed, suspect, suspect, suspect, accepted]);
    const items = [makeItem(), makeItem()];
    const outcomes: Outcome[] = [];
    const counts: number[] = [];
    for (let turn = 0; turn < 3; turn++) {
      for (const { outcome, items: some } of await settled(transport, items)) {
        expect(some).toEqual(items);
        outcomes.push(outcome);
      }
      counts.push(sent.length);
    }

    expect(outcomes.map(({ kind }) => kind)).toEqual(['failed', 'failed', 'accepted']);
    expect(counts).toEqual([4, 5, 6]);
  });

  it('gives up what may be the cause when it is too old [fault 21]', async () => {
    const { transport, time } = retrying([{ ...failed, isSuspect: true }]);
    const item = makeItem();
    await settled(transport, [item]);
    time.nowMs = AGE_MS + 1;

    expect((await settled(transport, [item])).map(({ outcome }) => outcome)).toMatchObject([
      { kind: 'dropped', reason: 'expired' },
    ]);
  });

  it('tells an outage once, and that it is over [fault 22]', async () => {
    const lines = told();
    const { transport } = retrying([failed, failed, failed, accepted]);
    await settled(transport, [makeItem()]);
    await settled(transport, [makeItem()]);

    expect(lines).toEqual([
      'warn: delivery to http://service failed: status 503; the runs are kept and sent again',
      'warn: delivery to http://service works again',
    ]);
  });

  it('passes on what was delivered before it was aborted', async () => {
    told();
    const ends = new AbortController();
    const [good, broken] = [makeItem(), makeItem()];
    const inner: Transport = {
      async *send() {
        ends.abort(new Error('closed'));
        yield { items: [broken], outcome: { kind: 'failed', detail: 'closed' } };
        yield { items: [good], outcome: accepted };
      },
    };
    const transport = new RetryingTransport(inner, new Pace(() => 0), options);

    expect((await settled(transport, [good, broken], ends.signal)).map(({ items }) => items)).toEqual([[good]]);
  });

  it('ends a wait when it is aborted', async () => {
    const ends = new AbortController();
    const pace = new Pace(() => 0);
    pace.pause(1_000_000);
    const sending = settled(retrying([accepted], pace).transport, [makeItem()], ends.signal);
    ends.abort(new Error('closed'));

    await expect(sending).rejects.toThrow('closed');
  });

  it('publishes an outage once, however often it is met, and the recovery with how long it was', async () => {
    const [outages, recoveries] = [published('runspan:delivery:outage'), published('runspan:delivery:recovery')];
    const unreachable: Outcome = { kind: 'misconfigured', detail: 'status 401' };
    const { transport, time } = retrying([failed, failed, accepted, failed, accepted, accepted]);
    for (let batch = 0; batch < 3; batch++) await settled(transport, [makeItem()]);

    expect(outages).toEqual([
      { endpoint: 'http://service', error: 'status 503' },
      { endpoint: 'http://service', error: 'status 503' },
    ]);
    expect(recoveries).toEqual([
      { endpoint: 'http://service', durationMs: 1_500 },
      { endpoint: 'http://service', durationMs: 500 },
    ]);
    expect(time.nowMs).toBe(2_000);

    const pace = new Pace(() => 0);
    const stop = new AbortController();
    const misconfigured = settled(retrying([unreachable], pace).transport, [makeItem()], stop.signal);
    while (outages.length < 3) await new Promise(setImmediate);
    stop.abort();
    await misconfigured.catch(() => {});
    expect(outages[2]).toEqual({ endpoint: 'http://service', error: 'status 401' });
  });

  it('publishes nothing of runs that are refused while the service works', async () => {
    const [outages, recoveries] = [published('runspan:delivery:outage'), published('runspan:delivery:recovery')];
    const refused: Outcome = { kind: 'dropped', reason: 'rejected', detail: 'status 400' };
    await settled(retrying([refused]).transport, [makeItem()]);

    expect([outages, recoveries]).toEqual([[], []]);
  });
});
