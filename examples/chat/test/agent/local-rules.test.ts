import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { describe, expect, test } from 'vitest';
import { replyTo } from '../../server/agent/local-rules.ts';

const found = '[1] birds.md, "Herons"\nThe heron waits. It is tall. It flies.\n\n[2] x.md\nNo.';
const result = (content: string, id = 'x') => new ToolMessage({ content, tool_call_id: id });

describe('the supervisor', () => {
  const tools = ['task', 'save_note'];
  const cases: [string, string, string, object[]][] = [
    [
      'has a question looked up',
      'What is a heron?',
      'Let me look that up.',
      [{ subagent_type: 'researcher', description: 'What is a heron?' }],
    ],
    [
      'has two things looked up at once that are to be compared',
      'compare herons with otters.',
      'Let me look that up.',
      [
        { subagent_type: 'researcher', description: 'herons' },
        { subagent_type: 'researcher', description: 'otters' },
      ],
    ],
    [
      'takes a question for a difference as one to compare',
      'What is the difference between herons and otters?',
      'Let me look that up.',
      [
        { subagent_type: 'researcher', description: 'herons' },
        { subagent_type: 'researcher', description: 'otters' },
      ],
    ],
    ['saves what it is told to', 'Please save a note: buy\nmilk', '', [{ text: 'buy\nmilk' }]],
    [
      'greets',
      'hello there',
      'Hello. Ask about the documents, ask to compare two things, or say "save a note: …".',
      [],
    ],
    [
      'says what it can do',
      'What can you do?',
      'Hello. Ask about the documents, ask to compare two things, or say "save a note: …".',
      [],
    ],
    ['takes silence for a question', '', 'Let me look that up.', [{ subagent_type: 'researcher', description: '' }]],
  ];
  test.each(cases)('%s', (_, question, text, args) => {
    const reply = replyTo([new HumanMessage(question)], tools);
    expect([reply.text, reply.calls.map((call) => call.args)]).toEqual([text, args]);
    expect(new Set(reply.calls.map(({ id }) => id)).size).toBe(args.length);
  });

  test('says what a researcher has found', () => {
    expect(replyTo([new HumanMessage('What is a heron?'), new AIMessage(''), result('A bird.')], tools)).toEqual({
      text: 'A bird.',
      calls: [],
    });
  });

  test('has two findings made one text, and says that', () => {
    const messages = [new HumanMessage('Compare a and b'), result('A.', 'researcher-1'), result('B.', 'researcher-2')];
    const reply = replyTo(messages, tools);
    expect(reply.calls.map(({ args }) => args)).toEqual([{ subagent_type: 'writer', description: 'A.\n\nB.' }]);
    const id = reply.calls[0]?.id;
    expect(replyTo([...messages, result('A and B.', id)], tools)).toEqual({ text: 'A and B.', calls: [] });
  });

  test('forgets what was found for an earlier question', () => {
    const messages = [
      new HumanMessage('What is a?'),
      result('A.'),
      new AIMessage('A.'),
      new HumanMessage('What is b?'),
    ];
    expect(replyTo(messages, tools).calls).toHaveLength(1);
  });
});

test('the researcher searches, then says what the best paragraph begins with, and where it stands', () => {
  const asked = new HumanMessage('herons');
  expect(replyTo([asked], ['search_docs']).calls.map(({ name, args }) => [name, args])).toEqual([
    ['search_docs', { query: 'herons' }],
  ]);
  expect(replyTo([asked, result(found)], ['search_docs']).text).toBe(
    'On "herons": The heron waits. It is tall. (birds.md, "Herons")',
  );
  expect(replyTo([asked, result('The documents say nothing about this.')], ['search_docs']).text).toBe(
    'On "herons": The documents say nothing about this.',
  );
});

