import { describe, expect, it } from 'vitest';
import { type AssembledMessage, MessageAssembler } from '#src/clients/agent-server/protocol/message-assembler.ts';
import type { ThreadEvent } from '#src/clients/agent-server/protocol/thread-event.ts';
import { threadEventOf } from '#src/clients/agent-server/protocol/thread-event-form.ts';

const event = (data: object, namespace: readonly string[] = [], node?: string, method = 'messages'): ThreadEvent =>
  threadEventOf({
    name: method,
    data: JSON.stringify({ method, params: { namespace, node, data } }),
    id: '',
    hasOwnId: false,
  });

const start = (id: string, more: object = {}) => ({ event: 'message-start', id, ...more });
const block = (index: number, content: object) => ({ event: 'content-block-start', index, content });
const delta = (index: number, of: object) => ({ event: 'content-block-delta', index, delta: of });
const text = (index: number, said: string) => delta(index, { type: 'text-delta', text: said });
const whole = (index: number, content: object) => ({ event: 'content-block-finish', index, content });
const finish = (more: object = {}) => ({ event: 'message-finish', ...more });

/** Returns the messages after each event. */
function assemble(...data: readonly object[]): { assembler: MessageAssembler; last: AssembledMessage | undefined } {
  const assembler = new MessageAssembler();
  let last: AssembledMessage | undefined;
  for (const one of data) last = assembler.take(event(one));
  return { assembler, last };
}

describe('an assembled message', () => {
  it('grows with its text, and ends with its usage', () => {
    const { assembler, last } = assemble(
      start('m-1', { role: 'ai' }),
      block(0, { type: 'text', text: '' }),
      text(0, 'It is '),
      text(0, 'sunny'),
    );
    expect(last).toMatchObject({ id: 'm-1', role: 'ai', text: 'It is sunny', status: 'streaming', namespace: [] });
    expect(last?.usage).toBeUndefined();

    assembler.take(event(whole(0, { type: 'text', text: 'It is sunny.' })));
    const usage = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
    expect(assembler.take(event(finish({ usage })))).toMatchObject({ text: 'It is sunny.', status: 'complete', usage });
    expect(assembler.messages).toHaveLength(1);
  });

  it('separates reasoning, text and tool calls', () => {
    const call = { type: 'tool_call_chunk', id: 'c-1', name: 'weather', args: '' };
    const { assembler, last } = assemble(
      start('m-1'),
      block(0, { type: 'reasoning', reasoning: 'I ' }),
      delta(0, { type: 'reasoning-delta', reasoning: 'look' }),
      block(1, { type: 'text', text: 'Wait' }),
      text(1, '.'),
      block(2, call),
      delta(2, { type: 'block-delta', fields: { type: 'tool_call_chunk', args: '{"city":' } }),
    );
    expect(last).toMatchObject({ reasoning: 'I look', text: 'Wait.' });
    expect(last?.toolCalls).toEqual([{ id: 'c-1', name: 'weather', args: '{"city":', isWhole: false }]);

    const done = assembler.take(
      event(whole(2, { type: 'tool_call', id: 'c-1', name: 'weather', args: { city: 'Kiel' } })),
    );
    expect(done?.toolCalls).toEqual([{ id: 'c-1', name: 'weather', args: { city: 'Kiel' }, isWhole: true }]);
    expect(done?.blocks.map(({ type }) => type)).toEqual(['reasoning', 'text', 'tool_call']);
  });

  it('grows with data in base64', () => {
    const { last } = assemble(
      start('m-1'),
      block(0, { type: 'audio', mime_type: 'audio/wav' }),
      delta(0, { type: 'data-delta', data: 'UklG', encoding: 'base64' }),
      delta(0, { type: 'data-delta', data: 'RgAA' }),
    );
    expect(last?.blocks).toEqual([{ type: 'audio', mime_type: 'audio/wav', base64: 'UklGRgAA' }]);
  });

  it('grows with deltas of a part that was not started', () => {
    const { last } = assemble(
      start('m-1'),
      text(3, 'a'),
      delta(1_000_000_000, { type: 'reasoning-delta', reasoning: 'b' }),
      delta(-1, { type: 'block-delta', fields: { type: 'image', url: 'c' } }),
      delta(0.5, { type: 'data-delta', data: 'd' }),
    );
    expect(last?.blocks).toEqual([
      { type: 'text', text: 'a' },
      { type: 'reasoning', reasoning: 'b' },
      { type: 'image', url: 'c' },
      { type: 'data', base64: 'd' },
    ]);
  });

  it('is a new object for each change, and earlier objects do not change', () => {
    const { assembler, last } = assemble(start('m-1'), text(0, 'a'));

    const next = assembler.take(event(text(0, 'b')));

    expect(next).not.toBe(last);
    expect([last?.text, next?.text]).toEqual(['a', 'ab']);
    expect(assembler.messages).toEqual([next]);
  });

  it('is separate from concurrent messages of other namespaces, nodes and model calls', () => {
    const assembler = new MessageAssembler();
    const streams: readonly (readonly [id: string, namespace: readonly string[], node?: string, run?: string])[] = [
      ['m-1', []],
      ['m-2', [], 'plan'],
      ['m-3', ['tools:1'], 'plan'],
      ['m-4', ['tools:1'], 'plan', 'run-1'],
      ['m-5', ['tools:1'], 'plan', 'run-2'],
    ];
    const send = (make: (id: string) => object): void => {
      for (const [id, namespace, node, run_id] of streams)
        assembler.take(event({ ...make(id), ...(run_id && { run_id }) }, namespace, node));
    };
    send((id) => start(id));
    send((id) => text(0, `of ${id}`));
    send(() => text(0, '.'));
    send(() => finish());

    expect(assembler.messages.map(({ id, text: said, namespace }) => [id, said, namespace.length])).toEqual([
      ['m-1', 'of m-1.', 0],
      ['m-2', 'of m-2.', 0],
      ['m-3', 'of m-3.', 1],
      ['m-4', 'of m-4.', 1],
      ['m-5', 'of m-5.', 1],
    ]);
  });

  it('starts again at the same position if it is sent again', () => {
    const { assembler } = assemble(
      start('m-1'),
      text(0, 'a'),
      finish(),
      start('m-2'),
      finish(),
      start('m-1'),
      text(0, 'b'),
    );

    expect(assembler.messages.map(({ id, text: said }) => `${id} ${said}`)).toEqual(['m-1 b', 'm-2 ']);
  });

  it('fails if the model fails', () => {
    const { assembler, last } = assemble(start('m-1'), text(0, 'a'), { event: 'error', message: 'overloaded' });

    expect(last).toMatchObject({ status: 'failed', error: 'overloaded', text: 'a' });
    expect(assembler.take(event(text(0, 'b')))).toBeUndefined();
  });

  it('needs its start event, and ignores other events', () => {
    const { assembler, last } = assemble(text(0, 'a'), finish());

    expect(last).toBeUndefined();
    expect(assembler.take(event({ event: 'running' }, [], undefined, 'lifecycle'))).toBeUndefined();
    expect(assembler.take(event({ event: 'message-start' }))).toBeUndefined();
    expect(assembler.messages).toEqual([]);
  });
});
