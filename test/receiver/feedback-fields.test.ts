import { describe, expect, test } from 'vitest';
import { readFeedback, readSaid, readSaidQuery } from '../../src/receiver/feedback/feedback-fields.ts';
import { Findings } from '../../src/receiver/refusal.ts';
import { ROOT } from './wire.ts';

const found = (loc: unknown[]) => expect.objectContaining({ status: 422, detail: [expect.objectContaining({ loc })] });
const feedbackIn = (body: unknown) => {
  const findings = new Findings();
  const feedback = readFeedback(body, ['body'], findings);
  findings.refuseIfAny();
  return feedback;
};
const query = (text: string, strict = false) => readSaidQuery(new URLSearchParams(text), strict);

describe('a body', () => {
  test('says all of it, some of it or nothing', () => {
    const all = { score: 0.5, value: 'good', comment: 'yes', correction: { answer: 'no' }, metadata: { page: 3 } };
    for (const strict of [false, true]) {
      expect(readSaid(all, strict)).toEqual(all);
      expect(readSaid({ comment: 'yes' }, strict)).toEqual({ comment: 'yes' });
      expect(readSaid({}, strict)).toEqual({});
    }
  });

  test.each<[string, unknown]>([
    ['score', -1],
    ['score', 0],
    ['score', true],
    ['value', 5],
    ['value', false],
    ['value', ''],
    ['value', { stars: 5 }],
    ['comment', ''],
    ['correction', 'no'],
    ['correction', {}],
    ['metadata', {}],
  ])('may have as %s: %j', (field, value) => {
    expect(readSaid({ [field]: value }, false)).toEqual({ [field]: value });
  });

  test.each<[string, unknown]>([
    ['score', '1'],
    ['score', {}],
    ['value', []],
    ['comment', 5],
    ['comment', {}],
    ['correction', 5],
    ['correction', []],
    ['metadata', 'x'],
    ['metadata', []],
  ])('may not have as %s: %j', (field, value) => {
    expect(() => readSaid({ [field]: value }, false)).toThrow(found(['body', field]));
    expect(() => readSaid({ [field]: value }, true)).toThrow(found(['body', field]));
  });

  test.each<[string, unknown]>([
    ['score', true],
    ['score', null],
    ['correction', 'no'],
    ['comment', null],
    ['rating', 5],
  ])('may not have as %s in strict mode: %j', (field, value) => {
    expect(() => readSaid({ [field]: value }, true)).toThrow(found(['body', field]));
  });

  test('may have null for nothing, and fields that are not known, in the dialect of the field', () => {
    const nulls = { score: null, value: null, comment: null, correction: null, metadata: null, rating: 5 };
    expect(readSaid(nulls, false)).toEqual({});
  });

  test('tells all that is wrong with it, and keeps keys like __proto__ as data', () => {
    expect(() => readSaid({ score: 'x', comment: 5 }, false)).toThrow(
      expect.objectContaining({ detail: [expect.anything(), expect.anything()] }),
    );
    const said = readSaid(JSON.parse('{"__proto__":{"score":1},"metadata":{"__proto__":{"polluted":1}}}'), false);
    expect(said).not.toHaveProperty('score');
    expect(JSON.stringify(said)).toBe('{"metadata":{"__proto__":{"polluted":1}}}');
  });

  test.each([[[]], ['x'], [null], [5]])('has to be an object, not %j', (body) => {
    expect(() => readSaid(body, false)).toThrow(expect.objectContaining({ status: 400 }));
    expect(() => feedbackIn(body)).toThrow(expect.objectContaining({ status: 400 }));
  });
});

describe('the query of an address', () => {
  test('says the same in text, correction as JSON', () => {
    expect(query('score=1&value=5&comment=a%20b&correction=%7B%22a%22%3A1%7D&utm_source=mail')).toEqual({
      score: 1,
      value: '5',
      comment: 'a b',
      correction: { a: 1 },
    });
    expect(query('')).toEqual({});
  });

  test.each<[string, unknown]>([
    ['-1', -1],
    ['0.5', 0.5],
    ['1e2', 100],
    ['true', true],
    ['false', false],
  ])('has a score of %s', (text, score) => {
    expect(query(`score=${text}`)).toEqual({ score });
  });

  test.each([
    ['score=', 'score'],
    ['score=good', 'score'],
    ['score=0x10', 'score'],
    ['score=Infinity', 'score'],
    ['score=1e999', 'score'],
    ['metadata={}', 'metadata'],
  ])('does not hold with %s', (text, field) => {
    expect(() => query(text)).toThrow(found(['query', field]));
  });

  test('has neither truth nor text in the place of numbers and objects in strict mode', () => {
    expect(query('score=1&correction={}', true)).toEqual({ score: 1, correction: {} });
    expect(() => query('score=true', true)).toThrow(found(['query', 'score']));
    expect(() => query('correction="no"', true)).toThrow(found(['query', 'correction']));
  });

  test.each(['Paris', 'the {name} of it', '{', '5', 'true', '"no"', '[1]', ' two  spaces '])(
    'keeps a plain-text correction unchanged: %j',
    (correction) => {
      expect(readSaidQuery(new URLSearchParams({ correction }), false)).toEqual({ correction });
      expect(() => readSaidQuery(new URLSearchParams({ correction }), true)).toThrow(found(['query', 'correction']));
    },
  );
});

describe('feedback with its run', () => {
  test('names both, and an id if it has one', () => {
    const given = { run_id: ROOT.toUpperCase(), key: 'user_liked', score: 1, feedback_source: { type: 'api' } };
    expect(feedbackIn(given)).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      run_id: ROOT,
      key: 'user_liked',
      score: 1,
      created_at: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
      modified_at: expect.any(String),
    });
    expect(feedbackIn({ ...given, id: ROOT.replaceAll('-', '') }).id).toBe(ROOT);
  });

  test('has a key of 1 to 180 characters', () => {
    const named = (length: number) => feedbackIn({ run_id: ROOT, key: 'k'.repeat(length) });
    for (const length of [1, 179, 180]) expect(named(length).key).toHaveLength(length);
    for (const length of [0, 181]) expect(() => named(length)).toThrow(found(['body', 'key']));
  });

  test.each<[Record<string, unknown>, string]>([
    [{ key: 'a' }, 'run_id'],
    [{ run_id: 'x', key: 'a' }, 'run_id'],
    [{ run_id: ROOT }, 'key'],
    [{ run_id: ROOT, key: 5 }, 'key'],
    [{ run_id: ROOT, key: 'a', id: 'x' }, 'id'],
    [{ run_id: ROOT, key: 'a', score: 'x' }, 'score'],
  ])('does not hold as %j', (body, field) => {
    expect(() => feedbackIn(body)).toThrow(found(['body', field]));
  });
});
