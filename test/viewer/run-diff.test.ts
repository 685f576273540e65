import { expect, test } from 'vitest';
import type { RunDetails } from '#src/receiver/domain/run-view.ts';
import type { Message } from '#src/services/message.ts';
import { diffFields, diffMessages } from '#src/viewer/compare/run-diff.ts';

const message = (role: string, text: string): Message => ({ role, parts: [{ kind: 'text', text }] });
const SIGNS = { same: ' ', removed: '-', added: '+', message: '#' };

test('conversations are compared message by message', () => {
  const before = [message('system', 'Be kind'), message('user', 'Hi\nWhere?'), message('assistant', 'Here')];
  const after = [message('system', 'Be kind'), message('user', 'Hi\nWhen?'), message('tool', 'Now')];
  const lines = diffMessages(before, after).map(({ kind, text }) => `${SIGNS[kind]}${text}`);
  expect(lines).toEqual([
    ' system',
    '   Be kind',
    '#user',
    '   Hi',
    '-  Where?',
    '+  When?',
    '#tool',
    '+  Now',
    '#assistant',
    '-  Here',
  ]);
});

test('runs are compared by usage, latency and nested metadata', () => {
  const run = (ms: number, total_tokens: number, metadata: object): RunDetails => ({
    id: 'a',
    trace_id: 'a',
    dotted_order: 'a',
    name: 'answer',
    run_type: 'llm',
    status: 'success',
    start_time: '1970-01-01T00:00:00.000000Z',
    end_time: `1970-01-01T00:00:00.${ms}000Z`,
    usage: { total_tokens },
    extra: { metadata: metadata as Record<string, unknown> },
    payload_sizes: {},
  });
  const fields = diffFields(run(200, 5, { a: { b: 1 }, user: 'x' }), run(300, 5, { a: { b: 2 }, list: [1] }));
  expect(fields.map(({ name, before, after }) => [name, before, after])).toEqual([
    ['name', 'answer', 'answer'],
    ['status', 'success', 'success'],
    ['latency', '200 ms', '300 ms'],
    ['usage.total_tokens', '5', '5'],
    ['metadata.a.b', '1', '2'],
    ['metadata.user', 'x', ''],
    ['metadata.list', '', '[1]'],
  ]);
});
