import { describe, expect, test } from 'vitest';
import { type MappedInputs, mapSpan, mapStart } from '../../src/otel/mapping.ts';
import type { Attributes } from '../../src/otel/conventions/values.ts';
import { SHOW_ALL } from './mapped.ts';

const mapped = (attributes: Attributes) => mapSpan(attributes, SHOW_ALL);
const metadata = (attributes: Attributes) => Object.fromEntries(mapped(attributes).metadata);

describe('precedence', () => {
  const ours = {
    'runspan.run_type': 'parser',
    'runspan.name': 'ours',
    'runspan.inputs': '{"from":"runspan"}',
    'runspan.outputs': 'runspan',
    'runspan.tags': ['runspan'],
  };
  const openInference = {
    'openinference.span.kind': 'TOOL',
    'tool.name': 'theirs',
    'input.value': '{"from":"openinference"}',
    'output.value': '"openinference"',
    'llm.system': 'openinference',
  };
  const genAi = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'gen_ai',
    'gen_ai.request.model': 'gen_ai',
    'gen_ai.tool.call.arguments': '{"from":"gen_ai"}',
  };

  test('our own attributes go before all others', () => {
    expect(mapped({ ...genAi, ...openInference, ...ours })).toMatchObject({
      runType: 'parser',
      name: 'ours',
      inputs: { payload: { fields: { from: 'runspan' } } },
      outputs: { fields: { output: 'runspan' } },
      tags: ['runspan'],
    });
  });

  test('OpenInference goes before GenAI, which fills in what is left', () => {
    const run = mapped({ ...genAi, ...openInference });
    expect(run).toMatchObject({
      runType: 'tool',
      name: 'theirs',
      inputs: { payload: { fields: { from: 'openinference' } } },
    });
    expect(Object.fromEntries(run.metadata)).toMatchObject({
      ls_provider: 'openinference',
      ls_model_name: 'gen_ai',
      'gen_ai.provider.name': 'gen_ai',
      'gen_ai.tool.call.arguments': '{"from":"gen_ai"}',
    });
  });

  test('without a kind the attributes of OpenInference are metadata, but for the general payloads', () => {
    const run = mapped({ 'llm.system': 'a', 'input.value': 'q', 'output.value': 'r' });
    expect(run).toMatchObject({
      runType: 'chain',
      inputs: { payload: { fields: { input: 'q' } } },
      outputs: { fields: { output: 'r' } },
    });
    expect(Object.fromEntries(run.metadata)).toEqual({ 'llm.system': 'a' });
  });

  test('a span that follows no convention is a chain, with all it has in the metadata', () => {
    const run = mapped({ 'process.pid': 7, ok: true });
    expect(run).toMatchObject({ runType: 'chain', name: undefined, inputs: undefined, outputs: undefined });
    expect(Object.fromEntries(run.metadata)).toEqual({ 'process.pid': 7, ok: true });
  });
});

describe('metadata', () => {
  test.each([999, 1_000])('has all of %j attributes', (count) => {
    const attributes = Object.fromEntries(Array.from({ length: count }, (_, index) => [`key ${index}`, index]));
    expect(metadata(attributes)).toEqual(attributes);
  });

  test('has a thousand keys at most, and counts the attributes beyond', () => {
    const attributes = Object.fromEntries(Array.from({ length: 1_003 }, (_, index) => [`key ${index}`, index]));
    const found = metadata(attributes);
    expect(Object.keys(found)).toHaveLength(1_001);
    expect(found.dropped_attributes).toBe(3);
  });

  test('has the session and the user of any span', () => {
    expect(metadata({ 'session.id': 's', 'user.id': 'u' })).toEqual({
      thread_id: 's',
      'session.id': 's',
      user_id: 'u',
    });
  });
});

describe('inputs that are known from the start', () => {
  const before = { 'input.value': '{"a":1}', 'runspan.name': 'n' };
  const known = mapStart(before, SHOW_ALL).inputs as MappedInputs;

  test('are not made again while their attributes are the same', () => {
    const run = mapSpan({ ...before, 'output.value': '2', other: 1 }, SHOW_ALL, known);
    expect(run.inputs?.payload).toBeUndefined();
    expect(Object.fromEntries(run.metadata)).toEqual({ other: 1 });
  });

  test.each<[string, Attributes]>([
    ['one has changed', { ...before, 'input.value': '{"a":2}' }],
    ['one has come', { ...before, 'runspan.inputs': '{"a":2}' }],
  ])('are made again when %s', (_, attributes) => {
    expect(mapSpan(attributes, SHOW_ALL, known).inputs?.payload?.fields).toEqual({ a: 2 });
  });
});

describe('odd values', () => {
  const isWritable = (json: string): boolean => {
    try {
      return JSON.stringify(JSON.parse(json)) === json;
    } catch {
      return false;
    }
  };

  const asked = (part: string) => `[{"role":"assistant","parts":[${part}]}]`;

  test('that are nested too deeply for the engine stay in the metadata, and all others are read', () => {
    const depth = 100_000;
    const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const messages = asked(`{"type":"tool_call","id":"1","name":"a","arguments":${deep}}`);
    const { runType, inputs, outputs, metadata } = mapped({
      'gen_ai.operation.name': 'chat',
      'gen_ai.input.messages': asked('{"type":"text","content":"Hi"}'),
      'gen_ai.output.messages': messages,
    });
    expect(runType).toBe('llm');
    expect(inputs?.payload?.fields).toEqual({ messages: [{ role: 'assistant', content: 'Hi' }] });
    // In Node 26, `JSON.stringify` has no depth limit.
    const isTooDeep = !isWritable(deep);
    expect(metadata.get('gen_ai.output.messages')).toBe(isTooDeep ? messages : undefined);
    expect(JSON.stringify(outputs)?.includes(deep) ?? false).toBe(!isTooDeep);
  });

  test('that name a prototype keep that as a name', () => {
    const messages = '[{"role":"user","parts":[{"type":"text","content":"Hi"}],"__proto__":{"role":"system"}}]';
    const fields = mapped({ 'gen_ai.operation.name': 'chat', 'gen_ai.input.messages': messages }).inputs?.payload
      ?.fields;
    expect(JSON.stringify(fields)).toBe('{"messages":[{"role":"user","__proto__":{"role":"system"},"content":"Hi"}]}');
  });

  test('of the attribute that says what a span is make it a chain', () => {
    const kind: unknown = Object.create(null);
    for (const name of ['gen_ai.operation.name', 'openinference.span.kind', 'ai.operationId'])
      expect(mapped({ [name]: kind })).toMatchObject({ runType: 'chain', inputs: undefined });
  });
});
