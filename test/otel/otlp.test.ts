// Runs as the spans of OTLP. Expected attributes are those of the GenAI conventions 0.1.0 and of OpenInference.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fromHeaders, startRun, toHeaders, traceable, withRun } from '#src/index.ts';
import type { OtlpSpan } from '#src/otel/otlp/otlp-span.ts';
import { SpanGroups, sentRecord } from '#src/otel/otlp/traces.ts';
import { finishedRun } from '#src/receiver/ingest/finished-run.ts';
import type { RunRecord } from '#src/run/record.ts';
import { type RunRecorder, recordRuns } from '#src/testing.ts';
import { bareSpan } from '../support/bare-span.ts';
import { forAllAsync } from '../support/campaign.ts';
import { inSpan, nest, setUp } from './set-up.ts';

const ROOT = '0193b3a0-1111-7000-8000-000000000001';

function groupsOf(...runs: RunRecord[]): SpanGroups {
  const groups = new SpanGroups({});
  for (const run of runs) groups.add(sentRecord(run));
  return groups;
}

function spansOf(runs: readonly RunRecord[]): OtlpSpan[] {
  return groupsOf(...runs).all.flatMap(({ spans }) => spans);
}

function recordOf(fields: Partial<RunRecord>): RunRecord {
  return {
    id: ROOT,
    trace_id: ROOT,
    dotted_order: `20261120T072240123456Z${ROOT}`,
    name: 'answer',
    run_type: 'chain',
    start_time: '2026-11-20T07:22:40.123456Z',
    end_time: '2026-11-20T07:22:41.000001Z',
    session_name: 'shop',
    inputs: {},
    ...fields,
  };
}

const spanOf = (fields: Partial<RunRecord>): OtlpSpan => spansOf([recordOf(fields)])[0] as OtlpSpan;
const attributesOf = (fields: Partial<RunRecord>) => Object.fromEntries(spanOf(fields).attributes);

describe('the ids of a span', () => {
  test('are the digits of the run ids', () => {
    const id = '0193b3a0-2222-7000-8000-000000000002';
    const dotted_order = `20261120T072240123456Z${ROOT}.20261120T072240123460Z${id}`;
    expect(spanOf({ id, dotted_order, parent_run_id: ROOT })).toMatchObject({
      traceId: '0193b3a0111170008000000000000001',
      spanId: '8000000000000002',
      parentSpanId: '8000000000000001',
    });
  });

  /** The span id of each run's parent, and whether all spans belong to one trace. */
  function expectTree(recorder: RunRecorder): void {
    const { runs } = recorder;
    const spans = new Map(runs.map((run) => [run.id, spansOf([run])[0]]));
    expect(new Set([...spans.values()].map((span) => span?.traceId)).size).toBe(1);
    for (const { id, parent_run_id, extra } of runs) {
      const own = (extra?.metadata?.otel ?? {}) as Record<string, unknown>;
      if (own.span_id !== undefined) expect(spans.get(id)?.spanId).toBe(own.span_id);
      if (parent_run_id !== undefined) expect(spans.get(id)?.parentSpanId).toBe(spans.get(parent_run_id)?.spanId);
    }
  }

  test('form one tree, however spans and functions are nested', async () => {
    const names = fc.array(fc.constantFrom('span', 'run'), { minLength: 1, maxLength: 6 });
    await forAllAsync(40, [names, names], async (outer, inner) => {
      const { tracer, recorder, stop } = setUp();
      await nest(tracer, outer.join(' > '), async () => {
        await nest(tracer, inner.join(' > '));
        await nest(tracer, [...inner].reverse().join(' > '));
      });
      expect(recorder.runs).toHaveLength(outer.length + 2 * inner.length);
      expectTree(recorder);
      await stop();
    });
  });

  test('are those of OpenTelemetry from the first span on', async () => {
    const { tracer, recorder } = setUp();
    const ids = await inSpan(tracer, 'request', async (span) => {
      await traceable(() => traceable(() => 1, { name: 'inner' })(), { name: 'outer' })();
      return span.spanContext();
    });
    const [request, outer, inner] = ['request', 'outer', 'inner'].map((name) =>
      spansOf(recorder.runs.filter((run) => run.name === name)).at(0),
    );
    expect([request, outer, inner].map((span) => span?.traceId)).toEqual(Array(3).fill(ids.traceId));
    expect([request?.spanId, outer?.parentSpanId]).toEqual([ids.spanId, ids.spanId]);
    expect(inner?.parentSpanId).toBe(outer?.spanId);
  });

  test("continue the caller's trace, whose ids are in `traceparent`", () => {
    const recorder = recordRuns();
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const headers = {
      'runspan-trace': `20261120T072240123456Z${ROOT}`,
      traceparent: `00-${traceId}-8000000000000001-01`,
    };
    const remote = fromHeaders(headers);
    withRun(remote as NonNullable<typeof remote>, () => startRun({ name: 'handler' }).end());
    expect(spansOf(recorder.runs)).toMatchObject([{ traceId, parentSpanId: '8000000000000001' }]);
    recorder.stop();
  });

  test('form one tree over several processes', async () => {
    const names = fc.array(fc.constantFrom('span', 'run'), { minLength: 1, maxLength: 4 });
    await forAllAsync(40, [names, names], async (caller, handler) => {
      const { tracer, recorder, stop } = setUp();
      let headers = {};
      await nest(tracer, caller.join(' > '), async () => {
        headers = toHeaders();
      });
      const remote = fromHeaders(headers);
      await withRun(remote as NonNullable<typeof remote>, () => nest(tracer, handler.join(' > ')));
      expect(recorder.runs).toHaveLength(caller.length + handler.length);
      expectTree(recorder);
      await stop();
    });
  });
});

