// Traces that the sample rate drops, and that `keep` selects by their outcome.
import '../support/virtual-timers.ts';

import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConfigureOptions } from '#src/config/options.ts';
import { fromHeaders, redact, startRun, withExporter, withRun } from '#src/index.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import { LateValue } from '#src/run/late-content.ts';
import type { Run } from '#src/run/run.ts';
import type { EndedTrace } from '#src/run/sink.ts';
import { addsUp } from '../support/adds-up.ts';
import { forAllAsync } from '../support/campaign.ts';
import { advance, type Delivery, delivery, onFlush } from '../support/delivery.ts';

type Step =
  | { readonly do: 'root'; readonly name: 'dropped' | 'sampled' | 'refused' }
  | { readonly do: 'child' | 'end' | 'fail'; readonly run: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'flush' };

const START_MS = Date.UTC(2026, 0, 2);
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
    if (step.do === 'child') this.#add(this.#scene.start('child', { startTime: this.#time }, chosen.run), chosen.trace);
    else this.#end(chosen, step.do);
  }

  #root(name: string): void {
    const state = { dropped: 'held', sampled: 'sent', refused: 'left out' }[name] as Expected['state'];
    const trace: Expected = { state, startedAtMs: this.#nowMs, runs: [] };
    this.traces.push(trace);
    this.#add(this.#scene.start(name, { startTime: this.#time }), trace);
  }

  #add(run: Run, trace: Expected): void {
    trace.runs.push({ run, isEnded: false });
    this.#runs.push({ run, trace });
  }

  #end({ run, trace }: { readonly run: Run; readonly trace: Expected }, how: 'end' | 'fail'): void {
    const known = trace.runs.find((one) => one.run === run);
    if (known === undefined || known.isEnded) return;
    known.isEnded = true;
    if (how === 'end') run.end({ ok: true }, { endTime: this.#time });
    else run.fail(new Error('broke'), { endTime: this.#time });
    if (trace.state !== 'held') return;
    if (how === 'fail') Object.assign(trace, { state: 'sent', sampling: 'kept-error' });
    else if (run === trace.runs[0]?.run) this.decide(trace);
  }

  decide(trace: Expected): void {
    if (this.#nowMs - trace.startedAtMs > 10_000) Object.assign(trace, { state: 'sent', sampling: 'kept-slow' });
    else trace.state = 'left out';
  }

  /** Runs have the times of the virtual clock. */
  get #time(): number {
    return START_MS + this.#nowMs;
  }

  count(state: Expected['state']): number {
    return this.traces.filter((trace) => trace.state === state).reduce((sum, { runs }) => sum + runs.length, 0);
  }
}

describe('with keep', () => {
  it('exactly the traces with a failure and the slow ones are sent, whole, and every run is counted once', async () => {
    await forAllAsync(300, [fc.array(step, { maxLength: 60 }), fc.boolean()], async (steps, isFailing) => {
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
          const { sampling: mark, sample_rate } = arrived.get(run.id)?.fields.extra?.metadata ?? {};
          expect([mark, sample_rate]).toEqual(sampling === undefined ? [undefined, undefined] : [sampling, 0]);
        }
      }
    });
  });

  it('the functions select by what the trace contains, and by its duration', async () => {
    const seen: EndedTrace[] = [];
    const keep = [
      (trace: EndedTrace) => seen.push(trace) > 0 && trace.runs.some(({ outputs }) => outputs?.score === 0),
    ];
    const { scene, arrived } = await holding({ keep });
    for (const score of [1, 0]) {
      const root = scene.start(`root ${score}`, { inputs: { q: 'why' }, startTime: START_MS });
      const child = scene.start('child', { inputs: { text: 'hm' } }, root);
      child.end({ score });
      root.end({ ok: true }, { endTime: START_MS + 250 });
    }
    await scene.flush();
    expect(arrived()).toEqual(['child kept-function', 'root 0 kept-function']);
    expect(seen.map(({ name, durationMs }) => `${name} ${durationMs}`)).toEqual(['root 1 250', 'root 0 250']);
    expect(seen[0]?.traceId).toBe(seen[0]?.runs[0]?.id);
    expect(seen[0]?.runs[0]).toMatchObject({ name: 'root 1', inputs: { q: 'why' }, outputs: { ok: true } });
  });

  it('a function that closes the exporter, throws, or returns a promise, keeps no trace and harms nothing', async () => {
    const throwing = () => {
      void scene.exporter.close();
      throw new Error('rule broke');
    };
    const { scene, arrived } = await holding({ keep: [throwing, (async () => true) as never] });
    scene.whole();
    await scene.flush();
    expect([arrived(), scene.stats().sampledOut]).toEqual([[], 1]);
    expect(scene.lines).toEqual([
      'warn: keep failed, the application is not affected: rule broke',
      'warn: keep: expected true or false, got a promise; it counts as false.',
    ]);
  });

  it('a failed run sends the runs of its trace at once, and a cancelled run does not', async () => {
    const { scene, arrived } = await holding({ keep: ['error'] });
    const cancelled = scene.start('cancelled');
    cancelled.fail(new DOMException('stop', 'AbortError'));
    const root = scene.start('root', { inputs: { a: 1 } });
    scene.start('failed', {}, root).fail('broke');
    await scene.flush();
    expect(arrived()).toEqual(['failed kept-error', 'root kept-error']);
    expect(scene.stats()).toMatchObject({ open: 1, sent: 1, sampledOut: 1, held: 0 });
    root.set({ metadata: { late: true } });
    root.end({ b: 2 });
    await scene.flush();
    const patch = scene.service.requests.at(-1)?.arrivals[0];
    expect(patch?.fields).toMatchObject({
      outputs: { b: 2 },
      extra: { metadata: { sampling: 'kept-error', late: true } },
    });
  });

  it.each([
    ['runs', 10_000, {}],
    ['bytes', 16, { inputs: { text: 'x'.repeat(1_048_576 - 2_000) } }],
  ])('at the limit of held %s, the oldest trace is left out, with one line', async (_, fitting, options) => {
    const { scene, arrived } = await holding({ keep: ['error'] });
    scene.whole('left out', options, options);
    const oldest = scene.start('oldest', options);
    const second = scene.start('second', options);
    for (let count = 2; count < fitting; count++) scene.start('run', options, second);
    expect(scene.stats()).toMatchObject({ held: fitting, sampledOut: 1 });
    scene.start('run', options, second);
    expect([scene.stats().held, scene.stats().sampledOut]).toEqual([fitting, 2]);
    scene.start('run', options, second);
    expect([scene.stats().held, scene.stats().sampledOut]).toEqual([0, fitting + 3]);
    oldest.fail('too late');
    second.fail('too late');
    await scene.flush();
    expect(arrived()).toEqual([]);
    expect(scene.lines).toHaveLength(1);
  });

  it('a trace that is held for `limits.openRunAgeMs` is left out when another one starts', async () => {
    const { scene, arrived } = await holding({ keep: ['error'] }, { openRunAgeMs: 1_000 });
    const aged = scene.start('aged');
    await advance(1_000);
    scene.start('next').fail('broke');
    aged.fail('too late');
    await scene.flush();
    expect([arrived(), scene.stats().sampledOut]).toEqual([['next kept-error'], 1]);
  });

  it('a trace that can be held no longer is sent, without a line, if it is slow already', async () => {
    const { scene, arrived } = await holding({ keep: ['slow>1s'] }, { openRunAgeMs: 1_001 });
    scene.start('slow');
    await advance(1_001);
    scene.start('next').end();
    await scene.flush();
    expect([arrived(), scene.lines]).toEqual([['slow kept-slow'], []]);
  });

  it('a flush waits for no held run, and `close` decides on the open traces, also on later ones', async () => {
    const { scene, arrived } = await holding({ keep: ['slow>10s'] });
    const slow = scene.start('slow');
    await advance(10_001);
    const quick = scene.start('quick');
    expect(await scene.flush()).toEqual({ ok: true, pending: 0 });
    expect(scene.stats()).toMatchObject({ created: 0, held: 2 });
    await scene.close();
    const late = scene.start('late');
    for (const run of [slow, quick, late]) run.end();
    expect(arrived()).toEqual(['slow kept-slow']);
    expect(scene.stats()).toMatchObject({ created: 1, sampledOut: 2, held: 0 });
  });

  it('an exporter that retires waits for its held traces, at most `limits.openRunAgeMs`', async () => {
    const { scene, arrived } = await holding({ keep: ['error'] }, { lingerMs: 1, openRunAgeMs: 3_000 });
    const root = scene.start('root');
    scene.start('never ends');
    scene.exporter.retire();
    await advance(2_000);
    root.fail('broke');
    await advance(999);
    expect([arrived(), scene.isClosed]).toEqual([['root kept-error'], false]);
    await advance(1);
    expect([scene.stats().sampledOut, scene.isClosed]).toEqual([1, true]);
  });

  it('a trace is kept for a failed run that waits for late content, with the ends of runs that a redaction function ends', async () => {
    const redaction = redact({ patterns: [/secret/], replace: () => String(open.end()) });
    const { scene, arrived } = await holding({ keep: ['error'], redact: redaction });
    const root = scene.start('root', { inputs: { text: 'secret' } });
    const open = scene.start('open', {}, root);
    const failed = scene.start('failed', {}, root);
    failed.keepInputs(new LateValue('processInputs', new Promise(() => {})));
    failed.fail('broke');
    root.end();
    await scene.flush();
    expect([arrived(), scene.stats().sent]).toEqual([['failed kept-error', 'open kept-error', 'root kept-error'], 3]);
  });

  it('runs and spans for another exporter follow the decision, and its refusals concern only them', async () => {
    const { scene, arrived } = await holding({ keep: ['error'] });
    const other = await delivery();
    const spanProcessors = [new RunSpanProcessor({ exporter: other.exporter, shouldExport: 'all' })];
    const order = '20260101T000000000000Z0193b3a0-2222-7000-8000-000000000001';
    const caller = fromHeaders({ 'runspan-trace': order, baggage: 'runspan-sampled=false,runspan-held=NaN' });
    const root = withExporter(scene.exporter, () => withRun(caller, () => startRun({ name: 'root' })));
    withRun(root, () => new BasicTracerProvider({ spanProcessors }).getTracer('').startSpan('span').end());
    await other.close();
    scene.start('child', {}, root).end();
    root.fail('broke');
    await scene.flush();
    expect([arrived(), other.drops]).toEqual([['child kept-error', 'root kept-error'], ['closed span']]);
  });

  it('a trace that the full queue refuses is refused whole', async () => {
    const { scene } = await holding({ keep: ['error'] }, { queueRuns: 4 });
    for (let count = 0; count < 4; count++) scene.start('root').fail('broke');
    const refused = scene.start('refused');
    scene.start('failed', {}, refused).fail('broke');
    scene.start('later', {}, refused).end();
    refused.end();
    expect(scene.stats()).toMatchObject({ created: 7, queued: 4, droppedByReason: { queue_full: 3 } });
  });
});

/** An exporter that drops every trace by its rate, and a function that returns the names and marks of what has arrived. */
async function holding(options: ConfigureOptions, limits: object = {}) {
  const scene = await delivery({ limits: { ...onFlush, ...limits }, options: { sampleRate: 0, ...options } });
  const arrived = (): string[] => {
    const arrivals = scene.service.requests.flatMap((request) => request.arrivals);
    return arrivals.map(({ name, fields }) => `${name} ${fields.extra?.metadata?.sampling}`).sort();
  };
  return { scene, arrived };
}
