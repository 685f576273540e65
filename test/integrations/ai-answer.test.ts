import { describe, expect, it } from 'vitest';
import { Answer } from '../../src/integrations/ai-answer.ts';
import { makeRun } from '../run/memory-sink.ts';

const usage = { promptTokens: 3, completionTokens: 5 };
const call = { toolCallId: '1', toolName: 'weather' };
const calls = [{ id: '1', type: 'function', function: { name: 'weather', arguments: '{}' } }];

/** What a model call is recorded with once this has been added to its answer. */
function recorded(add: (answer: Answer) => void, charactersMax = 1_000) {
  const { run, record } = makeRun();
  const answer = new Answer(charactersMax);
  add(answer);
  answer.endModelCall(run);
  return record();
}

function parts(...all: readonly object[]) {
  return (answer: Answer): void => {
    for (const part of all) answer.add(part);
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

  it.each<[string, (answer: Answer) => void]>([
    [
      'the result of 4',
      (answer) =>
        answer.addResult({
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
      (answer) =>
        answer.addResult({
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

  it.each([
    [9, 'It rains.'],
    [8, 'It rains[Truncated: 1 characters]'],
    [3, 'It [Truncated: 6 characters]'],
    [0, '[Truncated: 9 characters]'],
  ])('has at most %d characters of text when that is the limit', (max, content) => {
    const record = recorded(parts({ type: 'text-delta', delta: 'It ' }, { type: 'text-delta', delta: 'rains.' }), max);

    expect(record?.outputs).toEqual({ messages: [{ role: 'assistant', content }] });
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
      const record = recorded((answer) => {
        expect(answer.add(part)).toBe(false);
        answer.addResult(part);
      });

      expect(record?.outputs).toEqual({ messages: [{ role: 'assistant', content: '' }] });
    },
  );
});

describe('the answer of several steps', () => {
  it('is that of the last one', () => {
    const { run, record } = makeRun();
    const answer = new Answer(1_000);
    for (const text of ['I look.', 'It rains.']) {
      parts({ type: 'start-step' }, { type: 'text-delta', text }, { type: 'finish-step' })(answer);
    }
    answer.add({ type: 'finish', finishReason: 'stop', totalUsage: usage });
    answer.endOperation(run);

    expect(record()?.outputs).toEqual({ text: 'It rains.', finishReason: 'stop', steps: 2 });
  });
});
