import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  isRunField,
  ORDER_LEVELS_MAX,
  parseUuid,
  type RunField,
  readField,
} from '../../src/receiver/ingest/run-fields.ts';
import { Findings, type ValidationError } from '../../src/receiver/refusal.ts';
import { CHILD, CHILD_ORDER, ROOT, ROOT_ORDER, START } from './wire.ts';

const FIELD = { hexIds: true, loose: true };
const STRICT = { hexIds: false, loose: false };
const hex = (text: string) => text.replaceAll('-', '');

/** What is kept of the field, or what is found wrong with it. */
function read(field: RunField, value: unknown, spellings = FIELD): unknown {
  const findings = new Findings();
  const kept = readField(field, value, spellings, ['body', field], findings);
  try {
    findings.refuseIfAny();
    return kept;
  } catch (error) {
    const [found] = (error as { detail: readonly ValidationError[] }).detail;
    expect(found?.loc).toEqual(['body', field]);
    expect(kept).toBeUndefined();
    return `${found?.type}: ${found?.msg}`;
  }
}

describe('a field', () => {
  test.each<[RunField, unknown, unknown]>([
    ['id', ROOT.toUpperCase(), ROOT],
    ['start_time', '2026-11-20T08:22:40.123456+01:00', START],
    ['dotted_order', CHILD_ORDER.toLowerCase(), { text: CHILD_ORDER, ids: [ROOT, CHILD] }],
    ['inputs', { a: [1] }, { a: [1] }],
    ['events', [{ name: 'a', time: START }], [{ name: 'a', time: START }]],
    ['error', '', ''],
    ['tags', [], []],
    ['extra', { metadata: {}, a: 1 }, { metadata: {}, a: 1 }],
    ['session_name', 'default', 'default'],
    ['name', undefined, undefined],
  ])('%s as %j is read the same in both modes', (field, value, expected) => {
    expect(read(field, value, STRICT)).toEqual(expected);
    expect(read(field, value, FIELD)).toEqual(expected);
  });

  test.each<[RunField, unknown, unknown]>([
    ['id', hex(ROOT), ROOT],
    ['end_time', 1795159360123, '2026-11-20T07:22:40.123000Z'],
    ['end_time', 0, '1970-01-01T00:00:00.000000Z'],
    ['end_time', null, undefined],
    ['dotted_order', hex(ROOT_ORDER), { text: ROOT_ORDER, ids: [ROOT] }],
    ['extra', { metadata: null, runtime: null }, {}],
  ])('%s as %j is taken from the field alone', (field, value, expected) => {
    expect(read(field, value, FIELD)).toEqual(expected);
    expect(read(field, value, STRICT)).toMatch(/^\w+: Expected `/);
  });

  test.each<[RunField, unknown, string]>([
    ['id', 'abc', 'uuid: Expected `id` to be a UUID, got "abc"'],
    ['id', 5, 'uuid: Expected `id` to be a UUID, got the number 5'],
    ['trace_id', ROOT.replace('-', ''), 'uuid: '],
    ['parent_run_id', {}, 'uuid: Expected `parent_run_id` to be a UUID, got an object'],
    ['name', '', 'string: Expected `name` to be text that is not empty, got ""'],
    ['run_type', 1, 'string: '],
    ['session_id', [], 'string: '],
    ['start_time', 'yesterday', 'timestamp: '],
    ['start_time', '1969-12-31T23:59:59Z', 'timestamp: '],
    ['end_time', -1, 'timestamp: '],
    ['end_time', Date.UTC(2255, 0), 'timestamp: '],
    ['end_time', {}, 'timestamp: '],
    ['dotted_order', `20261120T072240Z${ROOT}`, 'dotted_order: '],
    ['dotted_order', `20261320T072240123456Z${ROOT}`, 'dotted_order: '],
    ['dotted_order', `.${ROOT_ORDER}`, 'dotted_order: '],
    ['dotted_order', ROOT_ORDER.replace('-', ''), 'dotted_order: '],
    ['dotted_order', [ROOT_ORDER], 'dotted_order: '],
    ['inputs', [], 'object: Expected `inputs` to be an object, got an array'],
    ['outputs', 'x', 'object: '],
    ['events', ['x'], 'array: '],
    ['events', {}, 'array: '],
    ['error', {}, 'string: '],
    ['tags', [1], 'array: '],
    ['extra', { metadata: [] }, 'object: Expected `extra` to be an object whose `metadata` is an object'],
    ['extra', { runtime: 'x' }, 'object: Expected `extra` to be an object whose `runtime` is an object'],
  ])('%s as %j is wrong', (field, value, found) => {
    expect(read(field, value)).toContain(found);
  });

  test('end_time may be up to the end of 2254', () => {
    expect(read('end_time', Date.UTC(2255, 0) - 1)).toBe('2254-12-31T23:59:59.999000Z');
  });
});

describe('a dotted order', () => {
  const order = (levels: number, segment = ROOT_ORDER) => Array.from({ length: levels }, () => segment).join('.');

  test.each([ROOT_ORDER, hex(ROOT_ORDER)])('of segments like %s has so many and no more', (segment) => {
    for (const levels of [ORDER_LEVELS_MAX - 1, ORDER_LEVELS_MAX]) {
      expect(read('dotted_order', order(levels, segment))).toMatchObject({ ids: { length: levels } });
    }
    expect(read('dotted_order', order(ORDER_LEVELS_MAX + 1, segment))).toContain('up to 1000 segments');
  });

  test('is not taken apart when it is longer than those can be', () => {
    const split = vi.spyOn(String.prototype, 'split');
    onTestFinished(() => split.mockRestore());
    expect(read('dotted_order', '.'.repeat(100_000))).toContain('up to 1000 segments');
    expect(split).not.toHaveBeenCalled();
  });
});

test('a UUID has all of its hyphens, or none where that is taken', () => {
  expect(parseUuid(ROOT, false)).toBe(ROOT);
  expect(parseUuid(hex(ROOT).toUpperCase(), true)).toBe(ROOT);
  expect(parseUuid(hex(ROOT), false)).toBeUndefined();
  expect(parseUuid(`${ROOT}0`, true)).toBeUndefined();
});

test('names that every object has are no fields', () => {
  expect(isRunField('start_time')).toBe(true);
  for (const name of ['__proto__', 'constructor', 'toString', '']) expect(isRunField(name)).toBe(false);
});
