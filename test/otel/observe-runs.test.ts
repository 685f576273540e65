// Metrics and attributes are those of OpenTelemetry's GenAI conventions:
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-metrics.md
import { type Attributes, type Meter, type MetricOptions, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { type DataPoint, type Histogram, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { describe, expect, onTestFinished, test } from 'vitest';
import { currentRun, startRun, toHeaders, traceable, withRun } from '#src/index.ts';
import { wrapOpenAI } from '#src/openai.ts';
import { observeRuns, RunSpanProcessor } from '#src/otel.ts';
import { samplingDecision } from '#src/run/sampling/sampling.ts';
import { noopSink, overrideSink, type RunSink } from '#src/run/sink.ts';
import { randomFrom } from '../faults/random.ts';
import { bareClient, chunksOf, localModel, tea } from '../integrations/local-openai.ts';
import { type MemorySink, makeSink } from '../run/memory-sink.ts';
import { logLines } from '../support/log-lines.ts';
import { lightInto, setUp } from './set-up.ts';

const CALL = 'gen_ai.client.operation.duration';
const FIRST_CHUNK = 'gen_ai.client.operation.time_to_first_chunk';
const TOKENS = 'gen_ai.client.token.usage';
const TOOL = 'gen_ai.execute_tool.duration';
const AGENT = 'gen_ai.invoke_agent.duration';

const point = (of: Attributes, count: number, sum: unknown = expect.any(Number)) => [of, count, sum];

class Reader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

/** Observes the runs of one test, which are passed to `sink`. `collect` returns the points of each metric. */
function observed(capture: Partial<MemorySink['capture']> = {}) {
  const reader = new Reader();
  const meter = new MeterProvider({ readers: [reader] }).getMeter('test');
  const sink = makeSink(capture);
  onTestFinished(overrideSink(sink));
  onTestFinished(observeRuns({ meter }));
  const collect = async (): Promise<unknown> => {
    const { scopeMetrics } = (await reader.collect()).resourceMetrics;
    const entries = scopeMetrics[0]?.metrics.map(({ descriptor, dataPoints }) => {
      const points = dataPoints as DataPoint<Histogram>[];
      return [
        descriptor.name,
        points.map(({ attributes, value }) => point(attributes, value.count, value.sum)),
      ] as const;
    });
    return Object.fromEntries(entries ?? []);
  };
  return { meter, collect, sink };
}

/** Ends a span of each of these attributes, which lasts 250 ms. */
function addSpans(exporter: RunSink, ...spans: Attributes[]): void {
  const { tracer } = setUp({ processors: [new RunSpanProcessor({ exporter, shouldExport: 'all' })] });
  for (const attributes of spans) tracer.startSpan('span', { attributes, startTime: 5e11 }).end(5e11 + 250);
}

const chat = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'small' };
const asking = { ...chat, 'gen_ai.usage.input_tokens': 7 };
const input = { ...chat, 'gen_ai.token.type': 'input' };
const output = { ...chat, 'gen_ai.token.type': 'output' };
const answered = { ...chat, 'gen_ai.response.model': 'small-2026-01-01' };

describe.each([
  ['recorded', undefined],
  ['left out by sampling', () => false],
] as const)('in a trace that is %s', (_, sampling) => {
  test('a call has its provider, models, tokens and error, and a stream the time to its first chunk', async () => {
    const { collect, sink } = observed({ sampling });
    const { completions } = wrapOpenAI(bareClient(await localModel(), { maxRetries: 0 })).chat;
    const stream = await completions.create({ model: 'small', messages: tea, stream: true });
    expect(await collect()).toEqual({});
    await chunksOf(stream);
    await completions.create({ model: 'small', messages: tea });
    await expect(completions.create({ model: 'fail-500', messages: tea })).rejects.toThrow();
    startRun({ name: 'search', runType: 'tool' }).fail('it broke: badly');
    startRun({ name: 'search', runType: 'tool' }).fail('HTTP 429: slow down');
    const failed = { ...chat, 'gen_ai.request.model': 'fail-500', 'error.type': 'InternalServerError' };
    expect(await collect()).toEqual({
      [CALL]: [point(answered, 2), point(failed, 1)],
      [FIRST_CHUNK]: [point(answered, 1)],
      // The words of the question, and of the answer that repeats it after "You said:".
      [TOKENS]: [point({ ...answered, ...input }, 1, 3), point({ ...answered, ...output }, 1, 5)],
      [TOOL]: ['_OTHER', '429'].map((type) => point({ 'gen_ai.tool.name': 'search', 'error.type': type }, 1)),
    });
    expect([sink.ended.length, sink.skipped]).toEqual(sampling ? [0, 5] : [5, 0]);
  });

  test('spans of calls, tools and agents have the durations of the spans', async () => {
    const { collect, sink } = observed({ sampling });
    const named = { 'gen_ai.agent.name': 'Tutor' };
    const tool = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'search', ...named };
    const agent = { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.usage.input_tokens': 9, ...named };
    const call = { ...asking, 'gen_ai.response.time_to_first_chunk': 0.125 };
    const cook = { 'openinference.span.kind': 'AGENT', 'agent.name': 'Cook' };
    addSpans(sink, call, tool, agent, cook, { 'gen_ai.operation.name': 'plan' });
    expect(await collect()).toEqual({
      [CALL]: [point(chat, 1, 0.25)],
      [FIRST_CHUNK]: [point(chat, 1, 0.125)],
      [TOKENS]: [point(input, 1, 7)],
      [TOOL]: [point({ 'gen_ai.tool.name': 'search', ...named }, 1, 0.25)],
      [AGENT]: [point(named, 1, 0.25), point({ 'gen_ai.agent.name': 'Cook' }, 1, 0.25)],
    });
  });

  test('a call that two libraries record counts once, with the tokens of the one that has them', async () => {
    const { collect, sink: exporter } = observed({ sampling });
    const { provider } = setUp({ processors: [new RunSpanProcessor({ exporter, shouldExport: 'all' })] });
    const bare = { ...chat, 'gen_ai.response.id': 'chatcmpl-1' };
    const used = { ...bare, 'gen_ai.usage.output_tokens': 4 };
    const [one, two] = [provider.getTracer('one'), provider.getTracer('two')];
    for (const at of [0, 1, 2]) {
      const outer = one.startSpan('outer', { attributes: at === 0 ? bare : used });
      two.startSpan('inner', { attributes: at === 1 ? bare : used }, trace.setSpan(ROOT_CONTEXT, outer)).end();
      outer.end();
    }
    expect(await collect()).toEqual({ [CALL]: [point(chat, 3)], [TOKENS]: [point(output, 3, 12)] });
  });
});

test('1,000 traces of which a tenth is recorded are counted in full', async () => {
  const { collect, sink } = observed({ sampling: samplingDecision(0.1, undefined) });
  const random = randomFrom(17);
  const expected = { chain: 0, llm: 0, tool: 0, tokens: 0 };
  const grow = (depth: number): void => {
    const runType = (['chain', 'llm', 'tool'] as const)[Math.floor(random() * 3)] ?? 'chain';
    const tokens = runType === 'llm' ? Math.floor(random() * 100) : 0;
    expected[runType]++;
    expected.tokens += tokens;
    const inside = () => {
      if (runType === 'llm') currentRun()?.set({ usage: { input_tokens: tokens } });
      for (let left = depth === 3 ? 0 : Math.floor(random() * 3); left > 0; left--) grow(depth + 1);
    };
    if (random() < 0.5) return void traceable(inside, { name: runType, runType })();
    using run = startRun({ name: runType, runType });
    withRun(run, inside);
  };
  for (let trace = 0; trace < 1_000; trace++) grow(0);
  const of = { 'gen_ai.operation.name': 'chat' };
  expect(await collect()).toEqual({
    [CALL]: [point(of, expected.llm)],
    [TOKENS]: [point({ ...of, 'gen_ai.token.type': 'input' }, expected.llm, expected.tokens)],
    [TOOL]: [point({ 'gen_ai.tool.name': 'tool' }, expected.tool)],
  });
  expect(sink.skipped).toBeGreaterThan(5 * sink.started.length);
  expect(sink.started.length + sink.skipped).toBe(expected.chain + expected.llm + expected.tool);
});

test('a left-out run encodes no payload, calls no hook, and keeps its trace left out', async () => {
  const seen: string[] = [];
  const note = (what: string) => () => void seen.push(what);
  const { collect } = observed({ sampling: () => false, hooks: { onStart: note('start'), onEnd: note('end') } });
  const payload = { toJSON: note('encoded') };
  const inside = (_: object) => {
    currentRun()?.set({ inputs: { payload }, outputs: { payload } });
    currentRun()?.event('note', { payload });
    seen.push(toHeaders().baggage ?? '');
    return payload;
  };
  traceable(inside, { name: 'work', runType: 'tool', onEnd: note('own end') })(payload);
  expect(seen).toEqual(['runspan-sampled=false,runspan-project=default']);
  expect(await collect()).toEqual({ [TOOL]: [point({ 'gen_ai.tool.name': 'work' }, 1)] });
});

test('a left-out span is counted, and no line names the attributes that are left out', async () => {
  const lines = logLines('warn');
  const { collect, sink } = observed({ sampling: () => false });
  addSpans(sink, { ...chat, 'acme.note': 'tea' });
  await new RunSpanProcessor().shutdown();
  expect(await collect()).toEqual({ [CALL]: [point(chat, 1, 0.25)] });
  expect(lines).toEqual([]);
});

test('light runs of spans are counted, whether their attributes are known or new', async () => {
  const { collect, sink } = observed();
  addSpans({ ...sink, light: lightInto([], sink.start) }, chat, chat, chat, asking);
  expect(await collect()).toEqual({ [CALL]: [point(chat, 4, 1)], [TOKENS]: [point(input, 1, 7)] });
});

test('nothing is counted while tracing is off, twice, or after the end of the observation', async () => {
  const { meter, collect } = observed();
  const call = traceable(() => {}, { name: 'work', runType: 'tool' });
  traceable(() => call(), { name: 'off', enabled: false })();
  traceable(() => call(), { name: 'no endpoint', exporter: noopSink })();
  const stop = observeRuns({ meter });
  call();
  stop();
  call();
  expect(await collect()).toEqual({ [TOOL]: [point({ 'gen_ai.tool.name': 'work' }, 1)] });
});

test('a meter that throws, or is none, is logged once and changes no result', () => {
  const lines = logLines('warn');
  onTestFinished(overrideSink(makeSink()));
  const made: unknown[] = [];
  const createHistogram = (name: string, { unit, advice }: MetricOptions) => {
    made.push([name, unit, ...(advice?.explicitBucketBoundaries?.slice(-2) ?? [])]);
    return { record: () => expect.unreachable('no room') };
  };
  onTestFinished(observeRuns({ meter: { createHistogram } as unknown as Meter }));
  onTestFinished(observeRuns({ meter: 'prometheus' as unknown as Meter }));
  const call = traceable(() => 'done', { name: 'search', runType: 'tool' });
  expect([call(), call()]).toEqual(['done', 'done']);
  expect(lines).toEqual([
    'warn: observeRuns: expected `meter` to be a meter of OpenTelemetry; the option is ignored.',
    expect.stringMatching(/^warn: observeRuns failed, the application is not affected: .*no room/),
  ]);
  // The last buckets of the conventions.
  expect(made).toEqual([
    [CALL, 's', 40.96, 81.92],
    [FIRST_CHUNK, 's', 40.96, 81.92],
    [TOKENS, '{token}', 16_777_216, 67_108_864],
    [TOOL, 's', 40.96, 81.92],
    [AGENT, 's', 204.8, 409.6],
  ]);
});
