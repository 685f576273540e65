import { describe, expect, test } from 'vitest';
import { type RunOptions, runOptionChecks, usableOptions } from '#src/run/run-options.ts';
import { startRun } from '#src/run/start-run.ts';
import { revokedProxy } from '../base/hostile.ts';
import { logLines } from '../support/log-lines.ts';
import { makeSink } from './memory-sink.ts';

const check = (given: unknown) => usableOptions<RunOptions>('startRun', given, runOptionChecks);

describe('valid options', () => {
  test('are accepted unchanged, without a log line', () => {
    const lines = logLines();
    const given: RunOptions = {
      name: 'work',
      runType: 'anything',
      tags: [],
      metadata: {},
      project: 'chat',
      id: 'F47AC10B-58CC-4372-A567-0E02B2C3D479',
      inputs: {},
      startTime: new Date(0),
      referenceExampleId: 'F47AC10B-58CC-4372-A567-0E02B2C3D479',
      onStart: () => {},
      onEnd: () => {},
      root: false,
      exporter: makeSink(),
    };
    expect(check(given)).toEqual(given);
    expect(lines).toEqual([]);
  });

  test('may be undefined, which means missing', () => {
    const lines = logLines();
    expect(check({ name: 'work', tags: undefined, unknown: undefined })).toEqual({ name: 'work' });
    expect(check(undefined)).toEqual({});
    expect(lines).toEqual([]);
  });
});

describe('an invalid option', () => {
  const uuid = '`id` to be a UUID, or the result of runIdFrom(key)';
  test.each<[string, unknown, string]>([
    ['name', '', '`name` to be a non-empty string'],
    ['name', 5, '`name` to be a non-empty string'],
    ['runType', '', '`runType` to be a non-empty string'],
    ['tags', 'a', '`tags` to be a list of at most 1000 strings'],
    ['tags', ['a', 1], '`tags` to be a list of at most 1000 strings'],
    ['metadata', 'a', '`metadata` to be an object'],
    ['metadata', null, '`metadata` to be an object'],
    ['project', '', "`project` to be a project's name, or an object with its `id`"],
    ['id', 'f47ac10b58cc4372a5670e02b2c3d479', uuid],
    ['id', 'mine', uuid],
    ['id', 1, uuid],
    ['inputs', 'text', '`inputs` to be an object'],
    ['onStart', {}, '`onStart` to be a function'],
    ['onEnd', null, '`onEnd` to be a function'],
    ['root', 'true', '`root` to be true or false'],
    ['exporter', {}, '`exporter` to be the result of createExporter()'],
    ['exporter', null, '`exporter` to be the result of createExporter()'],
    ['exporter', { start: () => true }, '`exporter` to be the result of createExporter()'],
    [
      'exporter',
      { start: () => true, end: () => {}, capture: null },
      '`exporter` to be the result of createExporter()',
    ],
    ['exporter', { start: () => true, capture: {} }, '`exporter` to be the result of createExporter()'],
  ])('`%s` is reported in one line, once, and ignored', (key, value, expected) => {
    const lines = logLines();
    const given = { name: 'work', project: 'chat', [key]: value };
    const { [key]: _, ...rest } = given;
    expect([check(given), check(given)]).toEqual([rest, rest]);
    expect(lines).toEqual([`warn: startRun: expected ${expected}; the option is ignored.`]);
  });

  test('with an unknown name is reported, also with a name of `Object.prototype`', () => {
    const lines = logLines();
    expect(check({ name: 'work', tag: 'a', toString: 1 })).toEqual({ name: 'work' });
    expect(check({ tag: 'a' })).toEqual({});
    expect(lines).toEqual([
      'warn: startRun: unknown option `tag` is ignored; use `tags`.',
      'warn: startRun: unknown option `toString` is ignored.',
    ]);
  });

  test('does not affect others, even if it cannot be read', () => {
    const lines = logLines();
    const given = {
      get tags() {
        throw new Error('no');
      },
      metadata: revokedProxy(),
      name: 'work',
    };
    expect(check(given)).toMatchObject({ name: 'work' });
    expect(lines).toEqual([
      'warn: startRun: expected `tags` to be a list of at most 1000 strings; the option is ignored.',
    ]);
  });
});

test.each([
  [999, true],
  [1_000, true],
  [1_001, false],
  [2 ** 32 - 1, false],
])('a list of %i tags is accepted: %s', (length, expected) => {
  const lines = logLines();
  const tags = length > 2_000 ? Object.assign([], { length }) : Array.from({ length }, () => 'a');
  expect('tags' in check({ tags })).toBe(expected);
  if (!expected) expect(lines).toEqual([expect.stringContaining('at most 1000 strings')]);
});

describe('options of another type', () => {
  test.each([
    [['a', 'b'], 'a list'],
    ['work', 'string'],
    [5, 'number'],
    [null, 'null'],
    [() => {}, 'function'],
  ])('%s are reported in one line, once', (given, kind) => {
    const lines = logLines();
    expect([check(given), check(given)]).toEqual([{}, {}]);
    expect(lines).toEqual([
      `warn: startRun: expected the options to be an object, got ${kind}; the options are ignored.`,
    ]);
  });

  test('that cannot be read are reported in one line, once', () => {
    const lines = logLines();
    expect([check(revokedProxy()), check(revokedProxy())]).toEqual([{}, {}]);
    expect(lines).toEqual([expect.stringMatching(/^warn: startRun failed, the application is not affected: /)]);
  });
});

test('inherited properties are not options', () => {
  const lines = logLines();
  const exporter = makeSink();
  const inherited = { name: 'evil', tags: ['evil'], id: 'evil', root: true };
  startRun(Object.assign(Object.create(inherited), { exporter, metadata: { a: 1 } }) as RunOptions).end();
  expect(exporter.records()[0]).toMatchObject({ name: 'run', extra: { metadata: { a: 1 } } });
  expect(exporter.records()[0]).not.toHaveProperty('tags');
  expect(lines).toEqual([]);
});

test('a run without a valid name is named `run`', () => {
  logLines();
  expect([startRun({} as RunOptions).name, startRun({ name: '' }).name, startRun({ name: 'a' }).name]).toEqual([
    'run',
    'run',
    'a',
  ]);
});
