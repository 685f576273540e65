import { expect, test } from 'vitest';
import type { Attributes } from '../../src/otel/conventions/values.ts';
import { mapped } from './mapped.ts';

test.each<[string, Attributes]>([
  ['has an operation', { 'gen_ai.operation.name': 'execute_tool' }],
  ['has no operation', {}],
])('a tool call that %s is a run of that tool', (_, operation) => {
  const run = mapped({
    'mcp.method.name': 'tools/call',
    'gen_ai.tool.name': 'weather',
    'gen_ai.tool.call.arguments': '{"city":"Cork"}',
    'gen_ai.tool.call.result': '{"rain":true}',
    'jsonrpc.request.id': '7',
    'mcp.session.id': 's1',
    'network.transport': 'pipe',
    ...operation,
  });
  expect(run).toEqual({
    name: 'weather',
    runType: 'tool',
    inputs: { city: 'Cork' },
    outputs: { rain: true },
    metadata: {
      'mcp.method.name': 'tools/call',
      'jsonrpc.request.id': '7',
      'mcp.session.id': 's1',
      'network.transport': 'pipe',
      ...operation,
    },
  });
});

test.each<[string, Attributes, object]>([
  ['prompts/get', { 'gen_ai.prompt.name': 'analyse' }, { prompt: 'analyse' }],
  ['resources/read', { 'mcp.resource.uri': 'postgres://ann:pw@db.example/a' }, { uri: 'postgres://db.example/a' }],
])('%s is a chain with the requested item', (method, attributes, inputs) => {
  const run = mapped({ 'mcp.method.name': method, ...attributes });
  expect(run).toMatchObject({ runType: 'chain', name: undefined, inputs });
  expect(run.metadata).toEqual({ 'mcp.method.name': method });
});

test('other requests are chains without inputs', () => {
  expect(mapped({ 'mcp.method.name': 'initialize' })).toMatchObject({ runType: 'chain', inputs: undefined });
});

test('arguments and values of Traceloop are inputs and outputs', () => {
  const run = mapped({
    'mcp.method.name': 'tools/call',
    'mcp.request.argument': '{"a":1}',
    'mcp.response.value': '[{"type":"text","text":"b"}]',
  });
  expect(run).toMatchObject({ inputs: { a: 1 }, outputs: { output: [{ type: 'text', text: 'b' }] } });
});
