// `npm run check` compiles this file, so that a wrong type fails the check.
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { createReceiver, StoredRun } from '#src/receiver.ts';
import {
  type AssistantFunction,
  type ExpectedRun,
  matchers,
  type Recorded,
  type RunMatchers,
  type RunRecorder,
} from '#src/testing.ts';
import '../support/run-matchers.ts';

describe('with the declaration of the docs', () => {
  test('`expect.extend` accepts the matcher and adds it to `expect`', () => {
    expectTypeOf(expect.extend).toBeCallableWith(matchers);
    expectTypeOf(expect([]).toHaveRun).toEqualTypeOf<RunMatchers['toHaveRun']>();
    expectTypeOf(expect([]).not.toHaveRun).toEqualTypeOf<RunMatchers['toHaveRun']>();
    expectTypeOf(expect(Promise.resolve([])).resolves.toHaveRun).returns.toEqualTypeOf<Promise<void>>();
  });

  test('asymmetric matchers may replace any value', () => {
    expectTypeOf(expect([]).toHaveRun).toBeCallableWith({
      name: expect.stringContaining('a'),
      outputs: expect.objectContaining({ a: expect.anything() }),
      tags: expect.arrayContaining(['a']),
      parent: { name: expect.any(String), error: undefined },
    });
  });

  test('a misspelled field is a type error', () => {
    // @ts-expect-error -- the field is `outputs`
    () => expect([]).toHaveRun({ name: 'a', output: {} });
  });
});

test('the matcher can be declared with another result', () => {
  expectTypeOf<RunMatchers<Promise<void>>['toHaveRun']>().toEqualTypeOf<
    (expected: string | ExpectedRun) => Promise<void>
  >();
});

test('recorders, runs and the runs of a receiver are `Recorded`', () => {
  expectTypeOf<RunRecorder>().toExtend<Recorded>();
  expectTypeOf<RunRecorder['runs']>().toExtend<Recorded>();
  expectTypeOf<ReturnType<RunRecorder['run']>>().toExtend<Recorded>();
  expectTypeOf<StoredRun[]>().toExtend<Recorded>();
  expectTypeOf<Awaited<ReturnType<typeof createReceiver>>>().not.toExtend<Recorded>();
});

test('an assistant may yield objects of an interface', () => {
  interface State {
    readonly messages: readonly string[];
  }
  expectTypeOf<() => AsyncGenerator<State>>().toExtend<AssistantFunction>();
  expectTypeOf<() => AsyncGenerator<string>>().not.toExtend<AssistantFunction>();
});
