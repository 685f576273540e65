// The events that Mastra sends to a bridge. test/peers/mastra.test.ts runs programs with Mastra.
import { AsyncLocalStorage } from 'node:async_hooks';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { configure, traceable } from '#src/index.ts';
import { RunspanBridge } from '#src/mastra.ts';
import { recordRuns } from '#src/testing.ts';
import { record, treeOf } from '../instrument/recorder.ts';
import { forAllAsync } from '../support/campaign.ts';
import { tea, tracedClient } from './local-openai.ts';

type Events = readonly (readonly [type: string, span: object])[];

/** A generation with one model call, below an agent or below no span. */
function generation(name: string, parentSpanId: string | undefined): Events {
  const ids = [`${name}-generation`, `${name}-step`, `${name}-call`];
  const types = ['model_generation', 'model_step', 'model_inference'];
  const spans = ids.map((id, at) => ({ id, type: types[at], name, parentSpanId: ids[at - 1] ?? parentSpanId }));
  const ended = spans.toReversed().map((span) => ({ ...span, output: { text: name } }));
  return [
    ...spans.map((span) => ['span_started', span] as const),
    ...ended.map((span) => ['span_ended', span] as const),
  ];
}

function makeBridge() {
  const bridge = new RunspanBridge();
  const send = (type: string, exportedSpan: object) => bridge.exportTracingEvent({ type, exportedSpan });
  return {
    bridge,
    start: (span: object) => send('span_started', span),
    end: (span: object) => send('span_ended', span),
  };
}

test('the bridge has the options of all wrappers', async () => {
  const recorder = record();
  const bridges = [new RunspanBridge({ name: 'own', hideOutputs: true }), new RunspanBridge({ enabled: false })];
  for (const [type, exportedSpan] of generation('a', undefined)) {
    for (const bridge of bridges) await bridge.exportTracingEvent({ type, exportedSpan });
  }
  expect(recorder.runs.map(({ name, outputs }) => [name, outputs])).toEqual([['own', {}]]);
});

test('the end of a generation ends no model call of another one', async () => {
  const generations = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,5}$/), { minLength: 2, maxLength: 4 });
  await forAllAsync(100, [generations, fc.boolean(), fc.infiniteStream(fc.nat(3))], async (names, isInAgent, picks) => {
    using recorder = recordRuns();
    const bridge = new RunspanBridge();
    const send = ([type, exportedSpan]: Events[number]) => bridge.exportTracingEvent({ type, exportedSpan });
    const agent = { id: 'agent', type: 'agent_run', name: "agent run: 'a'" };
    if (isInAgent) await send(['span_started', agent]);
    const queues = names.map((name) => [...generation(name, isInAgent ? 'agent' : undefined)]);
    for (const pick of picks) {
      const open = queues.filter(({ length }) => length > 0);
      if (open.length === 0) break;
      await send(open[pick % open.length]?.shift() as Events[number]);
    }
    if (isInAgent) await send(['span_ended', agent]);

    const calls = recorder.runs.filter(({ run_type }) => run_type === 'llm');
    const ended = calls.map(({ outputs, error }) => `${outputs?.text} ${error}`);
    expect(ended.sort()).toEqual(names.map((name) => `${name} undefined`).sort());
  });
});

test('a model call that is aborted after a tool of its agent has timed out is cancelled', async () => {
  using recorder = recordRuns();
  const { start, end } = makeBridge();
  const agent = { id: 'agent', type: 'agent_run', name: "agent run: 'a'" };
  const tool = { id: 'tool', type: 'tool_call', name: "tool: 'slow'", parentSpanId: 'agent' };
  await start(agent);
  await start(tool);
  await end({ ...tool, errorInfo: { name: 'TimeoutError', message: 'late' } });
  for (const [type, span] of generation('call', 'agent')) if (type === 'span_started') await start(span);
  await end({ ...generation('call', 'agent')[0]?.[1], attributes: { finishReason: 'aborted' } });
  await end({ ...agent, output: { status: 'aborted' } });
  const ends = recorder.runs.map(({ name, extra }) => [name, extra?.runspan_end_reason]);
  expect(ends).toEqual([
    ['a', 'cancelled'],
    ['slow', undefined],
    ['call', 'cancelled'],
  ]);
});