describe('the attributes', () => {
  test('of a model call', () => {
    const metadata = {
      ls_provider: 'openai',
      ls_model_name: 'gpt-5',
      response_model: 'gpt-5-2026',
      finish_reasons: ['stop'],
      ls_invocation_params: { temperature: 0.2, stop: ['x'], tools: [{ type: 'function' }], custom: 1 },
      thread_id: 'thread 7',
      user_id: 'ada',
      tier: 'gold',
      seats: 3,
      nested: { a: 1 },
    };
    const inputs = {
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi' },
            { type: 'image_url', image_url: { url: 'https://a.test/b.png' } },
          ],
        },
        { role: 'assistant', tool_calls: [{ id: 'c1', function: { name: 'find', arguments: '{"q":1}' } }] },
        { role: 'tool', tool_call_id: 'c1', content: 'found' },
      ],
    };
    const usage_metadata = {
      input_tokens: 10,
      output_tokens: 5,
      total_tokens: 15,
      input_token_details: { cache_read: 4 },
    };
    const outputs = { role: 'assistant', content: 'Hello', usage_metadata };
    const {
      'gen_ai.input.messages': asked,
      'gen_ai.output.messages': answered,
      ...others
    } = attributesOf({ run_type: 'llm', inputs, outputs, extra: { metadata }, tags: ['a'] });
    expect(others).toEqual({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'gpt-5',
      'gen_ai.response.model': 'gpt-5-2026',
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.request.temperature': 0.2,
      'gen_ai.request.stop_sequences': ['x'],
      'gen_ai.tool.definitions': '[{"type":"function"}]',
      'gen_ai.conversation.id': 'thread 7',
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 5,
      'gen_ai.usage.total_tokens': 15,
      'gen_ai.usage.cache_read.input_tokens': 4,
      'session.id': 'thread 7',
      'user.id': 'ada',
      tier: 'gold',
      seats: 3,
      'openinference.span.kind': 'LLM',
      'input.value': JSON.stringify(inputs),
      'input.mime_type': 'application/json',
      'output.value': JSON.stringify(outputs),
      'output.mime_type': 'application/json',
      'llm.token_count.prompt': 10,
      'llm.token_count.completion': 5,
      'llm.token_count.total': 15,
      'llm.token_count.prompt_details.cache_read': 4,
      'tag.tags': ['a'],
      metadata: JSON.stringify(metadata),
      'runspan.run_type': 'llm',
      'runspan.dotted_order': `20261120T072240123456Z${ROOT}`,
    });
    expect(JSON.parse(asked as string)).toEqual([
      { role: 'system', parts: [{ type: 'text', content: 'Be brief.' }] },
      {
        role: 'user',
        parts: [
          { type: 'text', content: 'Hi' },
          { type: 'uri', uri: 'https://a.test/b.png' },
        ],
      },
      { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', name: 'find', arguments: { q: 1 } }] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: 'found' }] },
    ]);
    expect(JSON.parse(answered as string)).toEqual([
      { role: 'assistant', parts: [{ type: 'text', content: 'Hello' }], finish_reason: 'stop' },
    ]);
  });

  test.each<[string, Partial<RunRecord>, object]>([
    [
      'a tool',
      { run_type: 'tool', inputs: { q: 1 }, outputs: { a: 2 } },
      {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'answer',
        'gen_ai.tool.call.arguments': '{"q":1}',
        'gen_ai.tool.call.result': '{"a":2}',
        'openinference.span.kind': 'TOOL',
      },
    ],
    [
      'a retriever',
      { run_type: 'retriever', inputs: { query: 'x' } },
      {
        'gen_ai.operation.name': 'retrieval',
        'gen_ai.retrieval.query.text': 'x',
        'openinference.span.kind': 'RETRIEVER',
      },
    ],
    [
      'an embedding',
      { run_type: 'embedding', outputs: { usage_metadata: { input_tokens: 3 } } },
      {
        'gen_ai.operation.name': 'embeddings',
        'gen_ai.usage.input_tokens': 3,
        'openinference.span.kind': 'EMBEDDING',
      },
    ],
    [
      'an agent',
      { extra: { metadata: { ls_agent_type: 'root' } } },
      {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': 'answer',
        'openinference.span.kind': 'AGENT',
      },
    ],
    [
      'a text completion',
      { run_type: 'llm', extra: { metadata: { ls_model_type: 'llm' } } },
      { 'gen_ai.operation.name': 'text_completion' },
    ],
    ['a chain', {}, { 'openinference.span.kind': 'CHAIN' }],
  ])('of %s', (_, fields, expected) => {
    expect(attributesOf(fields)).toMatchObject(expected);
  });

  test.each(['constructor', '__proto__', 'toString', 'x'])('of a run of the type %s', (run_type) => {
    expect(attributesOf({ run_type })).toMatchObject({
      'runspan.run_type': run_type,
      'openinference.span.kind': 'CHAIN',
    });
  });

  test('of a model call are read back by the tables for the spans of others', () => {
    const metadata = {
      ls_provider: 'openai',
      ls_model_name: 'gpt-5',
      response_model: 'gpt-5-2026',
      response_id: 'r1',
      response_status: 'completed',
      finish_reasons: ['stop'],
      thread_id: 't1',
      conversation_compacted: true,
      prompt_name: 'greeting',
      prompt_version: '3',
      tool_call_id: 'c1',
      service_tier: 'default',
      ls_invocation_params: {
        ...{
          temperature: 0.2,
          max_tokens: 10,
          stop: ['x'],
          top_p: 0.9,
          top_k: 5,
          frequency_penalty: 0.1,
          seed: 7,
          n: 2,
        },
        ...{ presence_penalty: 0.3, encoding_formats: ['float'], reasoning_effort: 'low', previous_response_id: 'r0' },
        ...{ stream: true, output_type: 'json', tools: [{ type: 'function' }] },
      },
    };
    const details = { text: 1, image: 2, audio: 3 };
    const usage_metadata = {
      ...{ input_tokens: 40, output_tokens: 30, total_tokens: 70, total_cost: 0.5 },
      input_token_details: { cache_read: 4, cache_creation: 5, video: 6, ...details },
      output_token_details: { reasoning: 7, ...details },
    };
    const messages = [{ role: 'user', content: 'Hi' }];
    const span = spanOf({ run_type: 'llm', inputs: { messages }, outputs: { usage_metadata }, extra: { metadata } });
    const attributes = Object.fromEntries(
      [...span.attributes].filter(([name]) => name.startsWith('gen_ai.') || name.startsWith('openai.')),
    );
    const { fields, texts } = finishedRun({ ...bareSpan('chat', span), attributes } as never, undefined, true);
    expect(fields).toMatchObject({ run_type: 'llm', extra: { metadata } });
    expect(JSON.parse(texts.inputs ?? '')).toEqual({ messages });
    expect(JSON.parse(texts.outputs ?? '')).toEqual({ usage_metadata });
  });

  test('have no payload that is hidden', () => {
    const names = Object.keys(attributesOf({ run_type: 'llm', inputs: {} }));
    expect(names.filter((name) => /value|messages|arguments|result/.test(name))).toEqual([]);
  });
});

