import { describe, expect, test } from 'vitest';
import type { Attributes } from '#src/otel/conventions/values.ts';
import type { SpanEventLike, SpanLike } from '#src/otel.ts';
import { expectRun, type Mapped, mapped as mappedSpan } from './mapped.ts';

const asked = { role: 'user', content: 'Weather in Oslo?' };
const brief = { role: 'system', content: 'Be brief.' };
const rain = { role: 'assistant', content: 'Rain.' };
const call = { id: 'c1', type: 'function', function: { name: 'forecast', arguments: '{"city":"Oslo"}' } };
const asking = { role: 'assistant', tool_calls: [call] };

/** Checks that a span gives the run `expected`, and no payload if payloads are hidden. */
function mapped(attributes: Attributes, span: Partial<SpanLike> = {}): Mapped {
  const hidden = mappedSpan(attributes, span, { hideInputs: true, hideOutputs: true });
  expect(JSON.stringify(hidden)).not.toMatch(/Oslo|rain|brief/i);
  return mappedSpan(attributes, span);
}

const event = (name: string, attributes: Record<string, unknown>): SpanEventLike => ({
  name,
  time: [1, 0],
  attributes,
});

// Spans of @mastra/otel-exporter 1.4.0 with @mastra/core 1.71.0.
describe('Mastra', () => {
  test('an agent has its messages, answer, tags, conversation and user', () => {
    const run = mapped(
      {
        'gen_ai.operation.name': 'invoke_agent',
        'mastra.span.type': 'agent_run',
        'mastra.agent_run.input': JSON.stringify([asked]),
        'mastra.agent_run.output': '{"text":"Rain.","files":[]}',
        'gen_ai.agent.name': 'Weather',
        'gen_ai.system_instructions': 'Be brief.',
        'gen_ai.conversation.id': 't1',
        'mastra.metadata.runId': 'r1',
        'mastra.metadata.threadId': 't1',
        'mastra.metadata.resourceId': 'u1',
        'mastra.metadata.plan': '{"tier":"gold"}',
        'mastra.tags': '["prod"]',
      },
      { name: 'invoke_agent Weather' },
    );
    expectRun(run, {
      name: 'Weather',
      runType: 'chain',
      inputs: { messages: [asked] },
      outputs: { text: 'Rain.', files: [] },
      tags: ['prod'],
    });
    const metadata = { thread_id: 't1', user_id: 'u1', runId: 'r1', plan: { tier: 'gold' } };
    expect(run.metadata).toMatchObject(metadata);
  });

  test('a model call has its messages, tokens and first token', () => {
    const run = mapped({
      'gen_ai.operation.name': 'chat',
      'mastra.span.type': 'model_inference',
      'gen_ai.input.messages': JSON.stringify([asked]),
      'gen_ai.output.messages': '[{"role":"assistant","parts":[{"type":"text","content":"Rain."}]}]',
      'gen_ai.request.model': 'gpt-4o',
      'gen_ai.provider.name': 'openai.responses',
      'gen_ai.usage.input_tokens': 20,
      'gen_ai.usage.output_tokens': 5,
      'gen_ai.usage.cache_creation.input_tokens': 8,
      'gen_ai.usage.cache_creation.5m_input_tokens': 6,
      'mastra.completion_start_time': '1970-01-01T00:00:01.250Z',
      'gen_ai.response.finish_reasons': '["stop"]',
    });
    const usage_metadata = {
      input_tokens: 20,
      output_tokens: 5,
      total_tokens: 25,
      input_token_details: { cache_creation: 2, ephemeral_5m_input_tokens: 6 },
    };
    expectRun(run, {
      runType: 'llm',
      inputs: { messages: [asked] },
      outputs: { messages: [{ ...rain, finish_reason: 'stop' }], usage_metadata },
      events: [{ name: 'new_token', time: '1970-01-01T00:00:01.250000Z' }],
    });
  });

  test.each([
    ['tool_call', 'execute_tool', 'tool'],
    ['client_tool_call', 'client_tool_call', 'tool'],
    ['model_generation', 'model_generation', 'chain'],
    ['model_step', 'agent_step', 'chain'],
    ['workflow_step', 'workflow_step', 'chain'],
    ['rag_embedding', 'embeddings', 'embedding'],
  ])('a span of the type %s has its payloads', (type, operation, runType) => {
    const [input, output] =
      type === 'tool_call'
        ? ['gen_ai.tool.call.arguments', 'gen_ai.tool.call.result']
        : [`mastra.${type}.input`, `mastra.${type}.output`];
    const run = mapped({
      'gen_ai.operation.name': operation,
      'mastra.span.type': type,
      [input]: '{"city":"Oslo"}',
      [output]: 'Rain.',
    });
    expectRun(run, { runType, inputs: { city: 'Oslo' }, outputs: { output: 'Rain.' } });
  });
});

