import { expect, test } from 'vitest';
import { endWithAnswer, type Fold } from '../../src/integrations/answer.ts';
import { MessageFold } from '../../src/integrations/anthropic-message-fold.ts';
import { messagesMethod } from '../../src/integrations/anthropic-messages.ts';
import { makeRun } from '../run/memory-sink.ts';

const START = { type: 'message_start', message: { id: 'msg_1', model: 'a', content: [], usage: { input_tokens: 2 } } };

/** The outputs of a run whose stream brought these events. */
function outputsOf(...events: unknown[]) {
  const { run, record } = makeRun();
  const fold = messagesMethod.reader.fold?.() as Fold;
  for (const event of events) fold.add(event, false);
  endWithAnswer(run, () => fold.answer());
  return record()?.outputs;
}

const start = (content_block: object, index = 0) => ({ type: 'content_block_start', index, content_block });
const delta = (value: object, index = 0) => ({ type: 'content_block_delta', index, delta: value });
const stop = (index = 0) => ({ type: 'content_block_stop', index });

test('puts the deltas of each block together, by its index', () => {
  const outputs = outputsOf(
    START,
    start({ type: 'text', text: '' }, 0),
    start({ type: 'text', text: '' }, 1),
    delta({ type: 'text_delta', text: 'c' }, 1),
    delta({ type: 'text_delta', text: 'a' }, 0),
    delta({ type: 'text_delta', text: 'b' }, 0),
  );
  expect(outputs?.content).toEqual([
    { type: 'text', text: 'ab' },
    { type: 'text', text: 'c' },
  ]);
});

test('keeps thoughts with their signature, and citations', () => {
  const outputs = outputsOf(
    START,
    start({ type: 'thinking', thinking: '', signature: '' }),
    delta({ type: 'thinking_delta', thinking: 'Let' }),
    delta({ type: 'thinking_delta', thinking: ' me' }),
    delta({ type: 'signature_delta', signature: 'EqQB' }),
    start({ type: 'text', text: '' }, 1),
    delta({ type: 'citations_delta', citation: { cited_text: 'x' } }, 1),
    delta({ type: 'citations_delta', citation: { cited_text: 'y' } }, 1),
  );
  expect(outputs?.content).toEqual([
    { type: 'thinking', thinking: 'Let me', signature: 'EqQB' },
    { type: 'text', text: '', citations: [{ cited_text: 'x' }, { cited_text: 'y' }] },
  ]);
});

test.each<[string, string[], unknown]>([
  ['in pieces', ['', '{"city": ', '"Paris"}'], { city: 'Paris' }],
  ['of a tool without any', [''], {}],
  ['that is not sent', [], {}],
  ['that is no JSON', ['{"city": '], '{"city": '],
])('reads the input %s', (_, pieces, input) => {
  const events = pieces.map((partial_json) => delta({ type: 'input_json_delta', partial_json }));
  const block = start({ type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} });
  for (const end of [[stop()], []]) {
    expect(outputsOf(START, block, ...events, ...end)?.content).toEqual([
      { type: 'tool_use', id: 'toolu_1', name: 'weather', input },
    ]);
  }
});

test('takes the counts of the whole message from its end, but for those that do not apply', () => {
  const outputs = outputsOf(START, {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 15, input_tokens: null, cache_read_input_tokens: 4 },
    context_management: { applied_edits: [] },
  });
  expect(outputs).toEqual({
    id: 'msg_1',
    model: 'a',
    content: [],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 2, output_tokens: 15, cache_read_input_tokens: 4 },
    context_management: { applied_edits: [] },
    usage_metadata: { input_tokens: 6, output_tokens: 15, total_tokens: 21, input_token_details: { cache_read: 4 } },
  });
});

test('keeps whole values of deltas and blocks that it does not know', () => {
  const outputs = outputsOf(
    START,
    start({ type: 'compaction', content: '' }),
    delta({ type: 'compaction_delta', content: 'Earlier: tea.' }),
    start({ type: 'fallback', to: { model: 'b' } }, 1),
  );
  expect(outputs).toMatchObject({
    model: 'b',
    content: [
      { type: 'compaction', content: 'Earlier: tea.' },
      { type: 'fallback', to: { model: 'b' } },
    ],
  });
});

test('counts the characters of what the model says', () => {
  const fold = new MessageFold((message) => ({ outputs: message }));
  const text = (value: string) => delta({ type: 'text_delta', text: value });
  const characters = [START, start({ type: 'text' }), { type: 'ping' }, text(''), text('ab'), text('c'), stop()].map(
    (event) => {
      fold.add(event, false);
      return fold.characters;
    },
  );
  expect(characters).toEqual([0, 0, 0, 0, 2, 3, 3]);
});

test('keeps no more text once it is full, and everything else', () => {
  const fold = messagesMethod.reader.fold?.() as Fold;
  const before = [
    START,
    start({ type: 'text', text: '' }),
    delta({ type: 'text_delta', text: 'ab' }),
    start({ type: 'tool_use', name: 'weather', input: {} }, 1),
  ];
  for (const event of before) fold.add(event, false);
  fold.add(delta({ type: 'text_delta', text: 'cd' }), true);
  fold.add(delta({ type: 'citations_delta', citation: { cited_text: 'x' } }), true);
  fold.add(delta({ type: 'input_json_delta', partial_json: '{"a":1}' }, 1), true);
  fold.add({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 15 } }, true);
  expect(fold.characters).toBe(12);
  expect(fold.answer()).toMatchObject({
    outputs: { content: [{ type: 'text', text: 'ab' }, { input: {} }], stop_reason: 'end_turn' },
    usage: { output_tokens: 15 },
  });
});

test.each([
  ['nothing', []],
  ['a block without a message', [start({ type: 'text' }), delta({ type: 'text_delta', text: 'a' }), stop()]],
  ['events of another kind', [null, undefined, 'text', {}, { type: 'message_delta' }]],
])('has no outputs of %s', (_, events) => {
  expect(outputsOf(...events)).toEqual({});
});

test('passes over a delta of a block that has not begun', () => {
  expect(outputsOf(START, delta({ type: 'text_delta', text: 'a' }), stop())?.content).toEqual([]);
});