test('the resource is the service of the environment, or the project', () => {
  const groups = new SpanGroups({ 'service.name': 'web', 'host.name': 'a' });
  groups.add(sentRecord(recordOf({})));
  groups.add(sentRecord(recordOf({ session_name: 'other' })));
  const sdk = { 'telemetry.sdk.name': 'runspan', 'telemetry.sdk.language': 'nodejs' };
  expect(groups.all.map(({ resource }) => Object.fromEntries(resource))).toMatchObject([
    { ...sdk, 'service.name': 'web', 'host.name': 'a', 'openinference.project.name': 'shop' },
    { ...sdk, 'service.name': 'web', 'host.name': 'a', 'openinference.project.name': 'other' },
  ]);
  expect(groupsOf(recordOf({})).all[0]?.resource.get('service.name')).toBe('shop');
});

test('an error is the status and an event', () => {
  const error = 'TypeError: boom\n    at a (b.ts:1:2)';
  expect(spanOf({ error })).toMatchObject({
    statusCode: 2,
    statusMessage: 'TypeError: boom',
    events: [{ name: 'exception', timeUs: Date.UTC(2026, 10, 20, 7, 22, 41) * 1_000 + 1 }],
  });
  expect(Object.fromEntries(spanOf({ error }).events[0]?.attributes ?? [])).toEqual({
    'exception.type': 'TypeError',
    'exception.message': 'boom',
    'exception.stacktrace': error,
    'runspan.error': true,
  });
});