// Spans of @google/adk 2.0.0. The Python package uses names with underscores in requests and responses.
describe('Google ADK', () => {
  const request = {
    model: 'gemini-3',
    contents: [
      { role: 'user', parts: [{ text: 'Weather in Oslo?' }] },
      { role: 'model', parts: [{ functionCall: { id: 'c1', name: 'forecast', args: { city: 'Oslo' } } }] },
      { role: 'user', parts: [{ functionResponse: { id: 'c1', name: 'forecast', response: { sky: 'rain' } } }] },
    ],
    config: { temperature: 0.5, systemInstruction: 'Be brief.', tools: [{ functionDeclarations: [] }] },
  };
  const response = {
    content: { role: 'model', parts: [{ text: 'Rain.' }] },
    finishReason: 'STOP',
    usageMetadata: {
      promptTokenCount: 30,
      candidatesTokenCount: 4,
      thoughtsTokenCount: 3,
      cachedContentTokenCount: 10,
      totalTokenCount: 37,
    },
  };
  const inPython = (value: object): string =>
    JSON.stringify(value).replace(/"(\w+)":/g, (key) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));

  test.each([
    ['JavaScript', JSON.stringify],
    ['Python', inPython],
  ])('a model call of the %s package has its messages, tokens, parameters and session', (_, write) => {
    const run = mapped(
      {
        'gen_ai.system': 'gcp.vertex.agent',
        'gen_ai.request.model': 'gemini-3',
        'gen_ai.agent.name': 'weather',
        'gcp.vertex.agent.session_id': 's1',
        'gcp.vertex.agent.event_id': 'e1',
        'gcp.vertex.agent.llm_request': write(request),
        'gcp.vertex.agent.llm_response': write(response),
        'gen_ai.usage.input_tokens': 30,
        'gen_ai.usage.output_tokens': 4,
        'gen_ai.response.finish_reasons': ['stop'],
      },
      { name: 'call_llm' },
    );
    const usage_metadata = {
      input_tokens: 30,
      output_tokens: 7,
      total_tokens: 37,
      input_token_details: { cache_read: 10 },
      output_token_details: { reasoning: 3 },
    };
    const result = { role: 'tool', tool_call_id: 'c1', name: 'forecast', content: { sky: 'rain' } };
    expectRun(run, {
      name: undefined,
      runType: 'llm',
      inputs: { messages: [brief, asked, asking, result] },
      outputs: { messages: [{ ...rain, finish_reason: 'STOP' }], usage_metadata },
    });
    expect(run.metadata).toMatchObject({ thread_id: 's1', ls_temperature: 0.5, 'gcp.vertex.agent.event_id': 'e1' });
    expect(run.metadata).not.toHaveProperty('gcp.vertex.agent.llm_request');
  });

  test('a call without recorded content has no payloads but its tokens', () => {
    const run = mapped({
      'gen_ai.request.model': 'gemini-3',
      'gcp.vertex.agent.llm_request': '{}',
      'gcp.vertex.agent.llm_response': '{}',
      'gen_ai.usage.input_tokens': 30,
    });
    expectRun(run, { runType: 'llm', inputs: undefined });
    expect(run.outputs).toEqual({ usage_metadata: { input_tokens: 30 } });
  });

  test('an answer that the service refused has its error code', () => {
    const run = mapped({
      'gen_ai.request.model': 'gemini-3',
      'gcp.vertex.agent.llm_response': '{"errorCode":"SAFETY","errorMessage":"blocked"}',
    });
    const message = { role: 'assistant', error_code: 'SAFETY', error_message: 'blocked' };
    expect(run.outputs).toEqual({ messages: [message] });
  });

  test('a tool has its arguments and result', () => {
    const run = mapped(
      {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'forecast',
        'gen_ai.tool.call.id': 'c1',
        'gcp.vertex.agent.llm_request': '{}',
        'gcp.vertex.agent.llm_response': '{}',
        'gcp.vertex.agent.tool_call_args': '{"city":"Oslo"}',
        'gcp.vertex.agent.tool_response': '{"sky":"rain"}',
      },
      { name: 'execute_tool forecast' },
    );
    expectRun(run, {
      name: 'forecast',
      runType: 'tool',
      inputs: { city: 'Oslo' },
      outputs: { sky: 'rain' },
      metadata: { tool_call_id: 'c1' },
    });
  });
});

