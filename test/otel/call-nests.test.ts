// Generated nests of records: spans, wrapped clients, the patched `fetch` and functions of the application record the same
// model calls. A plan says which real call each record belongs to, so what must be recorded follows from the plan alone.
import { type Attributes, context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { redact } from '#src/index.ts';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { wrapOpenAI } from '#src/openai.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import type { RunOutline } from '#src/receiver/domain/run-view.ts';
import { DEFAULT_SCOPE, MemoryStore } from '#src/receiver.ts';
import { describeOpenRun, type EncodedRun, wholeJson } from '#src/run/encoded-run.ts';
import type { RunRecord } from '#src/run/record.ts';
import { overrideSink } from '#src/run/sink.ts';
import { recordRuns } from '#src/testing.ts';
import { makeSink } from '../run/memory-sink.ts';
import { cases } from '../support/campaign.ts';
import { gate } from '../support/gate.ts';
import {
  type Call,
  callsOf,
  type IsOn,
  Performance,
  type Plan,
  planArbitrary,
  recordersOf,
  tokensOf,
} from './call-plans.ts';
import { lightInto, soon } from './set-up.ts';

// A property takes long on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

interface Surroundings {
  readonly isOn?: IsOn;
  /** The scope and the attributes of a span around the plan. */
  readonly outer?: readonly [scope: string, attributes: Attributes];
}

/** Performs a plan, and returns the runs as they were sent, in the order of their ends. */
async function sent(plan: Plan, { isOn = () => true, outer }: Surroundings = {}): Promise<RunRecord[]> {
  const recorder = recordRuns({ redact: redact(plan.isMasked ? { paths: ['**.content'] } : {}) });
  recorder.stop();
  const runs: RunRecord[] = [];
  const sink = makeSink(recorder.exporter.capture);
  const start = (run: EncodedRun): boolean => {
    if (plan.arePosted) describeOpenRun(run);
    return sink.start(run);
  };
  const end = (run: EncodedRun) => void runs.push(JSON.parse(wholeJson(run)));
  const stop = overrideSink({ ...sink, start, end, light: plan.arePosted ? undefined : lightInto(runs, start) });
  const provider = new BasicTracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
  const performance = new Performance(callsOf(plan), isOn, provider);
  vi.stubGlobal('fetch', performance.answer);
  const stopFetch = recordFetch();
  const perform = async () => {
    for (const group of plan.groups) await performance.group(group);
  };
  if (outer === undefined) await perform();
  else {
    await provider.getTracer(outer[0]).startActiveSpan('outer', { attributes: outer[1] }, async (span) => {
      await perform();
      span.end();
    });
  }
  for (let turn = 0; turn < 100 && runs.length < sink.started.length; turn++) await soon();
  await provider.shutdown();
  stopFetch();
  vi.unstubAllGlobals();
  stop();
  return runs;
}

beforeAll(() => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
afterAll(() => context.disable());

type Metadata = Readonly<Record<string, unknown>> & {
  readonly recorded_by?: readonly string[];
  readonly same_call?: string;
  readonly usage_metadata?: { readonly total_tokens: number };
  readonly ls_invocation_params?: { readonly seed?: number };
};
const metadataOf = (run: RunRecord) => (run.extra?.metadata ?? {}) as Metadata;

/** Returns runs by the name of their recorder in the plan. Each request of a call has a number. */
function named(runs: readonly RunRecord[]): Map<string, RunRecord> {
  const byName = new Map<string, RunRecord>();
  for (const run of runs) {
    const { recorded_by, ls_invocation_params: { seed } = {} } = metadataOf(run);
    const isFetch = recorded_by?.[0] === 'fetch';
    const base = seed === undefined ? run.name : `${isFetch ? 'fetch' : 'wrapper'} ${seed}`;
    const again = byName.has(`${base} #1`) ? 2 : 1;
    byName.set(isFetch ? `${base} #${again}` : base, run);
  }
  return byName;
}

/** The number of the call that a run records. Undefined for the run of a group. */
const callAt = (name: string) => /^(?:span|own|wrapper|fetch) (\d+)/.exec(name)?.[1];

const holds = (runs: number, plans: fc.Arbitrary<Plan>, check: (plan: Plan, pick: number) => Promise<void>) =>
  fc.assert(fc.asyncProperty(plans, fc.nat(), check), { numRuns: cases(runs) });

const recordersIn = (plan: Plan) => callsOf(plan).flatMap(recordersOf);

function expectRecorders(plan: Plan, runs: readonly RunRecord[]): void {
  const names = [...named(runs).keys()].filter((name) => callAt(name) ?? name.startsWith('frame'));
  expect(names.sort()).toEqual(
    recordersIn(plan)
      .map(({ name }) => name)
      .sort(),
  );
}

it('each record is a run, except a request that a wrapped method itself sends', () =>
  holds(300, planArbitrary(), async (plan) => {
    const runs = await sent(plan);
    expectRecorders(plan, runs);
    const groups = plan.groups.filter(({ isBelowRun }) => isBelowRun);
    expect(runs).toHaveLength(recordersIn(plan).length + groups.length);
  }));

const COUNTED = ['usage_metadata', 'same_call', 'same_call_usage'];

/** What a run records, without its place and what other records of the call change. */
function contentOf(run: RunRecord) {
  const { name, run_type, inputs, outputs, error, events, tags } = run;
  const left = (fields: object | undefined, keys: readonly string[]) =>
    fields && Object.fromEntries(Object.entries(fields).filter(([key]) => !keys.includes(key)));
  const [errorLine] = error?.split('\n', 1) ?? [];
  const metadata = left(metadataOf(run), [...COUNTED, 'otel']);
  const { usage_metadata, same_call_usage } = metadataOf(run);
  return {
    ...{ name, run_type, inputs, outputs: left(outputs, COUNTED), errorLine, tags, metadata },
    events: events?.map((event) => event.name),
    usage: usage_metadata ?? same_call_usage,
  };
}

const contents = (runs: readonly RunRecord[]) =>
  new Map([...named(runs)].map(([name, run]) => [name, contentOf(run)] as const));

it('a run has the content that it has alone, and has it without any other recorder', () =>
  holds(200, planArbitrary(), async (plan, pick) => {
    const all = contents(await sent(plan));
    const recorders = recordersIn(plan).filter(({ name }) => !name.startsWith('frame'));
    const name = recorders[pick % recorders.length]?.name ?? '';
    const isPicked = (recorder: string) => name.split(' #')[0] === recorder;
    const alone = contents(await sent(plan, { isOn: isPicked }));
    const others = contents(await sent(plan, { isOn: (recorder) => !isPicked(recorder) }));
    if (name !== '') expect(alone.get(name) ?? 'no run').toEqual(all.get(name));
    for (const [other, content] of others) if (all.has(other)) expect(content).toEqual(all.get(other));
  }));

/** Returns the number of runs of each call whose tokens count, and checks these tokens. */
function countedIn(plan: Plan, runs: readonly RunRecord[]): Map<number, number> {
  const calls = new Map(callsOf(plan).map((call) => [call.at, call]));
  const counted = new Map([...calls.keys()].map((at) => [at, 0]));
  for (const [name, run] of named(runs)) {
    const { usage_metadata } = metadataOf(run);
    if (usage_metadata === undefined) {
      expect(run.outputs ?? {}).not.toHaveProperty('usage_metadata');
      continue;
    }
    const call = calls.get(Number(callAt(name))) as Call;
    const { input, output } = tokensOf(call);
    expect(usage_metadata.total_tokens).toBe(input + output);
    expect(run.outputs?.usage_metadata ?? usage_metadata).toEqual(usage_metadata);
    counted.set(call.at, (counted.get(call.at) ?? 0) + 1);
  }
  return counted;
}

const hasTokens = (call: Call | undefined) => call !== undefined && recordersOf(call).some(({ hasUsage }) => hasUsage);

it('the tokens of a call count once if all its records have its text, or its id', () =>
  holds(400, planArbitrary(true), async (plan) => {
    const expected = new Map(callsOf(plan).map((call) => [call.at, hasTokens(call) ? 1 : 0]));
    expect(countedIn(plan, await sent(plan))).toEqual(expected);
  }));

it('the tokens of a call count at least once, whatever its records tell', () =>
  holds(300, planArbitrary(), async (plan) => {
    const counted = countedIn(plan, await sent(plan));
    expect(callsOf(plan).filter((call) => hasTokens(call) && counted.get(call.at) === 0)).toEqual([]);
  }));

/** Returns the number of runs of each call whose tokens count in a receiver. */
async function countedByReceiver(runs: readonly RunRecord[]): Promise<Map<string, number>> {
  const store = new MemoryStore();
  const posts = runs.map(({ id, ...fields }) => ({ kind: 'post' as const, id, fields, attachments: [] }));
  await store.apply(DEFAULT_SCOPE, posts);
  const names = new Map([...named(runs)].map(([name, { id }]) => [id, name]));
  const counted = new Map<string, number>();
  for (const trace of new Set(runs.map(({ trace_id }) => trace_id))) {
    for (const json of await store.outline(DEFAULT_SCOPE, trace)) {
      const { id, usage, usage_counts } = JSON.parse(json) as RunOutline;
      const at = callAt(names.get(id) ?? '');
      if (at !== undefined && usage !== undefined && usage_counts !== false)
        counted.set(at, (counted.get(at) ?? 0) + 1);
    }
  }
  return counted;
}

/** The calls with tokens in a run, also in the answer of a service that a function returns. */
function callsWithTokens(runs: readonly RunRecord[]): Set<string | undefined> {
  const found = [...named(runs)].filter(([, run]) => {
    const { usage_metadata, same_call_usage } = metadataOf(run);
    return (usage_metadata ?? same_call_usage ?? run.outputs?.usage) !== undefined;
  });
  return new Set(found.map(([name]) => callAt(name)));
}

it('a receiver counts the tokens of a call once, and at least once if one of its runs is lost', () =>
  holds(300, planArbitrary(true), async (plan, pick) => {
    const runs = await sent(plan);
    expect(await countedByReceiver(runs)).toEqual(new Map([...callsWithTokens(runs)].map((at) => [at, 1])));
    const kept = runs.filter((_, at) => at !== pick % runs.length);
    expect(new Set((await countedByReceiver(kept)).keys())).toEqual(callsWithTokens(kept));
  }));

/** Checks that marks name earlier runs of the same trace, of the same call and of another source. */
function expectMarksOfCalls(runs: readonly RunRecord[]): void {
  const places = new Map(runs.map((run, at) => [run.id, { at, run }]));
  const names = new Map([...named(runs)].map(([name, { id }]) => [id, name]));
  for (const [at, run] of runs.entries()) {
    const { same_call, same_call_usage } = metadataOf(run);
    expect(same_call_usage === undefined || same_call !== undefined).toBe(true);
    if (same_call === undefined) continue;
    const other = places.get(same_call);
    const [own, others] = [names.get(run.id) ?? '', names.get(same_call) ?? ''];
    expect(callAt(others), `${own} names ${others}`).toBe(callAt(own));
    expect(other?.run.trace_id).toBe(run.trace_id);
    expect(other?.at).toBeLessThan(at);
  }
}

it('a run names only a run of the same call, which has ended before in the same trace', () =>
  holds(400, fc.oneof(planArbitrary(), planArbitrary(true)), async (plan) => {
    expectMarksOfCalls(await sent(plan));
  }));

const LLM = { 'openinference.span.kind': 'LLM', 'llm.model_name': 'gpt-4o' };
const CHAT = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'gpt-4o' };

it.each<[variables: readonly string[], value: string, scope: string, attributes: Attributes]>([
  [
    ['OPENINFERENCE_HIDE_INPUTS', 'OPENINFERENCE_HIDE_OUTPUTS'],
    'true',
    '@arizeai/openinference-instrumentation-openai',
    LLM,
  ],
  [['TRACELOOP_TRACE_CONTENT'], 'false', '@traceloop/instrumentation-openai', CHAT],
  [['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'], 'false', 'any', CHAT],
  [['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'], 'NO_CONTENT', 'any', CHAT],
  [['ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE'], 'metadata_only', 'com.anthropic.sdk.typescript', CHAT],
])('no text of a call inside a span is sent if %j is %s for %s', (variables, value, scope, attributes) =>
  holds(100, planArbitrary(), async (plan) => {
    for (const variable of variables) vi.stubEnv(variable, value);
    vi.stubEnv('RUNSPAN_DEV', '{"exchanges":true}');
    const runs = await sent(plan, { outer: [scope, attributes] });
    expect(JSON.stringify(runs)).not.toMatch(/question|reply/);
    expectRecorders(plan, runs);
    const counted = countedIn(plan, runs);
    expect(callsOf(plan).filter((call) => hasTokens(call) && counted.get(call.at) === 0)).toEqual([]);
  }),
);

it('a request is read and compared as often beside 1,000 open calls as beside 100', async () => {
  const readsBeside = async (count: number): Promise<number> => {
    let reads = 0;
    const messages = (at: number) => [
      {
        role: 'user',
        get content() {
          reads++;
          return `question ${at}`;
        },
      },
    ];
    const [recorder, answered] = [recordRuns(), gate()];
    const provider = new BasicTracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
    const { completions } = wrapOpenAI({ chat: { completions: { create: async (_: object) => answered } } }).chat;
    const calls = Array.from({ length: count }, (_, at) =>
      provider.getTracer('test').startActiveSpan('chat', { attributes: CHAT }, async (span) => {
        await completions.create({ model: 'gpt-4o', messages: messages(at) });
        span.end();
      }),
    );
    answered.open();
    await Promise.all(calls);
    await provider.shutdown();
    recorder.stop();
    return reads / count;
  };
  expect(await readsBeside(1_000)).toBe(await readsBeside(100));
});
