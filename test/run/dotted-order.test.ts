import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { clock } from '../../src/base/clock.ts';
import { newRunId } from '../../src/run/ids.ts';
import { canonicalId, dottedOrder, parseDottedOrder } from '../../src/run/time.ts';

/** 2026-11-20T07:22:40Z */
const SECOND_US = 1_795_159_360_000_000;
const ROOT = '019a9f3c-1a00-7000-8000-000000000001';
const CHILD = '019a9f3c-1a00-7000-bfff-ffffffffffff';

describe('the dotted order', () => {
  test('of a root is its start and its id', () => {
    expect(dottedOrder(undefined, SECOND_US + 123_456, ROOT)).toBe(
      '20261120T072240123456Z019a9f3c-1a00-7000-8000-000000000001',
    );
  });

  test('of a child is that of its parent, a dot, and its own', () => {
    const parent = dottedOrder(undefined, SECOND_US, ROOT);
    expect(dottedOrder(parent, SECOND_US + 1, CHILD)).toBe(
      '20261120T072240000000Z019a9f3c-1a00-7000-8000-000000000001.' +
        '20261120T072240000001Z019a9f3c-1a00-7000-bfff-ffffffffffff',
    );
  });

  test('sorts siblings by creation, and each before those below it', () => {
    const made: string[] = [dottedOrder(undefined, clock.nowUs(), newRunId(clock.nowUs()))];
    for (let index = 0; index < 500; index++) {
      const us = clock.nowUs();
      const parent = dottedOrder(made[0], us, newRunId(us));
      made.push(parent, dottedOrder(parent, clock.nowUs(), newRunId(us)));
    }
    expect(made.toSorted()).toEqual(made);
  });
});

describe('a dotted order is taken apart', () => {
  test('from the root down', () => {
    const text = `20261120T072240123456Z${ROOT}.20261120T072241000000Z${CHILD}`;
    expect(parseDottedOrder(text)).toEqual([
      { startUs: SECOND_US + 123_456, id: ROOT },
      { startUs: SECOND_US + 1_000_000, id: CHILD },
    ]);
  });

  test('with ids that have no hyphens, or upper case', () => {
    const text = `20261120T072240000000Z${ROOT.replaceAll('-', '')}.20261120T072240000000Z${CHILD.toUpperCase()}`;
    expect(parseDottedOrder(text)?.map(({ id }) => id)).toEqual([ROOT, CHILD]);
  });

  test('into what it was built of', () => {
    const levels = fc.array(fc.tuple(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), fc.uuid()), {
      minLength: 1,
    });
    fc.assert(
      fc.property(levels, (given) => {
        const text = given.reduce<string | undefined>((parent, [us, id]) => dottedOrder(parent, us, id), undefined);
        expect(parseDottedOrder(text ?? '')).toEqual(given.map(([startUs, id]) => ({ startUs, id })));
      }),
    );
  });

  test.each([
    ['nothing', ''],
    ['an id alone', ROOT],
    ['milliseconds', `20261120T072240123Z${ROOT}`],
    ['seven digits', `20261120T0722401234567Z${ROOT}`],
    ['no zone', `20261120T072240123456${ROOT}`],
    ['no T', `20261120072240123456Z${ROOT}`],
    ['an id with a digit missing', `20261120T072240123456Z${ROOT.slice(1)}`],
    ['an id with a digit too many', `20261120T072240123456Z${ROOT}0`],
    ['an id that is not hexadecimal', `20261120T072240123456Z${ROOT.replace('f', 'g')}`],
    ['a month that is none', `20261320T072240123456Z${ROOT}`],
    ['a day that the month does not have', `20260230T072240123456Z${ROOT}`],
    ['an hour that is none', `20261120T252240123456Z${ROOT}`],
    ['a dot at the end', `20261120T072240123456Z${ROOT}.`],
    ['a dot at the beginning', `.20261120T072240123456Z${ROOT}`],
    ['a second segment that is none', `20261120T072240123456Z${ROOT}.x`],
    ['white space', ` 20261120T072240123456Z${ROOT}`],
  ])('and %s is none', (_, text) => {
    expect(parseDottedOrder(text)).toBeUndefined();
  });
});

test('an id has one canonical spelling', () => {
  expect(canonicalId('019A9F3C1A0070008000000000000001')).toBe(ROOT);
  expect(canonicalId(ROOT)).toBe(ROOT);
});