// Spans of pydantic-ai 2.9.1, instrumentation version 2. Later versions use the GenAI names for tools.
describe('pydantic-ai', () => {
  const messages = [
    { role: 'user', parts: [{ type: 'text', content: 'Hello' }] },
    { role: 'assistant', parts: [{ type: 'text', content: 'Hi' }] },
    { role: 'user', parts: [{ type: 'text', content: 'Weather in Oslo?' }] },
    { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', name: 'forecast', arguments: '{"city":"Oslo"}' }] },
    { role: 'user', parts: [{ type: 'tool_call_response', id: 'c1', name: 'forecast', result: 'rain' }] },
    { role: 'assistant', parts: [{ type: 'text', content: 'Rain.' }] },
  ];
  const agent = {
    model_name: 'gpt-4o',
    agent_name: 'weather',
    'gen_ai.conversation.id': 't1',
    'logfire.msg': 'weather run',
    final_result: 'Rain.',
    'gen_ai.usage.input_tokens': 40,
    'gen_ai.usage.output_tokens': 10,
    'gen_ai.system_instructions': '[{"type":"text","content":"Be brief."}]',
    'pydantic_ai.all_messages': JSON.stringify(messages),
    'logfire.json_schema': '{}',
  };

  test('an agent has the messages it got, its result and conversation, and no tokens', () => {
    const run = mapped({ ...agent, 'pydantic_ai.new_message_index': 2 }, { name: 'agent run' });
    const before = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi' },
    ];
    expectRun(run, {
      name: 'weather',
      runType: 'chain',
      inputs: { messages: [brief, ...before, asked] },
      outputs: { output: 'Rain.' },
    });
    expect(run.metadata).toMatchObject({ ls_model_name: 'gpt-4o', thread_id: 't1' });
    expect(run.metadata).not.toHaveProperty('usage_metadata');
    expect(run.metadata).not.toHaveProperty(['logfire.json_schema']);
  });

  // pydantic-ai 1, instrumentation version 1.
  test('an agent of an earlier version has the messages of its events', () => {
    const { 'pydantic_ai.all_messages': _, 'gen_ai.system_instructions': __, ...others } = agent;
    const events = [brief, asked, rain].map((message, at) => ({
      ...message,
      'gen_ai.message.index': at,
      'event.name': `gen_ai.${message.role}.message`,
    }));
    const run = mapped({ ...others, all_messages_events: JSON.stringify(events) });
    expectRun(run, { inputs: { messages: [brief, asked] }, outputs: { output: 'Rain.' } });
  });

  test('a tool has its arguments and result', () => {
    const run = mapped(
      {
        'gen_ai.tool.name': 'forecast',
        'gen_ai.tool.call.id': 'c1',
        tool_arguments: '{"city":"Oslo"}',
        tool_response: 'rain',
        'logfire.msg': 'running tool: forecast',
      },
      { name: 'running tool' },
    );
    expectRun(run, { name: 'forecast', runType: 'tool', inputs: { city: 'Oslo' }, outputs: { output: 'rain' } });
  });

  test('attributes of other libraries with the same names are metadata', () => {
    const run = mapped({ agent_name: 'a', final_result: 'b', 'logfire.msg': 'c' });
    expect(run).toMatchObject({ name: undefined, inputs: undefined, outputs: undefined });
    expect(run.metadata).toMatchObject({ agent_name: 'a', final_result: 'b' });
  });
});

test('tool results of Codex are hidden with inputs or outputs', () => {
  const events = [event('codex.tool_result', { arguments: '{"city":"Oslo"}', output: 'Rain.' })];
  expect(JSON.stringify(mappedSpan({}, { events }, { hideInputs: true }))).not.toContain('Oslo');
  expect(JSON.stringify(mappedSpan({}, { events }, { hideOutputs: true }))).not.toContain('Rain');
});

