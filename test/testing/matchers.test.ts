import { describe, expect, test } from 'vitest';
import { startRun } from '#src/run/start-run.ts';
import { type Recorded, recordRuns } from '#src/testing.ts';
import { makeOpenRun, makeRun } from '../support/records.ts';
import '../support/run-matchers.ts';

const startedAt = (second: number) => ({ start_time: `2026-11-20T07:22:4${second}.000000Z` });

/** `answer` with the child runs `search`, `model` and `search`. */
const answer = [
  makeRun('1', 'answer', { tags: ['a', 'b'], extra: { metadata: { user: 'ada', plan: { tier: 'pro', seats: 3 } } } }),
  makeRun('1.1', 'search', {
    ...startedAt(1),
    run_type: 'retriever',
    inputs: { q: 'tea', page: 1 },
    outputs: { hits: [{ id: 'x', score: 1 }, { id: 'y' }] },
  }),
  makeRun('1.2', 'model', {
    ...startedAt(2),
    run_type: 'llm',
    error: 'RateLimitError: slow down\n    at f (/srv/app.js:1:2)\nCaused by: Error: 429',
    events: [{ name: 'new_token', time: '2026-11-20T07:22:42.000000Z', kwargs: { token: 'Hi' } }],
    session_name: 'evals',
  }),
  makeOpenRun('1.3', 'search', { ...startedAt(3), run_type: 'retriever', inputs: { q: 'coffee' } }),
];

const OUTLINE = `Recorded:
  answer (chain)
    search (retriever)
    model (llm): RateLimitError: slow down
    search (retriever): open`;

class Question {
  q: string;

  constructor(q: string) {
    this.q = q;
  }
}

class Sealed {
  readonly #q = 'tea';

  get q(): string {
    return this.#q;
  }
}

