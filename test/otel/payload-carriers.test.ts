import { expect, test } from 'vitest';
import { mapped } from './mapped.ts';

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
  'ai.values',
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
  'ai.response.reasoning',
  'ai.response.toolCalls',
  'ai.response.object',
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

/** Each name is an attribute of the span and of an event. */
const attributes = Object.fromEntries([...INPUTS, ...OUTPUTS, ...NEITHER].map((name) => [name, `value of ${name}.`]));
const events = [{ name: 'step', time: [1, 0] as const, attributes }];

test.each([
  { hideInputs: false, hideOutputs: false },
  { hideInputs: true, hideOutputs: false },
  { hideInputs: false, hideOutputs: true },
  { hideInputs: true, hideOutputs: true },
])('only the attributes of hidden payloads are missing with %j', (hidden) => {
  const run = mapped({}, { events }, hidden);
  const found = Object.keys(run.events[0].kwargs);
  // The texts of embeddings are inputs and their lengths outputs, so either hides them.
  const inputs = INPUTS.filter((name) => !hidden.hideInputs && !(hidden.hideOutputs && name.startsWith('embedding.')));
  const outputs = hidden.hideOutputs ? [] : OUTPUTS;
  expect(found.toSorted()).toEqual([...inputs, ...outputs, ...NEITHER].toSorted());

  const text = JSON.stringify(mapped(attributes, {}, hidden));
  const hiddenNames = [...(hidden.hideInputs ? INPUTS : []), ...(hidden.hideOutputs ? OUTPUTS : [])];
  expect(hiddenNames.filter((name) => text.includes(`value of ${name}.`))).toEqual([]);
});
