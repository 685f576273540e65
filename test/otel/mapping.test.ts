import { describe, expect, test } from 'vitest';
import type { Attributes } from '../../src/otel/conventions/values.ts';
import { mapped } from './mapped.ts';

const metadata = (attributes: Attributes) => mapped(attributes).metadata;

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

  test('attributes of runspan take precedence over all others', () => {
    expect(mapped({ ...genAi, ...openInference, ...ours })).toMatchObject({
      runType: 'parser',
      name: 'ours',
      inputs: { from: 'runspan' },
      outputs: { output: 'runspan' },
      tags: ['runspan'],
    });
  });

  test('OpenInference takes precedence over GenAI, which sets the missing fields', () => {
    const run = mapped({ ...genAi, ...openInference });
    expect(run).toMatchObject({
      runType: 'tool',
      name: 'theirs',
      inputs: { from: 'openinference' },
    });
    expect(run.metadata).toMatchObject({
      ls_provider: 'openinference',
      ls_model_name: 'gen_ai',
      'gen_ai.provider.name': 'gen_ai',
      'gen_ai.tool.call.arguments': '{"from":"gen_ai"}',
    });
  });

  test('without a span kind, only the payloads of OpenInference are read', () => {
    const run = mapped({ 'llm.system': 'a', 'input.value': 'q', 'output.value': 'r' });
    expect(run).toMatchObject({
      runType: 'chain',
      inputs: { input: 'q' },
      outputs: { output: 'r' },
    });
    expect(run.metadata).toEqual({ 'llm.system': 'a' });
  });

  test('a span without a convention is a chain with all attributes in the metadata', () => {
    const run = mapped({ 'process.pid': 7, ok: true });
    expect(run).toMatchObject({ runType: 'chain', name: undefined, inputs: undefined, outputs: undefined });
    expect(run.metadata).toEqual({ 'process.pid': 7, ok: true });
  });
});

describe('metadata', () => {
  test.each([999, 1_000])('contains all of %j attributes', (count) => {
    const attributes = Object.fromEntries(Array.from({ length: count }, (_, index) => [`key ${index}`, index]));
    expect(metadata(attributes)).toEqual(attributes);
  });

  test('has at most 1 000 keys and counts the dropped attributes', () => {
    const attributes = Object.fromEntries(Array.from({ length: 1_003 }, (_, index) => [`key ${index}`, index]));
    const found = metadata(attributes);
    expect(Object.keys(found)).toHaveLength(1_001);
    expect(found.dropped_attributes).toBe(3);
  });

  test('contains the session and the user of any span', () => {
    expect(metadata({ 'session.id': 's', 'user.id': 'u' })).toEqual({
      thread_id: 's',
      'session.id': 's',
      user_id: 'u',
    });
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

  test('that are nested too deeply stay in the metadata, and other attributes are read', () => {
    const depth = 100_000;
    const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const messages = asked(`{"type":"tool_call","id":"1","name":"a","arguments":${deep}}`);
    const { runType, inputs, outputs, metadata } = mapped({
      'gen_ai.operation.name': 'chat',
      'gen_ai.input.messages': asked('{"type":"text","content":"Hi"}'),
      'gen_ai.output.messages': messages,
    });
    expect(runType).toBe('llm');
    expect(inputs).toEqual({ messages: [{ role: 'assistant', content: 'Hi' }] });
    // In Node 26, `JSON.stringify` has no depth limit.
    const isTooDeep = !isWritable(deep);
    expect(metadata['gen_ai.output.messages']).toBe(isTooDeep ? messages : undefined);
    expect(JSON.stringify(outputs)?.includes(deep) ?? false).toBe(!isTooDeep);
  });

  test('may contain `__proto__` as a key', () => {
    const messages = '[{"role":"user","parts":[{"type":"text","content":"Hi"}],"__proto__":{"role":"system"}}]';
    const fields = mapped({ 'gen_ai.operation.name': 'chat', 'gen_ai.input.messages': messages }).inputs;
    expect(JSON.stringify(fields)).toBe('{"messages":[{"role":"user","__proto__":{"role":"system"},"content":"Hi"}]}');
  });

  test('of the kind attribute make the run a chain', () => {
    const kind: unknown = Object.create(null);
    for (const name of ['gen_ai.operation.name', 'openinference.span.kind', 'ai.operationId'])
      expect(mapped({ [name]: kind })).toMatchObject({ runType: 'chain', inputs: undefined });
  });
});
