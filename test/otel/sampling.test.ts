import {
  type Context,
  context,
  defaultTextMapGetter,
  INVALID_SPAN_CONTEXT,
  ROOT_CONTEXT,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { suppressTracing, W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  type IdGenerator,
  InMemorySpanExporter,
  ParentBasedSampler,
  type Sampler,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fromHeaders, startRun, toHeaders, traceable, traced, traceMethods, withContext, withRun } from '#src/index.ts';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { RunspanCallbackHandler } from '#src/langchain.ts';
import { RunPropagator, RunSampler, RunSpanProcessor } from '#src/otel.ts';
import { rootContext } from '#src/run/context/context.ts';
import { currentContext } from '#src/run/context/current.ts';
import { requestHeaders } from '#src/run/propagation/propagation.ts';
import { samplingDecision } from '#src/run/sampling/sampling.ts';
import { overrideSink } from '#src/run/sink.ts';
import { recordRuns } from '#src/testing.ts';
import { cases } from '../support/campaign.ts';
import { below, inSpan, keeping, lightInto, nest, notingSink, runNamed, setUp, soon, tree } from './set-up.ts';

const parentBased = (root: Sampler): Sampler => new ParentBasedSampler({ root });
const off = () => setUp({ sampler: new AlwaysOffSampler() });

/** Sets up a provider that samples only root spans with these names. */
const samplingOnly = (...names: string[]) =>
  setUp({
    sampler: parentBased({ shouldSample: (_context, _traceId, name) => ({ decision: names.includes(name) ? 2 : 0 }) }),
  });

/** Sets up a provider that samples nothing, and a sink that notes its calls. */
function noted(capture: Parameters<typeof notingSink>[0] = {}) {
  const { tracer } = off();
  const { sink, asked, runs } = notingSink(capture);
  onTestFinished(overrideSink(sink));
  return { tracer, sink, asked, runs };
}

/** Returns the context of a request with these trace flags, as the W3C propagator extracts it. */
function remote(flags: '00' | '01'): Context {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-${flags}`;
  const getter = { get: () => traceparent, keys: () => ['traceparent'] };
  return new W3CTraceContextPropagator().extract(ROOT_CONTEXT, {}, getter);
}

const work = traceable(() => 'done', { name: 'work' });

class Service {
  @traced()
  decorated() {
    return 'done';
  }

  patched() {
    return 'done';
  }
}
traceMethods(Service, ['patched']);

async function modelCall() {
  const { fetch } = globalThis;
  globalThis.fetch = async () => Response.json({ model: 'm', choices: [] });
  const stop = recordFetch();
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
  const response = await globalThis.fetch('https://api.openai.com/v1/chat/completions', { method: 'POST', body });
  await response.text();
  stop();
  globalThis.fetch = fetch;
}

function langchainStep() {
  const handler = new RunspanCallbackHandler();
  const id = '0195c0de-0000-4000-8000-000000000000';
  handler.handleChainStart({ lc: 1, type: 'not_implemented', id: ['Chain'] }, { input: 'x' }, id);
  handler.handleChainEnd({ output: 'y' }, id);
}

describe('below a span that OpenTelemetry does not sample', () => {
  test.each<[string, () => unknown]>([
    ['a traced function', () => work()],
    ['an asynchronous function', () => traceable(soon)()],
    ['a generator', () => [...traceable(function* () {})()]],
    ['a run', () => startRun({ name: 'run' }).end()],
    ['a decorated method', () => new Service().decorated()],
    ['a method of `traceMethods`', () => new Service().patched()],
    ['a model call by `fetch`', modelCall],
    ['a LangChain step', langchainStep],
    ['a run with `withContext`', () => withContext({ userId: 'ada' }, () => work())],
  ])('%s is left out and counted', async (_, fn) => {
    const { tracer, asked } = noted();
    await fn();
    expect(asked.at(-1)).toMatch(/^end /);
    asked.length = 0;
    await inSpan(tracer, 'span', fn);
    expect(asked).toEqual(['skip']);
  });

  test('a whole tree of functions is left out, and each call is counted', async () => {
    const { tracer, asked } = noted();
    await nest(tracer, 'span > run 1 > run 2 > run 3');
    expect(asked).toEqual(['skip', 'skip', 'skip']);
  });

  test('the current run records nothing, even inside a recorded function', async () => {
    const { tracer, recorder } = off();
    const { currentRun } = await import('#src/index.ts');
    const fn = traceable(() => currentRun()?.set({ metadata: { written: true } }), { name: 'inner' });
    await traceable(() => inSpan(tracer, 'span', fn), { name: 'outer' })();
    expect(runNamed(recorder, 'outer').extra?.metadata).toBeUndefined();
  });

  test('a function with its own exporter is left out', async () => {
    const { tracer } = off();
    const { sink, asked } = notingSink();
    await inSpan(tracer, 'span', () => traceable(() => 1, { exporter: sink })());
    await inSpan(tracer, 'span', () => startRun({ name: 'run', exporter: sink }).end());
    expect(asked).toEqual(['skip', 'skip']);
  });

  test('a function is left out if the span is recorded without the sampled flag', async () => {
    const { tracer, recorder } = setUp({ sampler: { shouldSample: () => ({ decision: 1 }) } });
    await nest(tracer, 'span > run');
    expect(recorder.runs).toEqual([]);
  });

  test.each([
    ['00', []],
    ['01', ['work']],
  ] as const)('a remote span with the flags %s decides', (flags, names) => {
    const { recorder } = setUp();
    context.with(remote(flags), work);
    expect(tree(recorder)).toEqual(names);
  });

  test('the headers carry the decision, with and without a run', async () => {
    const { tracer } = off();
    const written: Record<string, string>[] = [];
    await inSpan(tracer, 'span', () => {
      written.push(toHeaders());
      traceable(() => written.push(toHeaders()))();
      const carrier = {};
      new RunPropagator().inject(context.active(), carrier, {
        set: (target, key, value) => Reflect.set(target as object, key, value),
      });
      written.push(carrier);
    });
    expect(written).toHaveLength(3);
    for (const headers of written) {
      expect(headers.baggage).toMatch(/\brunspan-sampled=false\b/);
      expect(fromHeaders(headers)?.traceId).toBe(fromHeaders(headers)?.id);
      const { sink, asked } = notingSink();
      const stop = overrideSink(sink);
      withRun(fromHeaders(headers), work);
      stop();
      expect(asked).toEqual(['skip']);
    }
  });

  test('there are no headers while tracing is off', async () => {
    const { tracer, recorder } = off();
    recorder.stop();
    expect(await inSpan(tracer, 'span', () => toHeaders())).toEqual({});
  });

  test.each(['span', 'run'])('a %s with `root` makes its own decision, also for what is below it', async (kind) => {
    const { tracer, recorder } = samplingOnly('root');
    const rootFunction = traceable(() => work(), { name: 'root', root: true });
    const rootSpan = () =>
      tracer.startActiveSpan('root', { root: true }, (span) => {
        work();
        span.end();
      });
    await inSpan(tracer, 'span', kind === 'run' ? rootFunction : rootSpan);
    expect(tree(recorder)).toEqual(['root', '  work']);
  });

  test('a run of `withRun` keeps its own decision', async () => {
    const { tracer, recorder } = off();
    const run = startRun({ name: 'run' });
    await inSpan(tracer, 'span', () => withRun(run, work));
    expect(tree(recorder)).toEqual(['run', '  work']);
  });
});

describe('OpenTelemetry decides nothing', () => {
  test('if a span has no valid trace', () => {
    const { recorder } = off();
    context.with(below(trace.wrapSpanContext(INVALID_SPAN_CONTEXT)), work);
    trace.getTracer('no provider').startActiveSpan('span', work);
    expect(tree(recorder)).toEqual(['work', 'work']);
  });

  test('about a span that is sampled but filtered', async () => {
    const { tracer, recorder } = setUp({ processors: [new RunSpanProcessor({ shouldExport: () => false })] });
    await nest(tracer, 'span > run');
    expect(tree(recorder)).toEqual(['run']);
  });
});

describe('a generator', () => {
  const leaves = traceable(
    function* () {
      yield work();
      yield work();
    },
    { name: 'leaves' },
  );

  test.each([
    ['sampled', 'unsampled', ['sampled', '  leaves', '    work', '    work']],
    ['unsampled', 'sampled', ['sampled']],
  ])('keeps the decision of the %s span in which it was called', async (called, read, expected) => {
    const { tracer, recorder } = samplingOnly('sampled');
    const steps = await inSpan(tracer, called, () => leaves());
    await inSpan(tracer, read, () => [...steps]);
    expect(tree(recorder)).toEqual(expected);
  });
});

describe('while OpenTelemetry suppresses tracing', () => {
  const suppressed = (fn: () => unknown) => context.with(suppressTracing(context.active()), fn);

  test.each<[string, () => unknown]>([
    ['a function', () => work()],
    ['a function with `root`', () => traceable(() => 1, { root: true })()],
    ['a run', () => startRun({ name: 'run' }).end()],
    ['a function below a run of `withRun`', () => withRun(startRun({ name: 'run' }), work)],
  ])('%s is not recorded', async (_, fn) => {
    const { tracer, recorder } = setUp();
    suppressed(fn);
    await inSpan(tracer, 'span', () => suppressed(fn));
    await traceable(() => suppressed(fn), { name: 'outer' })();
    expect(tree(recorder)).toEqual(['outer', 'span']);
  });

  test('a function with its own exporter is not recorded, even with `root`', () => {
    setUp();
    const { sink, asked } = notingSink();
    suppressed(() => traceable(() => 1, { exporter: sink, root: true })());
    suppressed(() => traceable(() => 1, { exporter: sink })());
    expect(asked.filter((call) => call !== 'skip')).toEqual([]);
  });

  test('there are no headers', () => {
    setUp();
    expect(traceable(() => suppressed(() => toHeaders()))()).toEqual({});
  });
});

describe('our own sampling', () => {
  test('applies after the sampling of OpenTelemetry, also in called programs', async () => {
    const { tracer } = samplingOnly('sampled');
    const { sink, asked } = notingSink({ sampling: () => false });
    onTestFinished(overrideSink(sink));
    const called = () => withRun(fromHeaders({ ...requestHeaders(currentContext() ?? rootContext) }), work);
    await nest(tracer, 'sampled > run', called);
    expect(asked).toEqual(['skip', 'skip', 'skip']);
  });

  test('makes one decision for all runs in an OpenTelemetry trace, based on its trace id', async () => {
    const traceIds: string[] = [];
    const { sink } = notingSink({ sampling: ({ traceId }) => traceIds.push(traceId) > 0 });
    onTestFinished(overrideSink(sink));
    const { tracer } = setUp({ processors: [new RunSpanProcessor({ shouldExport: () => false })] });
    const stop = overrideSink(sink);
    const traceId = await inSpan(tracer, 'filtered', (span) => {
      work();
      startRun({ name: 'run' }).end();
      return span.spanContext().traceId;
    });
    stop();
    expect(traceIds).toEqual([traceId, traceId]);
  });
});

interface Node {
  readonly isSpan: boolean;
  readonly isModelWork: boolean;
  readonly hasFailed: boolean;
  readonly children: readonly Node[];
}

const { forest } = fc.letrec<{ forest: Node[]; node: Node }>((tie) => ({
  node: fc.record({
    ...{ isSpan: fc.boolean(), isModelWork: fc.boolean(), hasFailed: fc.nat(3).map((number) => number === 0) },
    children: fc.oneof({ depthSize: 'medium' }, fc.constant([]), tie('forest')),
  }),
  forest: fc.array(tie('node'), { maxLength: 4 }),
}));

const isMarked = ({ attributes }: { attributes: object }) => 'openinference.span.kind' in attributes;
const isSampled = (name: string) => name.startsWith('sampled');
const byName = parentBased({ shouldSample: (_, __, name) => ({ decision: isSampled(name) ? 2 : 0 }) });

test.each<[string, 'all' | 'llm' | typeof isMarked, Sampler?]>([
  ['whose first span another sampler samples', 'all', byName],
  ['of sampled and failed traces, with `keep`', 'all'],
  ['of sampled and failed traces, with `keep` and only model calls', 'llm'],
  ['of sampled and failed traces, with `keep` and a filter', isMarked],
])('exactly the runs are recorded %s', async (_, shouldExport, sampler) => {
  setUp({ processors: [] });
  const isRun = ({ isSpan, isModelWork, children }: Node): boolean =>
    !isSpan || isModelWork || shouldExport === 'all' || (shouldExport === 'llm' && children.some(isRun));
  const property = fc.asyncProperty(forest, forest, async (dropped, sampled) => {
    const { sink, arrived } = keeping(sampler ? undefined : ({ name }) => isSampled(name) || 0);
    const stop = overrideSink(sampler ? { ...sink, hold: undefined } : sink);
    const others = new InMemorySpanExporter();
    const spanProcessors = [new RunSpanProcessor({ shouldExport }), new SimpleSpanProcessor(others)];
    const provider = new BasicTracerProvider({ sampler: sampler ?? new RunSampler(), spanProcessors });
    const traces: { readonly names: string[]; rule: string | undefined }[] = [];
    const spans: string[] = [];
    const late: (() => void)[] = [];
    let count = 0;
    const visit = async (node: Node, tree: string, above?: (typeof traces)[number]): Promise<unknown> => {
      const name = `${tree} ${++count}`;
      const isLate = count % 4 === 0;
      const isCut = sampler !== undefined && node.isSpan && !isSampled(name);
      const first = { names: [], rule: sampler || isSampled(name) ? '' : undefined };
      const own = isRun(node) ? ((isCut ? undefined : above) ?? first) : undefined;
      if (isCut) first.rule = 'left out';
      if (own === first) traces.push(first);
      own?.names.push(name);
      const inside = async () => {
        await soon();
        await Promise.all(node.children.map((child) => visit(child, tree, own ?? above)));
        if (node.hasFailed) throw new Error('broke');
      };
      const ended = () => {
        if (own) own.rule ??= (node.hasFailed && 'kept-error 0') || (own === first ? 'left out' : undefined);
      };
      if (!node.isSpan) return traceable(inside, { name })().catch(soon).then(ended);
      if (isSampled(name)) spans.push(name);
      const attributes = node.isModelWork ? { 'openinference.span.kind': 'AGENT' } : {};
      const span = provider.getTracer('test').startSpan(name, { attributes });
      await context.with(below(span), inside).catch(() => span.setStatus({ code: SpanStatusCode.ERROR }));
      late.push(() => span.end(), ended);
      if (!isLate) for (const end of late.splice(-2)) end();
    };
    const trees = [...dropped.map((node) => visit(node, 'dropped')), ...sampled.map((node) => visit(node, 'sampled'))];
    await Promise.all(trees);
    for (const end of late) end();
    stop();
    const seen = others.getFinishedSpans().map(({ name }) => name);
    // The processors of thousands of cases would slow down each other.
    await provider.shutdown();
    const kept = traces.filter(({ rule }) => rule !== 'left out');
    const expected = kept.flatMap(({ names, rule }) => names.map((name) => `${name} ${rule}`.trim()));
    expect(arrived()).toEqual(expected.toSorted());
    expect(seen.toSorted()).toEqual(spans.toSorted());
  });
  const plain = { isSpan: true, isModelWork: false, hasFailed: true, children: [] };
  const known: [Node[], Node[]][] = [[[{ ...plain, children: [plain] }], []]];
  await fc.assert(property, { numRuns: cases(500, known), examples: known });
});

const recordsAll: Sampler = { shouldSample: () => ({ decision: 1 }) };
const headers = { 'runspan-trace': startRun({ name: 'caller' }).dottedOrder, baggage: 'runspan-held=0.25' };
const held = new RunPropagator().extract(remote('00'), headers, defaultTextMapGetter);

test.each<[string, Sampler | undefined, Context, string?]>([
  ['nothing, if another sampler does not record it', new AlwaysOffSampler(), ROOT_CONTEXT],
  ['all, if another sampler records it', recordsAll, ROOT_CONTEXT, ' kept-error'],
  ['nothing, if the caller has left it out', undefined, remote('00')],
  ['nothing, if the caller has left it out, and another sampler records it', recordsAll, remote('00')],
  ['all, if the caller has sampled it', parentBased(new AlwaysOffSampler()), remote('01'), ''],
  ['all at the rate of the caller, if the caller holds it', undefined, held, ' kept-error 0.25'],
])('with `keep`, of a failed trace arrives %s', async (_, sampler = new RunSampler(), caller, rule) => {
  const { tracer } = setUp({ sampler });
  const { sink, arrived } = keeping();
  onTestFinished(overrideSink(sink));
  const fail = () => Promise.reject(new Error('broke'));
  await context.with(caller, () => nest(tracer, 'span > run 1 > inner > run 2', fail).catch(soon));
  const names = rule === undefined ? [] : ['inner', 'run 1', 'run 2', 'span'];
  expect(arrived()).toEqual(names.map((name) => name + rule));
});

test('a span with another exporter follows the held run around it', async () => {
  const { sink, asked } = notingSink();
  const exporter = { ...sink, light: lightInto([], () => true) };
  const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter, shouldExport: 'all' })] });
  const run = startRun({ name: 'run', exporter: keeping(() => 0).sink });
  await withRun(run, () => inSpan(tracer, 'span', soon));
  expect(asked).toEqual([]);
  run.fail('broke');
  expect(asked).toEqual(['start span', 'end span']);
});

describe('RunSampler', () => {
  /** Sets up a provider with this sampler, whose spans have these trace ids. Another processor notes their names. */
  function withSampler(sampler: RunSampler, traceIds: string[] = []) {
    const seen: string[] = [];
    const other: SpanProcessor = {
      onStart: ({ name }) => void seen.push(name),
      onEnd() {},
      forceFlush: async () => {},
      shutdown: async () => {},
    };
    let count = 0;
    const idGenerator: IdGenerator = {
      generateTraceId: () => traceIds.shift() ?? String(++count).padStart(32, '0'),
      generateSpanId: () => String(++count).padStart(16, '0'),
    };
    const processor = new RunSpanProcessor({ shouldExport: 'all' });
    const { recorder } = setUp({ processors: [] });
    const provider = new BasicTracerProvider({ sampler, spanProcessors: [processor, other], idGenerator });
    onTestFinished(() => provider.shutdown());
    return { tracer: provider.getTracer('test'), seen, recorder };
  }

  /** Installs a sink with this sampling until the test has finished, and returns the names of its runs. */
  function sampledBy(...given: Parameters<typeof samplingDecision>) {
    const { sink, runs } = notingSink({ sampling: samplingDecision(...given) });
    onTestFinished(overrideSink(sink));
    return () => [...new Set(runs.map(({ name }) => name))];
  }

  const ids = Array.from({ length: 1_000 }, (_, index) => (index + 1).toString(16).padStart(32, '0'));

  test.each<[string, () => RunSampler, number]>([
    ['the configured rate', () => new RunSampler(), 0.3],
    ['its own rate', () => new RunSampler({ sampleRate: 0.3 }), 1],
  ])('samples the same traces as our runs, with %s', async (_, create, configured) => {
    const { tracer, seen } = withSampler(create(), [...ids]);
    const names = sampledBy(configured, undefined);
    const traces: string[] = [];
    for (const id of ids) {
      await inSpan(tracer, id, () => nest(tracer, `child ${id} > run ${id}`));
      const isSampled = samplingDecision(0.3, undefined)?.({ traceId: id, name: '', runType: '', project: '' });
      if (isSampled === true) traces.push(id, `child ${id}`, `run ${id}`);
    }
    expect(traces.length / 3).toBeGreaterThan(250);
    expect(traces.length / 3).toBeLessThan(350);
    expect(names()).toEqual(traces);
    expect(seen).toEqual(traces.filter((name) => !name.startsWith('run')));
  });

  test('follows the sampled flag of a remote parent', () => {
    const { tracer, seen } = withSampler(new RunSampler({ sampleRate: 0 }));
    for (const flags of ['00', '01'] as const) tracer.startSpan(flags, {}, remote(flags)).end();
    expect(seen).toEqual(['01']);
  });

  test('follows the decision for the run around a span, except with `root`', async () => {
    const { tracer, seen } = withSampler(new RunSampler());
    const names = sampledBy(1, ({ name }) => name === 'run kept' || name === 'root');
    await nest(tracer, 'run kept > a');
    await nest(tracer, 'run left out > b', () => tracer.startSpan('root', { root: true }).end());
    await nest(tracer, 'run kept > c', () => tracer.startSpan('left out', { root: true }).end());
    expect(seen).toEqual(['a', 'root', 'c']);
    expect(names()).toEqual(['run kept', 'a', 'root', 'c']);
  });

  test('calls its own `sampler` with the trace id and the name of the span', () => {
    const starts: unknown[] = [];
    const sampler = new RunSampler({ sampleRate: 0, sampler: (start) => starts.push(start) === 1 || undefined });
    const { tracer, seen } = withSampler(sampler, ['a'.repeat(32), 'b'.repeat(32)]);
    tracer.startSpan('one').end();
    tracer.startSpan('two').end();
    expect(starts).toMatchObject([
      { traceId: 'a'.repeat(32), name: 'one', runType: 'chain', project: 'default' },
      { traceId: 'b'.repeat(32), name: 'two' },
    ]);
    expect(seen).toEqual(['one']);
  });

  test('switches functions off without a span processor', async () => {
    const { recorder } = setUp({ processors: [] });
    const tracer = new BasicTracerProvider({ sampler: new RunSampler({ sampleRate: 0 }) }).getTracer('test');
    await nest(tracer, 'span > run');
    expect(recorder.runs).toEqual([]);
  });

  test('samples every trace while tracing is off', () => {
    const { tracer, seen, recorder } = withSampler(new RunSampler());
    recorder.stop();
    tracer.startSpan('span').end();
    expect(seen).toEqual(['span']);
  });
});

describe('a span with `root`', () => {
  const startRoot = (tracer: Tracer) => tracer.startSpan('root', { root: true }).end();

  test.each([
    ['a function', 'run', ['root', 'run']],
    ['a function in a span', 'span > run', ['root', 'span', '  run']],
    ['a span in a function', 'run > span', ['root', 'run', '  span']],
  ])('starts a trace inside %s', async (_, path, expected) => {
    const { tracer, recorder } = setUp();
    await nest(tracer, path, () => startRoot(tracer));
    expect(tree(recorder)).toEqual(expected);
  });

  test('starts a trace in a context with values, and without a context manager', async () => {
    const { tracer, recorder } = setUp();
    const active = context.active().setValue(Symbol('key'), 'value');
    await context.with(active, () => nest(tracer, 'run 1', () => startRoot(tracer)));
    context.disable();
    await nest(tracer, 'run 2', () => startRoot(tracer));
    expect(tree(recorder)).toEqual(['root', 'root', 'run 1', 'run 2']);
  });

  test('is not any span with an explicit context', async () => {
    const { tracer, recorder } = setUp();
    await nest(tracer, 'run', () => {
      tracer.startSpan('a', {}, ROOT_CONTEXT).end();
      tracer.startSpan('b', {}, context.active().setValue(Symbol('key'), 'value')).end();
    });
    expect(tree(recorder)).toEqual(['run', '  a', '  b']);
  });
});

test('a span below a call that is off has no run, nor has a span below it that starts elsewhere', () => {
  const own = recordRuns();
  own.stop();
  const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter: own.exporter, shouldExport: 'all' })] });
  const span = traceable(() => tracer.startSpan('secret'), { enabled: false })();
  tracer.startSpan('also secret', {}, trace.setSpan(context.active(), span)).end();
  span.end();
  tracer.startSpan('other').end();
  expect(own.runs.map(({ name }) => name)).toEqual(['other']);
});

test('RunSampler leaves out the spans below a call that is off', () => {
  const { tracer } = setUp({ sampler: new RunSampler() });
  expect(traceable(() => tracer.startSpan('secret'), { enabled: false })().isRecording()).toBe(false);
  expect(tracer.startSpan('other').isRecording()).toBe(true);
});
