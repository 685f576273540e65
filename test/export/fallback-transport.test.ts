import { describe, expect, it } from 'vitest';
import { FallbackTransport } from '../../src/export/fallback-transport.ts';
import type { Outcome, Transport } from '../../src/export/transport.ts';
import { makeItem } from '../support/encoded-run.ts';
import { settled } from '../support/settled.ts';

const unsupported: Outcome = { kind: 'unsupported', detail: 'status 404' };
const accepted: Outcome = { kind: 'accepted' };

const counted = (outcome: () => Outcome): Transport & { requests: number } => ({
  requests: 0,
  async *send(items) {
    this.requests++;
    yield { items, outcome: outcome() };
  },
});

const send = (transport: Transport) => settled(transport, [makeItem()]);

describe('FallbackTransport', () => {
  it('stays with the first transport while that is supported', async () => {
    const [first, second] = [counted(() => accepted), counted(() => accepted)];
    await send(new FallbackTransport(first, second, () => 0));

    expect([first.requests, second.requests]).toEqual([1, 0]);
  });

  it('sends the same batch the second way when the first is unsupported', async () => {
    const [first, second] = [counted(() => unsupported), counted(() => accepted)];

    expect((await send(new FallbackTransport(first, second, () => 0)))[0]?.outcome).toEqual(accepted);
    expect([first.requests, second.requests]).toEqual([1, 1]);
  });

  it('tries the first transport again after 1 s, 5 s, 30 s, and finally every ten minutes [fault 6]', async () => {
    let nowMs = 0;
    const askedAtMs: number[] = [];
    const first = counted(() => {
      askedAtMs.push(nowMs);
      return askedAtMs.length === 9 ? accepted : unsupported;
    });
    const second = counted(() => accepted);
    const transport = new FallbackTransport(first, second, () => nowMs);
    for (const afterMs of [0, 1_000, 5_000, 30_000, 120_000, 300_000, 600_000, 600_000, 600_000, 0, 1_000]) {
      nowMs += Math.max(0, afterMs - 1);
      await send(transport);
      nowMs += Math.min(1, afterMs);
      await send(transport);
    }
    const gaps = askedAtMs.slice(1).map((ms, at) => ms - (askedAtMs[at] as number));

    expect(gaps).toEqual([1_000, 5_000, 30_000, 120_000, 300_000, 600_000, 600_000, 600_000, 0, 1_000]);
  });

  it('counts concurrent requests as one', async () => {
    let nowMs = 0;
    const first = counted(() => unsupported);
    const transport = new FallbackTransport(
      first,
      counted(() => accepted),
      () => nowMs,
    );
    await Promise.all([send(transport), send(transport), send(transport)]);
    nowMs = 1_000;
    await send(transport);

    expect(first.requests).toBe(4);
  });

  it('sends parents before children, and returns to the first transport within a batch as soon as it is due', async () => {
    let nowMs = 0;
    const first = counted(() => (nowMs === 0 ? unsupported : accepted));
    const sent: string[] = [];
    const second: Transport = {
      async *send(items) {
        nowMs = 1_000;
        sent.push(...items.map(({ delivery }) => delivery.run.dottedOrder));
        yield { items, outcome: accepted };
      },
    };
    const root = makeItem();
    const items = [...Array.from({ length: 29 }, () => makeItem()), root].reverse();
    const settlements = await settled(new FallbackTransport(first, second, () => nowMs), items);

    expect(sent).toEqual([...sent].sort());
    expect(sent.length).toBeLessThan(30);
    expect(first.requests).toBe(2);
    expect(settlements.flatMap((settlement) => settlement.items)).toHaveLength(30);
  });

  it('does not send the rest of a batch with the second transport if its first runs all fail', async () => {
    const second = counted(() => ({ kind: 'failed', detail: 'status 503' }));
    const items = Array.from({ length: 100 }, () => makeItem());
    const settlements = await settled(
      new FallbackTransport(
        counted(() => unsupported),
        second,
        () => 0,
      ),
      items,
    );

    expect(second.requests).toBe(1);
    expect(settlements.flatMap((settlement) => settlement.items)).toHaveLength(100);
    expect(settlements.map(({ outcome }) => outcome.kind)).toEqual(['failed', 'failed']);
  });

  it('takes a service that supports neither for a wrong address, and asks for both again', async () => {
    const [first, second] = [counted(() => unsupported), counted(() => unsupported)];
    const transport = new FallbackTransport(first, second, () => 0);
    const settlements = [...(await send(transport)), ...(await send(transport))];

    expect(settlements.map(({ outcome }) => outcome.kind)).toEqual(['misconfigured', 'misconfigured']);
    expect([first.requests, second.requests]).toEqual([2, 2]);
  });
});