// Spans of @strands-agents/sdk 1.16.0. The Python package 1.9 sends the same events.
describe('Strands', () => {
  const common = {
    'gen_ai.system': 'strands-agents',
    'gen_ai.event.start_time': '2026-11-27T07:19:05.058Z',
    'gen_ai.event.end_time': '2026-11-27T07:19:05.060Z',
  };
  const usage = {
    'gen_ai.usage.prompt_tokens': 20,
    'gen_ai.usage.input_tokens': 20,
    'gen_ai.usage.completion_tokens': 5,
    'gen_ai.usage.output_tokens': 5,
    'gen_ai.usage.total_tokens': 25,
  };

  test('a model call has the messages of its events, with tool calls and results', () => {
    const run = mapped(
      { ...common, ...usage, 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'fake' },
      {
        events: [
          event('gen_ai.system.message', { content: '[{"text":"Be brief."}]' }),
          event('gen_ai.user.message', { content: '[{"text":"Weather in Oslo?"}]' }),
          event('gen_ai.assistant.message', {
            content: '[{"toolUse":{"name":"forecast","toolUseId":"c1","input":{"city":"Oslo"}}}]',
          }),
          event('gen_ai.tool.message', {
            content: '[{"toolResult":{"toolUseId":"c1","status":"success","content":[{"json":{"sky":"rain"}}]}}]',
          }),
          event('gen_ai.choice', {
            finish_reason: 'toolUse',
            message: '[{"text":"Rain."},{"type":"toolUse","name":"forecast","toolUseId":"c1","input":{"city":"Oslo"}}]',
          }),
        ],
      },
    );
    const result = { role: 'tool', tool_call_id: 'c1', content: { sky: 'rain' } };
    expectRun(run, {
      runType: 'llm',
      inputs: { messages: [brief, asked, asking, result] },
      outputs: {
        messages: [{ ...rain, tool_calls: [call], finish_reason: 'toolUse' }],
        usage_metadata: { input_tokens: 20, output_tokens: 5, total_tokens: 25 },
      },
      events: undefined,
    });
    expect(run.metadata).not.toHaveProperty(['gen_ai.event.start_time']);
  });

  test('a tool has its arguments and result, and no messages', () => {
    const attributes = {
      ...common,
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'forecast',
      'gen_ai.tool.call.id': 'c1',
    };
    const events = [
      event('gen_ai.tool.message', { role: 'tool', content: '{"city":"Oslo"}', id: 'c1' }),
      event('gen_ai.choice', { message: '[{"json":{"sky":"rain"}}]', id: 'c1' }),
    ];
    const expected = {
      name: 'forecast',
      runType: 'tool',
      inputs: { city: 'Oslo' },
      outputs: { sky: 'rain' },
      events: undefined,
    };
    expectRun(mapped(attributes, { events }), expected);
    // With OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental.
    const details = (name: string, part: object) =>
      event('gen_ai.client.inference.operation.details', { [name]: JSON.stringify([{ role: 'tool', parts: [part] }]) });
    const latest = [
      details('gen_ai.input.messages', { type: 'tool_call', name: 'forecast', id: 'c1', arguments: { city: 'Oslo' } }),
      details('gen_ai.output.messages', {
        type: 'tool_call_response',
        id: 'c1',
        response: [{ json: { sky: 'rain' } }],
      }),
    ];
    expectRun(mapped(attributes, { events: latest }), expected);
    const named = { 'gen_ai.tool.call.arguments': '{"city":"Oslo"}', 'gen_ai.tool.call.result': '[{"text":"rain"}]' };
    expectRun(mapped({ ...attributes, ...named }, { events: latest }), { ...expected, outputs: { output: 'rain' } });
  });

  test('an agent has its messages, system prompt and tools, and no tokens', () => {
    const run = mapped(
      {
        ...common,
        ...usage,
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': 'weather',
        'gen_ai.request.model': 'fake',
        'gen_ai.agent.tools': '["forecast"]',
        system_prompt: '"Be brief."',
      },
      {
        name: 'invoke_agent weather',
        events: [
          event('gen_ai.user.message', { content: '[{"text":"Weather in Oslo?"}]' }),
          event('gen_ai.choice', { message: 'Rain.', finish_reason: 'endTurn' }),
        ],
      },
    );
    expectRun(run, {
      name: 'weather',
      runType: 'chain',
      inputs: { messages: [asked], system_prompt: 'Be brief.' },
      outputs: { messages: [{ ...rain, finish_reason: 'endTurn' }] },
    });
    expect(run.metadata).toMatchObject({ agent_tools: ['forecast'] });
    expect(run.metadata).not.toHaveProperty('usage_metadata');
  });

  test('a cycle of the event loop is a chain with its messages', () => {
    const run = mapped(
      { ...common, 'gen_ai.operation.name': 'execute_event_loop_cycle', 'event_loop.cycle_id': 'cycle-1' },
      { events: [event('gen_ai.user.message', { content: '[{"text":"Weather in Oslo?"}]' })] },
    );
    expectRun(run, { runType: 'chain', inputs: { messages: [asked] }, outputs: undefined });
  });

  test('several agents have their common input', () => {
    const run = mapped({
      ...common,
      'gen_ai.operation.name': 'invoke_swarm',
      'gen_ai.agent.input': '"Weather in Oslo?"',
    });
    expectRun(run, { runType: 'chain', inputs: { input: 'Weather in Oslo?' } });
  });
});