function failure(assertion: () => void): string {
  try {
    assertion();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('the assertion holds');
}

test.each([
  ['a name', 'model'],
  ['a pattern of the name', { name: /^se/ }],
  ['a pattern with the flag g', { name: /e/g, times: 4 }],
  ['a part of the inputs', { inputs: { q: 'tea' } }],
  ['an instance of a class, by its keys', { inputs: new Question('tea') }],
  ['a part of a nested object', { metadata: { plan: { tier: 'pro' } } }],
  ['parts of the items of a list', { outputs: { hits: [{ id: 'x' }, {}] } }],
  ['a matcher', { inputs: expect.objectContaining({ page: expect.any(Number) }) }],
  ['the first line of an error', { error: 'RateLimitError: slow down' }],
  ['a pattern of an error', { error: /^RateLimit/ }],
  ['no error', { name: 'search', error: undefined, times: 2 }],
  ['all tags', { tags: ['a', 'b'] }],
  ['missing tags', { name: 'search', tags: [], times: 2 }],
  ['an event', { events: [{ name: 'new_token', data: { token: 'Hi' } }] }],
  ['the project', { project: 'evals' }],
  ['an open run', { name: 'search', open: true, times: 1 }],
  ['a parent by name', { name: 'search', parent: 'answer', times: 2 }],
  ['a parent by pattern', { parent: /answer/, times: 3 }],
  ['a parent by fields', { parent: { name: 'answer', metadata: { user: 'ada' } }, times: 3 }],
  ['no parent', { parent: null, times: 1 }],
  ['no runs', { name: 'rerank', times: 0 }],
])('toHaveRun passes for %s', (_, expected) => {
  expect(answer).toHaveRun(expected);
  expect(() => expect(answer).not.toHaveRun(expected)).toThrow('.not.toHaveRun(');
});

test.each([
  ['a field of one run and one of another', { name: 'model', inputs: { q: 'tea' } }],
  ['a missing key', { inputs: { q: 'tea', user: 'ada' } }],
  ['an object instead of no outputs', { name: 'model', outputs: {} }],
  ['a shorter list', { outputs: { hits: [{ id: 'x' }] } }],
  ['a part of the tags', { tags: ['a'] }],
  ['the message of an error without its name', { error: 'slow down' }],
  ['a line of the stack', { error: /srv/ }],
  ['no error instead of an error', { name: 'model', error: undefined }],
  ['another parent', { name: 'search', parent: 'model' }],
  ['no parent instead of a parent', { name: 'search', parent: null }],
  ['another number of runs', { name: 'search', times: 3 }],
])('toHaveRun fails for %s', (_, expected) => {
  expect(answer).not.toHaveRun(expected);
  expect(() => expect(answer).toHaveRun(expected)).toThrow('.toHaveRun(');
});

describe('a failing toHaveRun', () => {
  test('prints all runs', () => {
    expect(failure(() => expect(answer).toHaveRun('serach'))).toBe(
      `expect(recorded).toHaveRun("serach")\n\nno run matches\n\n${OUTLINE}`,
    );
    expect(failure(() => expect([]).toHaveRun('search'))).toBe(
      'expect(recorded).toHaveRun("search")\n\nno run matches\n\nRecorded:\n  nothing',
    );
  });

  test('prints the differences of runs with the same name, the smallest number first', () => {
    const expected = { name: 'search', inputs: { q: 'tea', page: 2 }, outputs: { hits: [{ id: 'x' }, { id: 'z' }] } };
    const message = failure(() => expect(answer).toHaveRun({ ...expected, parent: 'model' }));
    expect(message.slice(message.indexOf('no run'))).toBe(`no run matches
nearest:
  answer > search
    inputs.page: expected 2, got 1
    outputs.hits[1].id: expected "z", got "y"
    parent.name: expected "model", got "answer"
  answer > search
    inputs.q: expected "tea", got "coffee"
    inputs.page: expected 2, got nothing
    outputs: expected { "hits": [ { "id": "x" }, { "id": "z" } ] }, got nothing
    parent.name: expected "model", got "answer"

${OUTLINE}`);
  });

  test('prints three runs without an expected name', () => {
    const message = failure(() => expect(answer).toHaveRun({ runType: 'tool', open: false }));
    expect(message.match(/^ {2}answer.*$/gm)?.slice(0, 3)).toEqual([
      '  answer',
      '  answer > search',
      '  answer > model',
    ]);
    expect(message).not.toContain('open: expected');
  });

  test('prints the number of runs', () => {
    const linesOf = (times: number) =>
      failure(() => expect(answer).toHaveRun({ name: 'search', times })).split('\n')[2];
    expect(linesOf(0)).toBe('2 runs match, expected 0');
    expect(linesOf(3)).toBe('2 runs match, expected 3');
    const message = failure(() => expect(answer).toHaveRun({ name: 'search', open: true, times: 2 }));
    expect(message).toContain(
      '1 run matches, expected 2\nnearest:\n  answer > search\n    open: expected true, got false',
    );
  });

  test('prints the runs that match after `not`', () => {
    expect(failure(() => expect(answer).not.toHaveRun({ name: 'search' }))).toBe(
      `expect(recorded).not.toHaveRun({ "name": "search" })\n\n2 runs match\n\n${OUTLINE}`,
    );
  });

  test('reports parents that are not recorded', () => {
    const orphan = [makeRun('1.1', 'b')];
    expect(failure(() => expect(orphan).toHaveRun({ name: 'b', parent: null }))).toContain(
      'parent: expected none, got a run that is not recorded',
    );
    expect(failure(() => expect(orphan).toHaveRun({ name: 'b', parent: 'a' }))).toContain(
      'parent: expected one, got a run that is not recorded',
    );
    const root = [makeRun('1', 'b')];
    expect(failure(() => expect(root).toHaveRun({ name: 'b', parent: 'a' }))).toContain(
      'parent: expected one, got none',
    );
  });

  test('supports parents that form a cycle', () => {
    const ring = [makeRun('1', 'a', { parent_run_id: '2' }), makeRun('2', 'b', { parent_run_id: '1' })];
    expect(failure(() => expect(ring).toHaveRun({ name: 'a', open: true }))).toContain('  b > a\n');
  });

  test('prints 30 lines about the nearest runs, and the number of further ones', () => {
    const linesOf = (differences: number) => {
      const inputs = Object.fromEntries(Array.from({ length: differences }, (_, index) => [`key ${index}`, index]));
      const message = failure(() => expect([makeRun('1', 'a')]).toHaveRun({ inputs }));
      return message.slice(message.indexOf('nearest:'), message.indexOf('\n\nRecorded:')).split('\n').slice(1);
    };
    expect(linesOf(29).at(-1)).toBe('    inputs.key 28: expected 28, got nothing');
    expect(linesOf(29)).toHaveLength(30);
    expect(linesOf(30).slice(29)).toEqual(['    inputs.key 28: expected 28, got nothing', '  … and 1 more lines']);
  });

  test('shortens values to 300 characters', () => {
    const message = (length: number) =>
      failure(() => expect([makeRun('1', 'a', { inputs: { q: 'q'.repeat(length) } })]).toHaveRun({ inputs: { q: 1 } }));
    expect(message(298)).toContain(`got "${'q'.repeat(298)}"\n`);
    expect(message(299)).toContain(`got "${'q'.repeat(299)}…\n`);
  });
});

describe('toHaveRun accepts', () => {
  test('a recorder, its runs, and one of them', () => {
    using recorder = recordRuns();
    startRun({ name: 'outer' }).child({ name: 'inner' });
    expect(recorder).toHaveRun({ name: 'inner', parent: 'outer' });
    expect(recorder.runs).toHaveRun({ name: 'inner', parent: 'outer' });
    expect(recorder.run('inner')).toHaveRun({ name: 'inner', times: 1 });
  });

  test('attachments with their size', () => {
    using recorder = recordRuns();
    startRun({ name: 'a' }).attach('image', new Uint8Array(3), 'image/png');
    expect(recorder).toHaveRun({ attachments: [{ name: 'image', size: 3 }] });
    expect(recorder).not.toHaveRun({ attachments: [{ name: 'image', size: 4 }] });
  });
});

describe('toHaveRun rejects, also after `not`,', () => {
  const refusal = (message: string) =>
    expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION', message: expect.stringContaining(message) });
  const FIELDS = 'name, runType, inputs, outputs, error, tags, metadata, events, attachments, project, open';
  const later = Promise.resolve({ q: 'tea' });

  test.each<[unknown, string]>([
    [undefined, 'the argument of toHaveRun to be an object, got undefined'],
    [/nope/, 'the argument of toHaveRun to be a plain object, got a RegExp; write { name: /nope/ }'],
    [{ output: 1 }, `the argument of toHaveRun to contain only ${FIELDS}, parent, times, got \`output\``],
    [{ name: 1 }, '`name` to be a string, a RegExp or a matcher, got the number 1'],
    [{ inputs: 'q' }, '`inputs` to be an object or a matcher, got "q"'],
    [{ times: -1 }, '`times` to be a whole number from 0, got the number -1'],
    [{ parent: 1 }, '`parent` to be a name, a RegExp, an object or null, got the number 1'],
    [{ parent: { title: 'a' } }, `\`parent\` to contain only ${FIELDS}, got \`title\``],
    [{ inputs: { q: later } }, '`inputs.q` to be data or a matcher, got an object without keys (Promise)'],
    [{ inputs: new Sealed() }, '`inputs` to be data or a matcher, got an object without keys (Object)'],
    [
      { outputs: Object.assign(Promise.resolve(), { id: 'x' }) },
      '`outputs` to be data or a matcher, got an object without keys (Promise)',
    ],
    [
      { outputs: { hits: [{}, new Error('no')] } },
      '`outputs.hits[1]` to be data or a matcher, got an object without keys (Error)',
    ],
    [{ outputs: { hits: [/x/] } }, '(RegExp); write expect.stringMatching(/x/)'],
    [
      { metadata: { plan: new Set(['pro']) } },
      '`metadata.plan` to be data or a matcher, got an object without keys (Set)',
    ],
  ])('an expected run %o', (expected, message) => {
    expect(() => expect([]).toHaveRun(expected as never)).toThrow(refusal(message));
    expect(() => expect([]).not.toHaveRun(expected as never)).toThrow(refusal(message));
  });

  test('a value without runs', () => {
    const receiver = { runs: async (): Promise<Recorded> => [] };
    expect(() => expect(receiver.runs()).not.toHaveRun('a')).toThrow(refusal('got a promise; await it'));
    expect(() => expect('a').not.toHaveRun('a')).toThrow(refusal('got "a"'));
  });
});
