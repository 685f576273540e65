import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { noStats, totalStats } from '../../src/export/ledger.ts';
import type { Outcome } from '../../src/export/transport.ts';
import type { EncodedRun } from '../../src/run/encoded-run.ts';
import { ended, makeRun } from '../support/encoded-run.ts';
import { addsUp, makeExporter, turns } from '../support/exporter.ts';
import { told } from '../support/told.ts';

beforeEach(() => void told());

describe('totalStats', () => {
  it('adds ledgers up, nested counts too, and leaves them as they are', () => {
    const one = { ...noStats(), created: 2, sent: 1, dropped: 1 };
    one.droppedByReason.rejected = 1;
    one.requests.simple = 4;
    const total = totalStats([one, one, noStats()]);

    expect(total).toMatchObject({ created: 4, sent: 2, dropped: 2, requests: { multipart: 0, simple: 8 } });
    expect(total.droppedByReason).toMatchObject({ rejected: 2, closed: 0 });
    expect(one.created).toBe(2);
  });

  it('is all zero for no ledger', () => {
    expect(totalStats([])).toEqual(noStats());
  });
});

type Step =
  | { kind: 'start'; ofTrace: boolean }
  | { kind: 'end'; pick: number }
  | { kind: 'flush' }
  | { kind: 'settle'; pick: number; share: number; outcome: Outcome };

const outcomes: Outcome[] = [
  { kind: 'accepted' },
  { kind: 'accepted' },
  { kind: 'dropped', reason: 'rejected', detail: '' },
  { kind: 'dropped', reason: 'expired', detail: '' },
];

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('start' as const), ofTrace: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('end' as const), pick: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('flush' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      pick: fc.nat(),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      outcome: fc.constantFrom(...outcomes),
    }),
  },
);

describe('the ledger of an exporter', () => {
  it('adds up after every step, sends every post before its patch, and loses no run', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { exporter, transport } = makeExporter({ batchRuns: 3, queueRuns: 12, openRuns: 6 });
        const open: EncodedRun[] = [];
        const waiting = new Set<number>();
        const accepted = new Set<string>();
        let seen = 0;
        const check = async (): Promise<void> => {
          await turns(2);
          for (; seen < transport.sendings.length; seen++) {
            waiting.add(seen);
            for (const { op, delivery } of transport.sendings[seen]?.items ?? []) {
              if (op === 'patch') expect(accepted.has(delivery.run.id)).toBe(true);
            }
          }
          expect(addsUp(exporter.stats())).toBe(true);
        };
        for (const command of steps) {
          if (command.kind === 'start') {
            const run = makeRun({}, command.ofTrace ? open[0] : undefined);
            if (exporter.start(run)) open.push(run);
          } else if (command.kind === 'end') {
            const [run] = open.splice(command.pick % Math.max(1, open.length), 1);
            if (run !== undefined && run.endTime === undefined) exporter.end(ended(run));
          } else if (command.kind === 'flush') {
            void exporter.flush({ timeoutMs: 1 });
          } else {
            const index = [...waiting][command.pick % Math.max(1, waiting.size)];
            if (index === undefined) continue;
            waiting.delete(index);
            const { items, settle, end } = await transport.sending(index);
            const cut = Math.round(items.length * command.share);
            const kept = items.slice(0, cut);
            if (command.outcome.kind === 'accepted') for (const { delivery } of kept) accepted.add(delivery.run.id);
            for (const { delivery } of items.slice(cut)) accepted.add(delivery.run.id);
            settle(command.outcome, kept);
            settle({ kind: 'accepted' }, items.slice(cut));
            end();
          }
          await check();
        }
        await exporter.close({ timeoutMs: 0 });
        for (const run of open) if (run.endTime === undefined) exporter.end(ended(run));
        const stats = exporter.stats();
        expect(addsUp(stats)).toBe(true);
        expect(stats.created).toBe(stats.sent + stats.dropped);
      }),
      { numRuns: 300 },
    );
  });
});