describe('of what was found the researcher quotes', () => {
  const nothing = 'The documents say nothing about this.';
  const cases: [string, string, string, string][] = [
    [
      'the paragraph whose first sentence has most of the words',
      'How does the heron fish?',
      'The heron nests in trees all year. The heron may fish.\n\n[2] b.md\nA heron can fish in any water.\n\n[3] c.md\nNo heron will ever fish in vain.',
      'A heron can fish in any water. (b.md)',
    ],
    [
      'one that has words in its heading',
      'How does the heron fish?',
      'The heron nests in trees all year.\n\n[2] b.md, "Heron and fish"\nIt stands quite still for hours.',
      'It stands quite still for hours. (b.md, "Heron and fish")',
    ],
    [
      'one that has half of the words',
      'Where do herons nest?',
      'The heron stands still for hours.',
      'The heron stands still for hours. (a.md)',
    ],
    ['none that has less', 'Where do white herons nest?', 'The heron stands still for hours.', nothing],
    [
      'no line of a command',
      'heron?',
      'npm run heron -- --only 3 of them.\n\n[2] b.md\nSay heron, and it comes.',
      'Say heron, and it comes. (b.md)',
    ],
    ['no few words', 'heron?', 'The heron waits here.', nothing],
  ];
  test.each(cases)('%s', (_, question, paragraphs, answer) => {
    const messages = [new HumanMessage(question), result(`[1] a.md\n${paragraphs}`)];
    expect(replyTo(messages, ['search_docs']).text).toBe(answer);
  });
});

test('the writer makes paragraphs shorter, and leaves where they are from', () => {
  const findings = 'One. Two. Three. (my notes.md, "On (four)?")\n\nFive. Six. Seven. (eight)';
  expect(replyTo([new HumanMessage(findings)], []).text).toBe('One. Two. (my notes.md, "On (four)?")\n\nFive. Six.');

  expect(replyTo([new HumanMessage('One. Two. Three.\n\nNo stop')], []).text).toBe('One. Two.\n\nNo stop');
});

describe('what is too long is cut', () => {
  const text = (chars: number) => 'x'.repeat(chars);
  const described = (question: string) =>
    replyTo([new HumanMessage(question)], ['task']).calls.map(({ args }) => args.description);

  test('as a task, after 2 000 characters', () => {
    expect(described(text(2_000))).toEqual([text(2_000)]);
    expect(described(text(2_001))).toEqual([`${text(1_999)}…`]);
    // The last of 2 000 would be half of a character.
    expect(described(`${text(1_998)}\u{1FABF}${text(9)}`)).toEqual([`${text(1_998)}…`]);
  });

  test('as a question that is repeated, after 200', () => {
    const said = (question: string) => replyTo([new HumanMessage(question), result('Nothing.')], ['search_docs']).text;
    expect(said(text(200))).toBe(`On "${text(200)}": The documents say nothing about this.`);
    expect(said(text(201))).toBe(`On "${text(199)}…": The documents say nothing about this.`);
  });

  test('as an answer, after 4 000, and of a note nothing is', () => {
    const said = (found: string) => replyTo([new HumanMessage('Why?'), result(found)], ['task']).text;
    expect([said(text(4_000)), said(text(4_001))]).toEqual([text(4_000), `${text(3_999)}…`]);
    expect(replyTo([new HumanMessage(text(4_001))], []).text).toBe(`${text(3_999)}…`);
    const [saved] = replyTo([new HumanMessage(`save a note: ${text(9_000)}`)], ['task']).calls;
    expect(saved?.args).toEqual({ text: text(9_000) });
  });
});

test('what is as long as a body may be holds nothing up', () => {
  const startedAt = performance.now();
  const size = 4_000_000;
  for (const text of ['compare ', ' and x', 'x', '. ', ' ', 'save ', ' (', ' (a.md, "', '[1] x\nx\n']) {
    const question = new HumanMessage(`compare ${text.repeat(size / text.length)}\n.`);
    for (const tools of [['task'], ['search_docs'], []]) replyTo([question], tools);
  }
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});