test('each span is one run below that of its parent, also after the end of the parent, without a start, or sent twice', async () => {
  const kind = fc.record({
    above: fc.nat(),
    hasStart: fc.boolean(),
    times: fc.constantFrom(1, 2),
    endsAfter: fc.nat(9),
  });
  await forAllAsync(100, [fc.array(kind, { minLength: 1, maxLength: 9 })], async (kinds) => {
    using recorder = recordRuns();
    const { start, end } = makeBridge();
    const spans = kinds.map(({ above }, at) => ({
      id: `span ${at}`,
      type: 'generic',
      name: `${at}`,
      ...(at > 0 && { parentSpanId: `span ${above % at}` }),
    }));
    const endsAt = kinds.map(({ hasStart, endsAfter }, at) => (hasStart ? at + endsAfter : at));
    for (let at = 0; at <= Math.max(...endsAt); at++) {
      const { hasStart, times = 1 } = kinds[at] ?? {};
      for (let time = 0; hasStart && time < times; time++) await start(spans[at] as object);
      for (const [index, span] of spans.entries()) {
        for (let time = 0; endsAt[index] === at && time < (kinds[index]?.times ?? 1); time++) await end(span);
      }
    }

    const nameOf = new Map(recorder.runs.map(({ id, name }) => [id, name]));
    const found = recorder.runs.map(({ name, parent_run_id = '', end_time }) => [
      ...[name, nameOf.get(parent_run_id), end_time !== undefined],
    ]);
    const expected = kinds.map(({ above }, at) => [`${at}`, at > 0 ? `${above % at}` : undefined, true]);
    expect(found.sort()).toEqual(expected.sort());
  });
});

test('the contexts of the last 10,000 ended spans are kept', async () => {
  const recorder = record();
  const { end } = makeBridge();
  const event = (id: string, parentSpanId?: string) => end({ id, type: 'generic', name: id, parentSpanId });
  await event('first');
  await event('second');
  for (let at = 2; at < 10_000; at++) await event(`${at}`);
  await event('below the first', 'first');
  await event('alone', 'first');
  await event('below the second', 'second');
  const below = recorder.runs.filter(({ parent_run_id }) => parent_run_id !== undefined);
  expect(below.map(({ name }) => name)).toEqual(['below the first']);
});

const call = {
  id: 'call',
  type: 'model_inference',
  name: 'call',
  parentSpanId: 'step',
  attributes: { model: 'small' },
};
const outer = [
  { id: 'agent', type: 'agent_run', name: "agent run: 'cook'" },
  { id: 'generation', type: 'model_generation', name: 'generation', parentSpanId: 'agent' },
  { id: 'step', type: 'model_step', name: 'step', parentSpanId: 'generation' },
];
const answer = { attributes: { usage: { inputTokens: 3, outputTokens: 4 } }, output: { text: 'short' } };

/** Starts the spans of a model call, and returns a wrapped client beside them. The local model reports 7 tokens. */
async function startedCall(given: object = { input: { messages: 'short' } }, traceState = {}) {
  const made = makeBridge();
  const traced = await tracedClient({ maxRetries: 0 });
  for (const span of [...outer, { ...call, ...given }]) {
    made.bridge.createSpan({ traceState });
    await made.start(span);
  }
  const ask = (model = 'small') =>
    made.bridge.executeInContext('step', () => traced.client.chat.completions.create({ model, messages: tea }));
  return { ...made, ...traced, ask };
}

