import { describe, expect, test } from 'vitest';
import { hiddenNames } from '../../src/otel/span-to-run.ts';

const INPUTS = [
  'runspan.inputs',
  'input.value',
  'llm.input_messages.0.message.content',
  'embedding.embeddings.0.embedding.text',
  'gen_ai.input.messages',
  'gen_ai.system_instructions',
  'gen_ai.tool.call.arguments',
  'gen_ai.prompt.0.content',
  'gen_ai.content.prompt',
  'gen_ai.user.message',
  'ai.prompt',
  'ai.prompt.messages',
  'ai.toolCall.args',
  'traceloop.entity.input',
  'http.url',
  'url.full',
  'db.statement',
  'db.query.text',
  'db.query.parameter.0',
  'db.query.parameter.name',
  'mcp.request.argument',
  'messaging.destination.name',
];
const OUTPUTS = [
  'runspan.outputs',
  'output.value',
  'llm.output_messages.0.message.content',
  'retrieval.documents.0.document.content',
  'gen_ai.output.messages',
  'gen_ai.tool.call.result',
  'gen_ai.completion.0.content',
  'gen_ai.choice',
  'ai.response.text',
  'ai.toolCall.result',
  'traceloop.entity.output',
  'http.response.status_code',
  'db.response.returned_rows',
  'mcp.response.value',
];
const NEITHER = [
  'ai.response.id',
  'gen_ai.request.model',
  'llm.token_count.prompt',
  'server.address',
  'prompt',
  'db.system',
  'db.query.summary',
];

describe('where nothing is hidden', () => {
  test('there is nothing to leave out', () => {
    expect(hiddenNames({ hideInputs: false, hideOutputs: false })).toBeUndefined();
  });
});

describe.each([
  { hideInputs: true, hideOutputs: false },
  { hideInputs: false, hideOutputs: true },
  { hideInputs: true, hideOutputs: true },
])('with %j', (hidden) => {
  const isHidden = hiddenNames(hidden);

  test.each([
    ...INPUTS.map((name) => [name, hidden.hideInputs] as const),
    ...OUTPUTS.map((name) => [name, hidden.hideOutputs] as const),
    ...NEITHER.map((name) => [name, false] as const),
  ])('%s is left out: %j', (name, expected) => {
    // The texts of embeddings are inputs and their lengths outputs, so either hides them.
    expect(isHidden?.(name)).toBe(name.startsWith('embedding.') ? true : expected);
  });
});
