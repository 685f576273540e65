import { describe, expect, test } from 'vitest';
import { guard } from '../../src/base/guard.ts';
import { told } from '../support/told.ts';
import { hostileValues } from './hostile.ts';

describe('guard', () => {
  test('gives back what the work returns, and tells nothing', () => {
    const lines = told();
    expect(guard('place', () => 7)).toBe(7);
    expect(lines).toEqual([]);
  });

  test('answers undefined for work that throws, and tells it once per place', () => {
    const lines = told();
    const fail = (): number => {
      throw new TypeError('no such key');
    };
    expect([guard('set', fail), guard('set', fail), guard('end', fail)]).toEqual([undefined, undefined, undefined]);
    expect(lines).toEqual([
      'warn: set failed, the application is not affected: no such key',
      'warn: end failed, the application is not affected: no such key',
    ]);
  });

  test('does not fall over what is thrown', () => {
    told();
    for (const make of hostileValues) {
      expect(() =>
        guard(`place ${hostileValues.indexOf(make)}`, () => {
          throw make();
        }),
      ).not.toThrow();
    }
  });
});
