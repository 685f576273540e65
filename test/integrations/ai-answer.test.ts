import { describe, expect, it } from 'vitest';
import { modelAnswer, operationAnswer, PartsFold } from '../../src/integrations/ai-answer.ts';
import { endWithAnswer } from '../../src/integrations/answer.ts';
import { makeRun } from '../run/memory-sink.ts';

const usage = { promptTokens: 3, completionTokens: 5 };
const call = { toolCallId: '1', toolName: 'weather' };
const calls = [{ id: '1', type: 'function', function: { name: 'weather', arguments: '{}' } }];

/** What a model call is recorded with once this has been added to its answer. */
function recorded(add: (fold: PartsFold) => void) {
  const { run, record } = makeRun();
  const fold = new PartsFold(modelAnswer);
  add(fold);
  endWithAnswer(run, () => fold.answer());
  return record();
}

function parts(...all: readonly object[]) {
  return (fold: PartsFold): void => {
    for (const part of all) fold.add(part, false);
  };
}

describe('the answer of a model', () => {
  const expected = {
    messages: [
      {
        role: 'assistant',
        content: 'It rains.',
        reasoning: 'Hm, so.',
        tool_calls: calls,
        files: [{ type: 'file', media_type: 'image/png', data: 'AA==' }],
        finish_reason: 'stop',
      },
    ],
    usage_metadata: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
  };
  const file = { data: 'AA==', mimeType: 'image/png' };

  it.each<[string, (fold: PartsFold) => void]>([
    [
      'the result of 4',
      (fold) =>
        fold.addResult({
          text: 'It rains.',
          reasoning: [
            { type: 'text', text: 'Hm, ' },
            { type: 'text', text: 'so.' },
          ],
          toolCalls: [{ toolCallType: 'function', ...call, args: '{}' }],
          files: [file],
          finishReason: 'stop',
          usage,
        }),
    ],
    [
      'the result of 5 and later',
      (fold) =>
        fold.addResult({
          content: [
            { type: 'reasoning', text: 'Hm, so.' },
            { type: 'text', text: 'It ' },
            { type: 'text', text: 'rains.' },
            { type: 'tool-call', ...call, input: '{}' },
            { type: 'file', mediaType: 'image/png', data: 'AA==' },
            { type: 'source', url: 'https://example.com' },
          ],
          finishReason: { unified: 'stop', raw: 'end' },
          usage,
        }),
    ],
    [
      'the stream of 4',
      parts(
        { type: 'reasoning', textDelta: 'Hm, ' },
        { type: 'reasoning', textDelta: 'so.' },
        { type: 'text-delta', textDelta: 'It rains.' },
        { type: 'tool-call-delta', argsTextDelta: '{' },
        { type: 'tool-call', ...call, args: '{}' },
        { type: 'file', ...file },
        { type: 'finish', finishReason: 'stop', usage },
      ),
    ],
    [
      'the stream of 5 and later',
      parts(
        { type: 'stream-start', warnings: [] },
        { type: 'reasoning-start', id: '0' },
        { type: 'reasoning-delta', id: '0', delta: 'Hm, so.' },
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: 'It ' },
        { type: 'text-delta', id: '1', delta: 'rains.' },
        { type: 'tool-input-delta', id: '1', delta: '{' },
        { type: 'tool-call', ...call, input: '{}' },
        { type: 'file', mediaType: 'image/png', data: 'AA==' },
        { type: 'finish', finishReason: { unified: 'stop', raw: 'end' }, usage },
      ),
    ],
  ])('is the same in %s', (_, add) => {
    expect(recorded(add)?.outputs).toEqual(expected);
  });

  it('keeps no more text once it is full, and everything else', () => {
    const record = recorded((fold) => {
      fold.add({ type: 'text-delta', delta: 'It ' }, false);
      fold.add({ type: 'text-delta', delta: 'rains.' }, true);
      fold.add({ type: 'tool-call', ...call, input: '{}' }, true);
      fold.add({ type: 'finish', finishReason: 'stop', usage }, true);
      expect(fold.characters).toBe(10);
    });

    expect(record?.outputs).toMatchObject({
      messages: [{ content: 'It ', tool_calls: calls, finish_reason: 'stop' }],
      usage_metadata: { total_tokens: 8 },
    });
  });

  it('fails with the first error of the stream, and keeps what came', () => {
    const record = recorded(
      parts(
        { type: 'text-delta', delta: 'It ' },
        { type: 'error', error: new RangeError('hoarse') },
        { type: 'error', error: new TypeError('later') },
      ),
    );

    expect(record?.error).toMatch(/^RangeError: hoarse\n/);
    expect(record?.outputs).toEqual({ messages: [{ role: 'assistant', content: 'It ' }] });
  });

  it.each([[undefined], [null], [7], ['text'], [[]], [{ type: 'text-delta' }], [{ type: 'text-delta', delta: 1 }]])(
    'takes nothing from %j',
    (part) => {
      const record = recorded((fold) => {
        fold.add(part, false);
        fold.addResult(part);
        expect(fold.characters).toBe(0);
      });

      expect(record?.outputs).toEqual({ messages: [{ role: 'assistant', content: '' }] });
    },
  );
});

describe('the answer of several steps', () => {
  it('is that of the last one', () => {
    const { run, record } = makeRun();
    const fold = new PartsFold(operationAnswer);
    for (const text of ['I look.', 'It rains.']) {
      parts({ type: 'start-step' }, { type: 'text-delta', text }, { type: 'finish-step' })(fold);
    }
    fold.add({ type: 'finish', finishReason: 'stop', totalUsage: usage }, false);
    endWithAnswer(run, () => fold.answer());

    expect(record()?.outputs).toEqual({ text: 'It rains.', finishReason: 'stop', steps: 2 });
  });
});
