// What TypeScript says of these lines is the test: `npm run check` compiles this file.
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { createReceiver, StoredRun } from '../../src/receiver.ts';
import { type ExpectedRun, matchers, type Recorded, type RunMatchers, type RunRecorder } from '../../src/testing.ts';
import '../support/run-matchers.ts';

describe('with the declaration of the docs', () => {
  test('`expect.extend` takes the matchers, and `expect` has them', () => {
    expectTypeOf(expect.extend).toBeCallableWith(matchers);
    expectTypeOf(expect([]).toHaveRun).toEqualTypeOf<RunMatchers['toHaveRun']>();
    expectTypeOf(expect([]).not.toMatchTrace).toEqualTypeOf<RunMatchers['toMatchTrace']>();
    expectTypeOf(expect(Promise.resolve([])).resolves.toHaveRun).returns.toEqualTypeOf<Promise<void>>();
  });

  test('asymmetric matchers stand for any value', () => {
    expectTypeOf(expect([]).toHaveRun).toBeCallableWith({
      name: expect.stringContaining('a'),
      outputs: expect.objectContaining({ a: expect.anything() }),
      tags: expect.arrayContaining(['a']),
      parent: { name: expect.any(String), error: undefined },
    });
  });

  test('a mistyped field is an error', () => {
    // @ts-expect-error -- it is `outputs`
    () => expect([]).toHaveRun({ name: 'a', output: {} });
    // @ts-expect-error -- `times` is for toHaveRun
    () => expect([]).toMatchTrace({ name: 'a', times: 1 });
    // @ts-expect-error -- a run of a tree has a name
    () => expect([]).toMatchTrace({ children: [] });
  });
});

test('the matchers can be declared for what gives back something else', () => {
  expectTypeOf<RunMatchers<Promise<void>>['toHaveRun']>().toEqualTypeOf<
    (expected: string | ExpectedRun) => Promise<void>
  >();
});

test('recorders, runs and what a receiver gives are all recorded', () => {
  expectTypeOf<RunRecorder>().toExtend<Recorded>();
  expectTypeOf<RunRecorder['runs']>().toExtend<Recorded>();
  expectTypeOf<ReturnType<RunRecorder['run']>>().toExtend<Recorded>();
  expectTypeOf<StoredRun[]>().toExtend<Recorded>();
  expectTypeOf<Awaited<ReturnType<typeof createReceiver>>>().not.toExtend<Recorded>();
});
