import { describe, expect, it } from 'vitest';
import { outcomeOf } from '../../src/export/answer.ts';

const answer = (status: number, headers = {}) => ({ status, headers, text: '' });

describe('outcomeOf', () => {
  it.each([
    [200, 'accepted'],
    [202, 'accepted'],
    [204, 'accepted'],
    [299, 'accepted'],
    [409, 'accepted'],
    [400, 'invalid'],
    [422, 'invalid'],
    [401, 'misconfigured'],
    [403, 'misconfigured'],
    [404, 'unsupported'],
    [405, 'unsupported'],
    [415, 'unsupported'],
    [501, 'unsupported'],
    [413, 'too_large'],
    [408, 'failed'],
    [425, 'failed'],
    [429, 'failed'],
    [500, 'failed'],
    [502, 'failed'],
    [503, 'failed'],
    [504, 'failed'],
    [507, 'failed'],
    [520, 'failed'],
    [599, 'failed'],
    [300, 'misconfigured'],
    [301, 'misconfigured'],
    [308, 'misconfigured'],
    [399, 'misconfigured'],
    [402, 'dropped'],
    [418, 'dropped'],
    [451, 'dropped'],
    [505, 'dropped'],
  ])('takes status %i as %s', (status, kind) => {
    expect(outcomeOf(answer(status), 0).kind).toBe(kind);
  });

  it('passes on how long the service asks to wait', () => {
    expect(outcomeOf(answer(429, { 'retry-after': '7' }), 0)).toMatchObject({ kind: 'failed', afterMs: 7_000 });
  });

  it('does not repeat what the service says in its body', () => {
    expect(JSON.stringify(outcomeOf({ ...answer(418), text: 'sk-secret' }, 0))).not.toContain('secret');
  });
});
