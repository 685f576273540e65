import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Counts, Ledger, totalStats } from '../../src/export/ledger.ts';
import type { Outcome } from '../../src/export/outcome.ts';
import type { EncodedRun } from '../../src/run/encoded-run.ts';
import type { DeliveryError } from '../../src/run/stats.ts';
import { addsUp } from '../support/adds-up.ts';
import { ended, makeRun } from '../support/encoded-run.ts';
import { makeExporter } from '../support/exporter.ts';
import { told } from '../support/told.ts';
import { turns } from '../support/virtual-time.ts';

beforeEach(() => void told());

/** A ledger with these counts. */
function makeLedger(counts: Partial<Counts>, lastError?: DeliveryError): Ledger {
  const ledger = new Ledger();
  Object.assign(ledger.counts, counts);
  ledger.lastError = lastError;
  return ledger;
}

const EARLY = { at: '2026-01-02T03:04:05.000000Z', message: 'status 503' };
const LATE = { at: '2026-01-02T03:04:06.000000Z', message: 'status 500' };

describe('totalStats', () => {
  it('adds ledgers up, nested counts too, and leaves them as they are', () => {
    const one = makeLedger({ created: 2, sent: 1, dropped: 1, requests: { multipart: 0, simple: 4 } });
    one.counts.droppedByReason.rejected = 1;
    const total = totalStats([one, one, new Ledger()]);

    expect(total).toMatchObject({ created: 4, sent: 2, dropped: 2, requests: { multipart: 0, simple: 8 } });
    expect(total.droppedByReason).toMatchObject({ rejected: 2, closed: 0 });
    expect(one.counts.created).toBe(2);
  });

  it('is all zero for no ledger', () => {
    expect(totalStats([])).toEqual({
      ...new Ledger().counts,
      backlog: { bytes: 0, oldestMs: 0 },
      latency: undefined,
      lastError: undefined,
    });
  });

  it('has the bytes of all exporters, the age of the oldest, and the latest error', () => {
    const backlogs = [
      { bytes: 10, oldestMs: 7 },
      { bytes: 5, oldestMs: 30 },
    ];
    const total = totalStats([makeLedger({}, LATE), makeLedger({}, EARLY), new Ledger()], backlogs);

    expect(total).toMatchObject({ backlog: { bytes: 15, oldestMs: 30 }, lastError: LATE });
  });

  it('takes percentiles of all requests together, and not the mean of percentiles', () => {
    const [quick, slow] = [new Ledger(), new Ledger()];
    for (let n = 0; n < 198; n++) quick.latencies.add(1);
    for (let n = 0; n < 2; n++) slow.latencies.add(1_000);

    expect(totalStats([quick, slow]).latency).toEqual({ p50Ms: 1, p99Ms: 1 });
    slow.latencies.add(1_000);
    expect(totalStats([quick, slow]).latency).toEqual({ p50Ms: 1, p99Ms: 1_000 });
  });

  it('gives a copy, which later counts and errors do not change', () => {
    const ledger = makeLedger({ created: 1 }, { ...EARLY });
    const before = totalStats([ledger]);
    ledger.counts.created = 2;
    ledger.counts.droppedByReason.closed = 1;
    Object.assign(ledger.lastError ?? {}, LATE);

    expect(before).toMatchObject({ created: 1, droppedByReason: { closed: 0 }, lastError: EARLY });
  });
});

describe('a ledger', () => {
  it('takes over what another holds, so that the sum stays the same', () => {
    const [one, other] = [makeLedger({ created: 2, sent: 2 }, LATE), makeLedger({ created: 3, dropped: 3 }, EARLY)];
    one.latencies.add(4);
    other.latencies.add(8);
    const sum = totalStats([one, other]);
    one.absorb(other);

    expect(totalStats([one])).toEqual(sum);
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
