// The same spans go to an exporter without hooks and to one with hooks, for which their runs take another way.
import { type Attributes, context, type Span, SpanStatusCode, type Tracer } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createExporter, type HookedRun, type Run, type RunChanges, type RunHooks, traceable } from '#src/index.ts';
import { RunLogRecordProcessor, RunSpanProcessor } from '#src/otel.ts';
import { createReceiver, type Receiver, type StoredRun } from '#src/receiver.ts';
import { cases } from '../support/campaign.ts';
import { logLines } from '../support/log-lines.ts';
import { below } from './set-up.ts';

type Protocol = 'runs' | 'otlp';

let plain: Receiver;
let hooked: Receiver;
let projects = 0;

beforeAll(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  [plain, hooked] = await Promise.all([createReceiver(), createReceiver()]);
});

afterAll(async () => {
  context.disable();
  await Promise.all([plain.close(), hooked.close()]);
});

/** Records spans without and with hooks, and returns both runs of each span. */
async function record(
  hooks: RunHooks,
  perform: (tracer: Tracer, flush: () => Promise<unknown>) => Promise<readonly Span[]> | readonly Span[],
  shouldExport: 'llm' | 'all' = 'all',
  protocol: Protocol = 'runs',
) {
  const project = `spans ${++projects}`;
  const exporters = [plain, hooked].map(({ url }, at) =>
    createExporter({ endpoint: url, apiKey: 'key', project, protocol, ...(at === 1 && hooks) }),
  );
  const spanProcessors = exporters.map((exporter) => new RunSpanProcessor({ exporter, shouldExport }));
  const provider = new BasicTracerProvider({ spanProcessors });
  const spans = await perform(provider.getTracer('test'), () => provider.forceFlush());
  await provider.shutdown();
  await Promise.all(exporters.map((exporter) => exporter.close()));
  for (const exporter of exporters) {
    const { created, sent } = exporter.stats();
    expect(exporter.stats()).toMatchObject({ created: sent, open: 0, queued: 0, inFlight: 0, dropped: 0 });
    expect(created).toBeGreaterThanOrEqual(spans.length);
  }
  const all = await Promise.all([plain, hooked].map((receiver) => receiver.runs({ project })));
  return spans.map((span) => {
    const { spanId } = span.spanContext();
    return all.flatMap((runs) => runs.filter(({ extra }) => Object(extra?.metadata?.otel).span_id === spanId));
  });
}

const changes = fc.record<RunChanges>(
  {
    name: fc.constantFrom('renamed', 'other'),
    tags: fc.subarray(['a', 'b'], { minLength: 1 }),
    metadata: fc.dictionary(fc.constantFrom('k', 'note'), fc.integer()),
    inputs: fc.record({ q: fc.constant('hidden') }),
    outputs: fc.record({ a: fc.constant('hidden') }),
  },
  { requiredKeys: [] },
);
const attributes = fc.record<Attributes>(
  {
    'input.value': fc.constantFrom('hi', '{"q":1}'),
    'output.value': fc.constantFrom('ho', '{"a":1}'),
    'tag.tags': fc.constant(['a', 'c']),
    'llm.token_count.total': fc.constant(3),
    note: fc.constant('of the span'),
  },
  { requiredKeys: [] },
);
const plan = fc.record({
  kind: fc.constantFrom('LLM', 'TOOL', 'CHAIN'),
  above: fc.nat(3),
  atStart: attributes,
  atEnd: attributes,
  isFailed: fc.boolean(),
  inside: fc.constantFrom('nothing', 'flush', 'function', 'message', 'exception'),
  /** The shutdown ends the other spans. */
  ends: fc.constantFrom('in start order', 'in reverse order', 'never'),
  inStart: changes,
  inEnd: changes,
  throws: fc.constantFrom('onStart', 'onEnd', undefined),
});
type Plan = typeof plan extends fc.Arbitrary<infer Value> ? Value : never;

/** What is recorded with hooks, from what is recorded without them. */
function changed(run: StoredRun, { inStart, inEnd, throws }: Plan): object {
  const [first, last] = [throws === 'onStart' ? {} : inStart, throws === 'onEnd' ? {} : inEnd];
  const metadata = { ...first.metadata, ...run.extra?.metadata, ...last.metadata };
  const tags = new Set([...(first.tags ?? []), ...(run.tags ?? []), ...(last.tags ?? [])]);
  return {
    ...run,
    // The shutdown ends the open runs one after the other.
    end_time: expect.any(String),
    name: last.name ?? first.name ?? run.name,
    inputs: last.inputs ?? first.inputs ?? run.inputs,
    outputs: last.outputs ?? first.outputs ?? run.outputs,
    tags: tags.size === 0 ? undefined : [...tags],
    extra: { ...run.extra, metadata },
  };
}

const logs = new RunLogRecordProcessor();

