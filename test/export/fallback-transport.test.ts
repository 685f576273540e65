import { describe, expect, it } from 'vitest';
import { FallbackTransport } from '../../src/export/fallback-transport.ts';
import type { Outcome, Transport } from '../../src/export/transport.ts';
import { makeItem } from '../support/encoded-run.ts';
import { settled } from '../support/settled.ts';

const unsupported: Outcome = { kind: 'unsupported', detail: 'status 404' };
const accepted: Outcome = { kind: 'accepted' };
const TEN_MINUTES_MS = 600_000;

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

  it.each([
    [TEN_MINUTES_MS - 1, 1],
    [TEN_MINUTES_MS, 2],
    [TEN_MINUTES_MS + 1, 2],
  ])('after %i ms has asked the first transport %i times [fault 6]', async (laterMs, expected) => {
    let nowMs = 0;
    const first = counted(() => unsupported);
    const transport = new FallbackTransport(
      first,
      counted(() => accepted),
      () => nowMs,
    );
    await send(transport);
    nowMs = TEN_MINUTES_MS / 2;
    await send(transport);
    nowMs = laterMs;
    await send(transport);

    expect(first.requests).toBe(expected);
  });

  it('takes a service that supports neither for a wrong address, and asks for both again', async () => {
    const [first, second] = [counted(() => unsupported), counted(() => unsupported)];
    const transport = new FallbackTransport(first, second, () => 0);
    const settlements = [...(await send(transport)), ...(await send(transport))];

    expect(settlements.map(({ outcome }) => outcome.kind)).toEqual(['misconfigured', 'misconfigured']);
    expect([first.requests, second.requests]).toEqual([2, 2]);
  });
});