test('every request in a step has a run beside the model call, which names the one with an equal request', async () => {
  const { ask, end, recorder } = await startedCall({ input: { messages: tea } });
  await expect(ask('fail-400')).rejects.toThrow('asked to fail with 400');
  await ask();
  await ask('guard');
  await end({ ...call, ...answer });
  await ask('later');
  for (const span of outer.toReversed()) await end(span);
  const [agent, own, failed, sent, ...others] = recorder.runs;
  expect(recorder.runs.map(({ name, parent_run_id }) => [name, parent_run_id])).toEqual([
    ['cook', undefined],
    ['small', agent?.id],
    ...Array(4).fill(['openai.chat.completions', agent?.id]),
  ]);
  const { same_call, same_call_usage, usage_metadata } = own?.extra?.metadata ?? {};
  expect([same_call, same_call_usage, usage_metadata]).toMatchObject([sent?.id, { input_tokens: 3 }, undefined]);
  for (const run of [failed, sent, ...others]) expect(run?.extra?.metadata).not.toHaveProperty('same_call');
});

test('what starts in a step is below the agent, and not below the model call', async () => {
  const { bridge, start, end, recorder } = await startedCall();
  const prepare = traceable(async () => 1, { name: 'prepare' });
  const find = traceable(async () => 2, { name: 'find' });
  const tool = { id: 'tool', type: 'tool_call', name: "tool: 'look_up'", parentSpanId: 'step' };
  await bridge.executeInContext('step', async () => {
    await prepare();
    await end({ ...call, ...answer });
    await start(tool);
    await bridge.executeInContext('tool', find);
    await end(tool);
  });
  expect(treeOf(recorder.runs)).toEqual({ cook: { small: {}, prepare: {}, look_up: { find: {} } } });
});

test.each([
  ['input', { hideInput: true }, {}, { choices: expect.any(Array) }],
  ['output', { hideOutput: true }, { messages: tea }, {}],
  ['input and output', { hideInput: true, hideOutput: true }, {}, {}],
])(
  'if Mastra hides the %s of a trace, that of another source is not recorded',
  async (_, traceState, inputs, outputs) => {
    const { ask, end, recorder } = await startedCall({}, traceState);
    await ask();
    await end({ ...call, ...answer });
    const [, , run] = recorder.runs;
    expect(run).toMatchObject({ extra: { metadata: { usage_metadata: { input_tokens: 3 } } }, inputs, outputs });
    expect([run?.inputs, run?.outputs].map((part) => Object.keys(part ?? {}).length > 0)).toEqual([
      !('hideInput' in traceState),
      !('hideOutput' in traceState),
    ]);
  },
);

test('a span whose end is filtered out ends with `releaseSpan`, and a later end has no effect', async () => {
  const recorder = record();
  const { bridge, start, end } = makeBridge();
  const span = { id: 'a', type: 'generic', name: 'a' };
  await start(span);
  bridge.releaseSpan('a');
  bridge.releaseSpan('unknown');
  await end({ ...span, output: { late: true } });
  expect(recorder.runs).toMatchObject([{ name: 'a', end_time: expect.any(String) }]);
  expect(recorder.runs[0]?.outputs).toEqual({});
});

test('while tracing is off, a span executes without a context', async () => {
  configure({ tracing: false });
  const { bridge, start } = makeBridge();
  await start({ id: 'a', type: 'agent_run', name: "agent run: 'a'" });
  const enter = vi.spyOn(AsyncLocalStorage.prototype, 'run');
  expect(bridge.executeInContextSync('a', () => 1)).toBe(1);
  expect(enter).not.toHaveBeenCalled();
  enter.mockRestore();
});

test.each([
  ['cancelled', { attributes: { status: 'canceled' } }],
  [undefined, { attributes: { status: 'success' }, output: { status: 'aborted' } }],
])('a workflow has the end reason %s by its own status, not by its result', async (reason, ended) => {
  using recorder = recordRuns();
  await makeBridge().end({ id: 'a', type: 'workflow_run', name: 'a', ...ended });
  expect(recorder.runs[0]?.extra?.runspan_end_reason).toBe(reason);
});