async function happen(inside: Plan['inside'], span: Span, flush: () => Promise<unknown>): Promise<void> {
  const spanContext = span.spanContext();
  const body = { content: 'logged' };
  if (inside === 'flush') await flush();
  if (inside === 'function')
    context.with(
      below(span),
      traceable(() => {}, { name: 'function' }),
    );
  if (inside === 'message')
    logs.onEmit({ spanContext, eventName: 'gen_ai.user.message', attributes: { 'gen_ai.system': 'openai' }, body });
  if (inside === 'exception')
    logs.onEmit({ spanContext, eventName: 'exception', attributes: { 'exception.message': 'no milk' } });
}

/** Starts the spans of the plans below each other, and ends them. */
async function perform(tracer: Tracer, plans: readonly Plan[], flush: () => Promise<unknown>): Promise<Span[]> {
  const spans: Span[] = [];
  for (const { kind, above, atStart, inside } of plans) {
    const parent = spans[spans.length - 1 - above];
    const given = { attributes: { 'openinference.span.kind': kind, ...atStart } };
    spans.push(tracer.startSpan('span', given, parent && below(parent)));
    await happen(inside, spans.at(-1) as Span, flush);
  }
  const end = (at: number): void => {
    const { atEnd, isFailed, ends } = plans[at] as Plan;
    const span = spans[at]?.setAttributes(atEnd).addEvent('step');
    if (isFailed) span?.setStatus({ code: SpanStatusCode.ERROR, message: 'no tea' });
    if (ends !== 'never') span?.end();
  };
  const [early, late] = [[...plans.keys()], [...plans.keys()].toReversed()].map((order, at) =>
    order.filter((index) => (plans[index]?.ends === 'in start order') === (at === 0)),
  );
  for (const at of [...(early ?? []), ...(late ?? [])]) end(at);
  return spans;
}

describe('the hooks of an exporter', () => {
  test.each<Protocol>(['runs', 'otlp'])('change the runs of spans sent as %s, and nothing else', async (protocol) => {
    logLines();
    const check = async (plans: Plan[]): Promise<void> => {
      const planOf = new Map<string, Plan>();
      const called: string[] = [];
      const call = (hook: 'onStart' | 'onEnd') => (run: HookedRun) => {
        if (hook === 'onStart') planOf.set(run.id, plans[planOf.size] as Plan);
        const { throws, inStart, inEnd } = planOf.get(run.id) as Plan;
        called.push(`${hook} ${run.id}`);
        if (throws === hook) throw new Error('a hook');
        run.set(hook === 'onStart' ? inStart : inEnd);
      };
      const hooks = { onStart: call('onStart'), onEnd: call('onEnd') };
      const runs = await record(hooks, (tracer, flush) => perform(tracer, plans, flush), 'all', protocol);
      for (const [at, [run, ...others]] of runs.entries()) {
        expect(others).toEqual([run && changed(run, plans[at] as Plan)]);
        expect(called.filter((line) => line.endsWith(`${run?.id}`))).toEqual([
          `onStart ${run?.id}`,
          `onEnd ${run?.id}`,
        ]);
      }
    };
    await fc.assert(fc.asyncProperty(fc.array(plan, { minLength: 1, maxLength: 4 }), check), { numRuns: cases(60) });
  });

  test('see the fields of a span, for a span that is selected only at its end both at its end', async () => {
    const seen: unknown[] = [];
    const see = ({ name, runType, inputs, outputs, error }: HookedRun): void =>
      void seen.push([name, runType, inputs, outputs, error]);
    const kind = { 'openinference.span.kind': 'LLM', 'input.value': 'hi' };
    await record(
      { onStart: see, onEnd: see },
      (tracer) => {
        const first = tracer.startSpan('first', { attributes: kind }).setAttribute('output.value', 'ho');
        first.setStatus({ code: SpanStatusCode.ERROR, message: 'no tea' }).end();
        const late = tracer.startSpan('late');
        tracer.startSpan('never').end();
        late.setAttributes(kind).setAttribute('output.value', 'ho').end();
        return [];
      },
      'llm',
    );
    const inputs = { input: 'hi' };
    expect(seen).toEqual([
      ['first', 'llm', inputs, undefined, undefined],
      ['first', 'llm', inputs, { output: 'ho' }, 'no tea'],
      ['late', 'llm', inputs, undefined, undefined],
      ['late', 'llm', inputs, { output: 'ho' }, undefined],
    ]);
  });

  test('may add events and attachments, and end the run', async () => {
    const bytes = new Uint8Array([1]);
    const onEnd = (run: HookedRun): void => {
      run.event('seen');
      run.attach('note', bytes);
    };
    const onStart = (run: HookedRun): void => void (run.name === 'ended' && (run as Run).end({ by: 'hook' }));
    const [[, kept], [, ended]] = (await record({ onStart, onEnd }, (tracer) => {
      const spans = ['kept', 'ended'].map((name) => tracer.startSpan(name).addEvent('step'));
      for (const span of spans) span.setAttribute('output.value', 'ho').end();
      return spans;
    })) as [StoredRun[], StoredRun[]];
    expect(kept?.events?.map(({ name }) => name)).toEqual(['step', 'seen']);
    expect(kept?.attachments).toMatchObject([{ name: 'note', size: 1 }]);
    expect(ended).toMatchObject({ outputs: { by: 'hook' }, events: [{ name: 'seen' }], end_time: expect.any(String) });
  });
});
