import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import type { Item } from '../../src/export/delivery.ts';
import { IsolatingTransport } from '../../src/export/isolating-transport.ts';
import { Ticket } from '../../src/export/replay.ts';
import type { Outcome, Settlement, Transport } from '../../src/export/transport.ts';
import { ended, makeItem, makeRun } from '../support/encoded-run.ts';
import { settled } from '../support/settled.ts';

const accepted: Outcome = { kind: 'accepted' };

/** A service that takes one decision for each request. */
function service(decide: (items: readonly Item[]) => Outcome): Transport & { requests: number } {
  return {
    requests: 0,
    async *send(items) {
      this.requests++;
      yield { items, outcome: decide(items) };
    },
  };
}

const isolated = (transport: Transport, items: readonly Item[]) => settled(new IsolatingTransport(transport), items);

const itemsOf = (settlements: readonly Settlement[], kind: Outcome['kind']): Item[] =>
  settlements.filter(({ outcome }) => outcome.kind === kind).flatMap(({ items }) => items);

beforeEach(() => diagnostics.setLog('silent'));
afterEach(() => diagnostics.setLog('warn'));

describe('IsolatingTransport', () => {
  it('costs only the malformed runs of a batch, and keeps the others', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }), async (isBad) => {
        const items = isBad.map(() => makeItem());
        const bad = new Set(items.filter((_, at) => isBad[at]));
        const settlements = await isolated(
          service((batch) => (batch.some((item) => bad.has(item)) ? { kind: 'invalid', detail: '422' } : accepted)),
          items,
        );

        expect(new Set(itemsOf(settlements, 'dropped'))).toEqual(bad);
        expect(new Set(itemsOf(settlements, 'accepted'))).toEqual(new Set(items.filter((item) => !bad.has(item))));
      }),
      { numRuns: 100 },
    );
  });

  it('finds one malformed run among 64 in 13 requests: the batch, and two for each halving [fault 3]', async () => {
    const items = Array.from({ length: 64 }, () => makeItem());
    const poison = items[37] as Item;
    const inner = service((batch) => (batch.includes(poison) ? { kind: 'invalid', detail: '400' } : accepted));
    const settlements = await isolated(inner, items);

    expect(inner.requests).toBe(13);
    expect(settlements.find(({ items: group }) => group.includes(poison))?.outcome).toEqual({
      kind: 'dropped',
      reason: 'rejected',
      detail: '400',
    });
  });

  it('halves what is too large together until it fits', async () => {
    const items = Array.from({ length: 5 }, () => makeItem());
    const settlements = await isolated(
      service((batch) => (batch.length > 2 ? { kind: 'too_large', detail: '413' } : accepted)),
      items,
    );

    expect(settlements.map(({ items: group }) => group.length)).toEqual([2, 2, 1]);
    expect(items.some(({ stripped }) => stripped !== 'nothing')).toBe(false);
  });

  it('sends a single run that is too large once more without its payloads', async () => {
    const item = makeItem();
    const settlements = await isolated(
      service(([only]) => (only?.stripped === 'payloads' ? accepted : { kind: 'too_large', detail: '413' })),
      [item],
    );

    expect(settlements).toEqual([{ items: [item], outcome: accepted }]);
  });

  it('leaves the attachments out first, says how many in the metadata, and keeps the payloads', async () => {
    const attachments = ['a', 'b'].map((name) => ({ name, bytes: Buffer.alloc(10), mimeType: 'image/png' }));
    const item = makeItem(ended(makeRun({ inputs: '{"q":1}', attachments })));
    const settlements = await isolated(
      service(([only]) => (only?.stripped === 'attachments' ? accepted : { kind: 'too_large', detail: '413' })),
      [item],
    );

    expect(settlements).toEqual([{ items: [item], outcome: accepted }]);
    expect(item.delivery.run.metadata?.get('dropped_attachments')).toBe('2');
  });

  it('drops a run that is too large even so [fault 11]', async () => {
    const settlements = await isolated(
      service(() => ({ kind: 'too_large', detail: '413' })),
      [makeItem()],
    );

    expect(settlements.map(({ outcome }) => outcome)).toEqual([
      { kind: 'dropped', reason: 'too_large', detail: '413' },
    ]);
  });
});

describe('a service that refuses every run', () => {
  const refuse: Outcome = { kind: 'invalid', detail: 'status 400' };
  const itemsOfBatch = () => Array.from({ length: 100 }, () => makeItem());

  it('keeps the runs of the second batch after only a few requests', async () => {
    const inner = service(() => refuse);
    const transport = new IsolatingTransport(inner);
    const first = await settled(transport, itemsOfBatch());
    const requests = inner.requests;
    const second = await settled(transport, itemsOfBatch());

    expect(itemsOf(first, 'dropped')).toHaveLength(100);
    expect(itemsOf(second, 'misconfigured')).toHaveLength(100);
    expect(inner.requests - requests).toBeLessThan(20);
  });

  it('loses no more runs after it recovers', async () => {
    let isRefusing = true;
    const transport = new IsolatingTransport(service(() => (isRefusing ? refuse : accepted)));
    for (let batch = 0; batch < 3; batch++) await settled(transport, [makeItem()]);
    isRefusing = false;
    await settled(transport, [makeItem()]);
    isRefusing = true;

    expect((await settled(transport, [makeItem()])).map(({ outcome }) => outcome.kind)).toEqual(['dropped']);
  });
});

describe('a run from the disk that the service already has', () => {
  const known: Outcome = { kind: 'accepted', isRepetition: true };
  const fromDisk = () =>
    makeItem(ended(makeRun()), 'whole', new Ticket({ path: '/spool', isForeign: true }, undefined));

  it('is sent again as a patch with its end', async () => {
    const ops: string[] = [];
    const inner = service(([item]) => {
      ops.push(item?.op ?? '');
      return item?.op === 'post' ? known : accepted;
    });

    expect(itemsOf(await isolated(inner, [fromDisk()]), 'accepted')).toHaveLength(1);
    expect(ops).toEqual(['post', 'patch']);
  });

  it('counts as delivered if it was not read from disk, or is a patch', async () => {
    const inner = service(() => known);
    expect(await isolated(inner, [makeItem()])).toHaveLength(1);
    expect(inner.requests).toBe(1);
    const item = fromDisk();
    item.op = 'patch';
    expect(await isolated(inner, [item])).toEqual([{ items: [item], outcome: known }]);
  });
});
