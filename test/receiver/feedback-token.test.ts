import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { isExpired, readTokens } from '../../src/receiver/feedback/feedback-token.ts';
import { CHILD, ROOT } from './wire.ts';

const NOW = '2026-11-20T07:22:40.000000Z';

function at(now = NOW): void {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date(now) });
  onTestFinished(() => void vi.useRealTimers());
}

const given = (fields: Record<string, unknown> = {}) => ({ run_id: ROOT, feedback_key: 'user_liked', ...fields });
const expiry = (fields: Record<string, unknown>) => readTokens(given(fields))[0]?.expires_at;
const found = (loc: unknown[]) => expect.objectContaining({ status: 422, detail: [expect.objectContaining({ loc })] });

describe('a token', () => {
  test('has an id that cannot be guessed, and that of the feedback it gives', () => {
    const [token, another] = readTokens([given(), given({ id: CHILD.toUpperCase(), feedback_config: {} })]);
    expect(token?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-/);
    expect(token?.feedback_id).toMatch(/^[0-9a-f-]{36}$/);
    expect(new Set([token?.id, token?.feedback_id, another?.id]).size).toBe(3);
    expect(another).toMatchObject({ run_id: ROOT, feedback_key: 'user_liked', feedback_id: CHILD });
  });

  test.each<[Record<string, unknown>, string]>([
    [{}, '2026-11-20T10:22:40.000000Z'],
    [{ expires_in: null, expires_at: null }, '2026-11-20T10:22:40.000000Z'],
    [{ expires_in: {} }, NOW],
    [{ expires_in: { minutes: 90 } }, '2026-11-20T08:52:40.000000Z'],
    [{ expires_in: { days: 1, hours: 2, minutes: 3 } }, '2026-11-21T09:25:40.000000Z'],
    [{ expires_in: { days: 3_650 } }, '2036-11-17T07:22:40.000000Z'],
    [{ expires_at: '2026-11-20T08:00:00+01:00' }, '2026-11-20T07:00:00.000000Z'],
    [{ expires_at: '2036-11-17T07:22:40Z' }, '2036-11-17T07:22:40.000000Z'],
  ])('with %j expires at %s', (fields, expected) => {
    at();
    expect(expiry(fields)).toBe(expected);
  });

  test.each<[Record<string, unknown>, string]>([
    [{ run_id: 'x' }, 'run_id'],
    [{ run_id: undefined }, 'run_id'],
    [{ feedback_key: '' }, 'feedback_key'],
    [{ feedback_key: 'k'.repeat(181) }, 'feedback_key'],
    [{ feedback_key: 5 }, 'feedback_key'],
    [{ id: 'x' }, 'id'],
    [{ feedback_config: 'x' }, 'feedback_config'],
    [{ expires_at: 'tomorrow' }, 'expires_at'],
    [{ expires_at: 5 }, 'expires_at'],
    [{ expires_at: '2036-11-17T07:22:41Z' }, 'expires_at'],
    [{ expires_in: { days: 3_651 } }, 'expires_in'],
    [{ expires_in: { weeks: 1 } }, 'expires_in'],
    [{ expires_in: { hours: -1 } }, 'expires_in'],
    [{ expires_in: { hours: '3' } }, 'expires_in'],
    [{ expires_in: { hours: 1.5 } }, 'expires_in'],
    [{ expires_in: 3 }, 'expires_in'],
    [{ expires_in: { hours: 1 }, expires_at: '2026-11-20T08:00:00Z' }, 'expires_in'],
  ])('with %j does not hold', (fields, field) => {
    at();
    expect(() => readTokens(given(fields))).toThrow(found(['body', field]));
    expect(() => readTokens([given(), given(fields)])).toThrow(found(['body', 1, field]));
  });

  test.each([['x'], [null], [5], [[null]], [['x']]])('is not asked for by %j', (body) => {
    expect(() => readTokens(body)).toThrow(expect.objectContaining({ status: 400 }));
  });

  test('counts until the moment of its expiry', () => {
    at();
    const [token] = readTokens(given({ expires_in: { minutes: 1 } }));
    if (token === undefined) throw new Error('no token');
    vi.setSystemTime(new Date('2026-11-20T07:23:39.999Z'));
    expect(isExpired(token)).toBe(false);
    vi.setSystemTime(new Date('2026-11-20T07:23:40.000Z'));
    expect(isExpired(token)).toBe(true);
  });
});

test('one request makes 1 000 tokens and no more', () => {
  const asked = (count: number) => readTokens(Array.from({ length: count }, () => given()));
  expect(asked(0)).toEqual([]);
  expect(asked(999)).toHaveLength(999);
  expect(asked(1_000)).toHaveLength(1_000);
  expect(() => asked(1_001)).toThrow(expect.objectContaining({ status: 413 }));
});
