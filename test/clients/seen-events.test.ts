import { describe, expect, it } from 'vitest';
import { SeenEvents } from '../../src/clients/seen-events.ts';

const event = (seq: number, timestamp = seq, event_id: string | undefined = String(seq)) => ({
  ...(event_id !== undefined && { event_id }),
  seq,
  params: { timestamp },
});

/** The places of those that are new, of events given one after the other. */
const fresh = (seen: SeenEvents, events: readonly ReturnType<typeof event>[]): number[] =>
  events.flatMap((one) => (seen.take(one) ? [one.seq] : []));

describe('seen events', () => {
  it('are new once', () => {
    const seen = new SeenEvents();

    expect(fresh(seen, [event(1), event(2), event(2), event(1), event(3)])).toEqual([1, 2, 3]);
    expect(seen.highestSeq).toBe(3);
  });

  it('are known by their place where they have no id', () => {
    const seen = new SeenEvents();
    const nameless = { seq: 7, params: {} };

    expect([seen.take(nameless), seen.take(nameless)]).toEqual([true, false]);
  });

  it('are always new where they have neither', () => {
    const seen = new SeenEvents();

    expect([seen.take({ params: { timestamp: 1 } }), seen.take({ params: { timestamp: 1 } })]).toEqual([true, true]);
    expect(seen.highestSeq).toBeUndefined();
  });

  it('may come in another order', () => {
    const seen = new SeenEvents();

    expect(fresh(seen, [event(1), event(3), event(2), event(3), event(4)])).toEqual([1, 3, 2, 4]);
  });

  it.each([
    [3, 4],
    [4, 4],
    [5, 4],
  ])('are known again by the %d latest ids, and by their place before', (windowEvents, count) => {
    const seen = new SeenEvents(undefined, windowEvents);
    const events = Array.from({ length: count }, (_, at) => event(at + 1));

    expect(fresh(seen, events)).toEqual([1, 2, 3, 4]);
    expect(fresh(seen, events)).toEqual([]);
  });

  it('are forgotten beyond the window where they have no place', () => {
    const seen = new SeenEvents(undefined, 2);
    const [one, two, three] = ['a', 'b', 'c'].map((event_id) => ({ event_id, params: { timestamp: 1 } }));

    for (const each of [one, two, three]) expect(seen.take(each as { params: object })).toBe(true);
    expect(seen.take(three as { params: object })).toBe(false);
    expect(seen.take(one as { params: object })).toBe(true);
  });

  it('leave out what is not wanted', () => {
    expect(fresh(new SeenEvents(5), [event(4), event(5), event(6)])).toEqual([6]);
  });

  it('begin anew with a server that counts anew, whose events are later', () => {
    const seen = new SeenEvents(undefined, 2);
    expect(fresh(seen, [event(1, 100), event(2, 200), event(3, 300)])).toEqual([1, 2, 3]);

    const again = [event(1, 301), event(2, 302), event(2, 302), event(1, 301), event(3, 303), event(4, 304)];
    expect(fresh(seen, again)).toEqual([1, 2, 3, 4]);
    expect(seen.highestSeq).toBe(4);
  });

  it('do not begin anew with one that has no place, and is told anew at each connection', () => {
    const seen = new SeenEvents();
    const missed = (timestamp: number) => ({ event_id: 'missed-5', params: { timestamp } });

    expect([seen.take(missed(100)), ...fresh(seen, [event(6, 50), event(7, 60)])]).toEqual([true, 6, 7]);
    expect([seen.take(missed(200)), ...fresh(seen, [event(6, 50), event(7, 60), event(8, 210)])]).toEqual([false, 8]);
  });

  it('are not new for having been sent at the time of the latest', () => {
    const seen = new SeenEvents();

    expect(fresh(seen, [event(1, 100), event(2, 100), event(1, 100), event(1, 99), event(1, 101)])).toEqual([1, 2, 1]);
  });

  it('tell the one at the highest place from another at it', () => {
    const seen = new SeenEvents();
    fresh(seen, [event(1), event(3), event(2)]);

    expect(seen.isHighest(event(3))).toBe(true);
    expect([event(2), event(3, 4), event(3, 3, 'x'), event(4)].map((one) => seen.isHighest(one))).toEqual([
      false,
      false,
      false,
      false,
    ]);
    expect(new SeenEvents().isHighest({ params: {} })).toBe(false);
  });
});
