// Traces that the sample rate drops, and that `keep` selects by their outcome.
import '../support/virtual-timers.ts';

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Run } from '#src/run/run.ts';
import { addsUp } from '../support/adds-up.ts';
import { cases } from '../support/campaign.ts';
import { advance, type Delivery, delivery } from '../support/delivery.ts';

type Step =
  | { readonly do: 'root'; readonly name: 'dropped' | 'sampled' | 'refused' }
  | { readonly do: 'child' | 'end' | 'fail'; readonly run: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'flush' };

const run = fc.nat(40);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('root'),
      name: fc.constantFrom('dropped', 'dropped', 'sampled', 'refused'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('child'), run }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('end'), run }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail'), run }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('advance'), ms: fc.constantFrom(1, 4_000, 10_000, 10_001) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('flush') }) },
) as fc.Arbitrary<Step>;

/** What must become of a trace, and of its runs in start order. */
interface Expected {
  state: 'held' | 'sent' | 'left out';
  sampling?: string;
  readonly startedAtMs: number;
  readonly runs: { readonly run: Run; isEnded: boolean }[];
}

/** Does the steps, and keeps the books of all traces by hand. */
class Program {
  readonly traces: Expected[] = [];
  readonly #runs: { readonly run: Run; readonly trace: Expected }[] = [];
  readonly #scene: Delivery;
  #nowMs = 0;

  constructor(scene: Delivery) {
    this.#scene = scene;
  }

  async do(step: Step): Promise<void> {
    if (step.do === 'root') return this.#root(step.name);
    if (step.do === 'advance') {
      this.#nowMs += step.ms;
      return advance(step.ms);
    }
    if (step.do === 'flush') return void (await this.#scene.flush({ timeoutMs: 1 }));
    const chosen = this.#runs[step.run % Math.max(1, this.#runs.length)];
    if (chosen === undefined) return;
    if (step.do === 'child') this.#add(this.#scene.start('child', {}, chosen.run), chosen.trace);
    else this.#end(chosen, step.do);
  }

  #root(name: string): void {
    const state = { dropped: 'held', sampled: 'sent', refused: 'left out' }[name] as Expected['state'];
    const trace: Expected = { state, startedAtMs: this.#nowMs, runs: [] };
    this.traces.push(trace);
    this.#add(this.#scene.start(name), trace);
  }

  #add(run: Run, trace: Expected): void {
    trace.runs.push({ run, isEnded: false });
    this.#runs.push({ run, trace });
  }

  #end({ run, trace }: { readonly run: Run; readonly trace: Expected }, how: 'end' | 'fail'): void {
    const known = trace.runs.find((one) => one.run === run);
    if (known === undefined || known.isEnded) return;
    known.isEnded = true;
    if (how === 'end') run.end({ ok: true });
    else run.fail(new Error('broke'));
    if (trace.state !== 'held') return;
    if (how === 'fail') Object.assign(trace, { state: 'sent', sampling: 'kept-error' });
    else if (run === trace.runs[0]?.run) this.decide(trace);
  }

  decide(trace: Expected): void {
    if (this.#nowMs - trace.startedAtMs > 10_000) Object.assign(trace, { state: 'sent', sampling: 'kept-slow' });
    else trace.state = 'left out';
  }

  count(state: Expected['state']): number {
    return this.traces.filter((trace) => trace.state === state).reduce((sum, { runs }) => sum + runs.length, 0);
  }
}

describe('with keep', () => {
  it('exactly the traces with a failure and the slow ones are sent, whole, and every run is counted once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.boolean(), async (steps, isFailing) => {
        const scene = await delivery({
          limits: { startDelayMs: 1 },
          reply: (_, index) => (isFailing && index % 3 === 0 ? 503 : 202),
          options: {
            sampleRate: 0,
            keep: ['error', 'slow>10s'],
            sampler: ({ name }) => (name === 'dropped' ? undefined : name === 'sampled'),
          },
        });
        const program = new Program(scene);
        const check = () => {
          const stats = scene.stats();
          expect(addsUp(stats)).toBe(true);
          const { created, sampledOut, held } = stats;
          const counts = [program.count('sent'), program.count('left out'), program.count('held')];
          expect([created, sampledOut, held]).toEqual(counts);
        };
        for (const step of steps) {
          await program.do(step);
          check();
        }
        for (const trace of program.traces) if (trace.state === 'held') program.decide(trace);
        await scene.close();
        check();
        const sent = program.traces.filter(({ state }) => state === 'sent');
        const arrived = new Map(scene.service.requests.flatMap(({ arrivals }) => arrivals.map((one) => [one.id, one])));
        expect(new Set(arrived.keys())).toEqual(new Set(sent.flatMap(({ runs }) => runs.map(({ run }) => run.id))));
        for (const { runs, sampling } of sent) {
          for (const { run } of runs) {
            const { extra } = arrived.get(run.id)?.fields as { extra?: { metadata?: Record<string, unknown> } };
            const { sampling: recorded, sample_rate } = extra?.metadata ?? {};
            expect([recorded, sample_rate]).toEqual(sampling === undefined ? [undefined, undefined] : [sampling, 0]);
          }
        }
      }),
      { numRuns: cases(300) },
    );
  });
});
