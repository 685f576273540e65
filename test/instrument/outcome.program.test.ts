import { AsyncLocalStorage, createHook, executionAsyncId, executionAsyncResource } from 'node:async_hooks';
import { describe, expect, onTestFinished, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { gate } from '../support/gate.ts';
import { record } from './recorder.ts';
import { type Program, runProgram } from './run-program.ts';

/** A thenable that starts its work when `then` is called, like a query builder. */
class Query {
  readonly #answer: () => unknown;
  asked = 0;

  constructor(answer: () => unknown = () => 'rows') {
    this.#answer = answer;
  }

  // biome-ignore lint/suspicious/noThenProperty: the test needs a thenable.
  then<A, B>(onFulfilled?: (value: unknown) => A, onRejected?: (error: unknown) => B): Promise<A | B> {
    this.asked++;
    return new Promise((resolve) => resolve(this.#answer())).then(onFulfilled, onRejected);
  }
}

/** A promise with helpers, like the promises of SDK clients. */
class ApiPromise<Value> extends Promise<Value> {
  withResponse(): string {
    return 'response';
  }
}

describe('a native promise', () => {
  test('keeps properties that the application has added', async () => {
    record();
    const cancel = () => 'cancelled';
    const key = Symbol('key');
    const promise = Object.defineProperty(Object.assign(Promise.resolve(1), { cancel, [key]: 1 }), 'hidden', {
      value: 2,
    });
    const result = traceable(() => promise)() as typeof promise & { hidden: number };
    expect(result).not.toBe(promise);
    expect([result.cancel, result[key], result.hidden]).toEqual([cancel, 1, 2]);
    expect(Object.keys(result)).toEqual(['cancel']);
  });

  test('is replaced by a promise with its own async id and context', async () => {
    record();
    const resources = new Map<number, object>();
    const hook = createHook({ init: (id, _type, _trigger, resource) => resources.set(id, resource) }).enable();
    onTestFinished(() => void hook.disable());
    const user = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const outputs = () => {
      seen.push(user.getStore(), resources.get(executionAsyncId()) === executionAsyncResource());
      return {};
    };
    const start = () => Object.assign(Promise.resolve(1), { id: 'x' });
    const call = traceable(() => user.run('callee', start), { outputs });
    await user.run('caller', () => call());
    expect(seen).toEqual(['caller', true]);
  });
});

describe('a cached native promise', () => {
  const makeCached = (load: () => Promise<unknown>) => {
    const promise = load();
    return traceable(() => promise, { name: 'cached' });
  };

  test('is the same promise for all callers and ends the run of each call', async () => {
    const recorder = record();
    const wait = gate<string>();
    const cached = makeCached(() => wait);
    const [first, second] = [cached(), cached()];
    expect(second).toBe(first);
    wait.open('value');
    expect(await second).toBe('value');
    expect(await cached()).toBe('value');
    expect(cached()).toBe(first);
    await first;
    expect(recorder.runs).toHaveLength(4);
    expect(recorder.runs.filter((run) => run.outputs?.outputs === 'value' && run.end_time !== undefined)).toHaveLength(
      4,
    );
  });

  test('causes one unhandled rejection if no caller handles it', async () => {
    const recorder = record();
    const unhandled = unhandledRejections();
    const cached = makeCached(() => Promise.reject(new TypeError('lost')));
    cached();
    await expect(cached()).rejects.toThrow('lost');
    cached();
    expect(await unhandled()).toEqual([]);
    const ignored = makeCached(() => Promise.reject(new TypeError('lost')));
    ignored();
    ignored();
    expect(await unhandled()).toEqual([new TypeError('lost')]);
    expect(recorder.runs.map(({ error }) => error?.split('\n')[0])).toEqual(Array(5).fill('TypeError: lost'));
  });
});

describe('a subclass of Promise', () => {
  test('is returned unchanged, with its helpers', async () => {
    const recorder = record();
    const promise = ApiPromise.resolve('text') as ApiPromise<string>;
    const result = traceable(() => promise)();
    expect(result).toBe(promise);
    expect(result).toBeInstanceOf(ApiPromise);
    expect(result.withResponse()).toBe('response');
    expect(Object.keys(result)).toEqual([]);
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    expect(await result).toBe('text');
    expect(recorder.runs[0]).toMatchObject({ outputs: { outputs: 'text' }, end_time: expect.any(String) });
  });

  test.each<[string, (promise: Promise<unknown>) => Promise<unknown>]>([
    ['then', (promise) => promise.then(undefined, (error) => error)],
    ['catch', (promise) => promise.catch((error) => error)],
    ['finally', (promise) => promise.finally(() => {}).catch((error) => error)],
    ['Promise.all', (promise) => Promise.all([promise]).catch((error) => error)],
  ])('rejects with the same error through %s', async (_, meet) => {
    const recorder = record();
    const error = new TypeError('lost');
    const result = traceable(() => ApiPromise.reject(error))();
    expect(await meet(result)).toBe(error);
    expect(recorder.runs[0]?.error).toMatch(/^TypeError: lost\n/);
  });
});

describe('a thenable', () => {
  test('is followed for its first 16 calls, and is a value for later calls', async () => {
    const recorder = record();
    const query = new Query();
    const cached = traceable(() => query, { outputs: () => ({ isDone: true }) });
    for (let call = 0; call < 12_000; call++) cached();
    const open = recorder.runs.filter((run) => !('end_time' in run));
    expect(open).toHaveLength(16);
    expect(await query).toBe('rows');
    expect(query.asked).toBe(1);
    expect(recorder.runs.every((run) => run.outputs?.isDone === true)).toBe(true);
  });

  const hostile = {
    'is frozen': Object.freeze(new Query()),
    'has a `then` that cannot be read': Object.defineProperty({}, 'then', {
      get() {
        throw new Error('unreadable');
      },
    }),
    'has a `then` that cannot be replaced': Object.defineProperty({}, 'then', { value: () => {} }),
    // biome-ignore lint/suspicious/noThenProperty: the test needs the property.
    'has a `then` that is not a function': { then: 'and then' },
    'refuses to be changed': new Proxy(new Query(), {
      defineProperty() {
        throw new Error('read-only');
      },
    }),
  };

  test.each(Object.entries(hostile))('that %s is returned unchanged, and its run ends with the call', (_, thenable) => {
    const recorder = record();
    const before = Object.getOwnPropertyDescriptor(thenable, 'then');
    expect(traceable(() => thenable)()).toBe(thenable);
    expect(Object.getOwnPropertyDescriptor(thenable, 'then')).toEqual(before);
    expect(recorder.runs[0]).toHaveProperty('end_time');
  });
});

describe('a thenable whose `catch` and `finally` do not call `then`', () => {
  /** Like a promise of an SDK, which parses the response on demand. */
  class Call {
    readonly #answer: () => Promise<unknown>;

    constructor(answer: () => Promise<unknown>) {
      this.#answer = answer;
    }

    // biome-ignore lint/suspicious/noThenProperty: the test needs a thenable.
    then(...callbacks: ((value: unknown) => unknown)[]): Promise<unknown> {
      return this.#answer().then(...callbacks);
    }

    catch(callback?: (error: unknown) => unknown): Promise<unknown> {
      return this.#answer().catch(callback);
    }

    finally(callback?: () => void): Promise<unknown> {
      return this.#answer().finally(callback);
    }
  }

  const error = new TypeError('lost');
  const [gives, fails] = [async () => 'rows', () => Promise.reject(error)];

  test.each<[string, () => Promise<unknown>, (call: Call) => Promise<unknown>, unknown]>([
    ['a value through await', gives, async (call) => call, 'rows'],
    ['a value through catch', gives, (call) => call.catch(() => 'never'), 'rows'],
    ['a value through finally', gives, (call) => call.finally(() => {}), 'rows'],
    ['an error through catch', fails, (call) => call.catch((caught) => caught), error],
    ['an error through catch without a callback', fails, (call) => call.catch().catch((caught) => caught), error],
    ['an error through finally', fails, (call) => call.finally(() => {}).catch((caught) => caught), error],
  ])('ends its run with %s', async (_, answer, meet, outcome) => {
    const recorder = record();
    let asked = 0;
    const call = new Call(() => {
      asked++;
      return answer();
    });
    const result = traceable(() => call)();
    expect(result).toBe(call);
    expect(asked).toBe(0);
    expect(recorder.runs[0]).not.toHaveProperty('end_time');
    expect(await meet(result)).toBe(outcome);
    expect(asked).toBe(1);
    expect(recorder.runs[0]).toHaveProperty('end_time');
    expect(recorder.runs[0]?.outputs).toEqual(outcome === error ? undefined : { outputs: 'rows' });
    expect(recorder.runs[0]?.error?.split('\n')[0]).toBe(outcome === error ? 'TypeError: lost' : undefined);
  });

  test('receives error filters unchanged, and ends its run with the error', async () => {
    const recorder = record();
    const seen: unknown[][] = [];
    class Filtering extends Call {
      override catch(...filtersAndCallback: unknown[]): Promise<unknown> {
        const callback = filtersAndCallback.pop() as (error: unknown) => unknown;
        seen.push(filtersAndCallback);
        return super.catch(callback);
      }
    }
    const call = traceable(() => new Filtering(fails));
    const byCode = { code: 'LOST' };
    expect(await call().catch(TypeError, RangeError, () => 'by class')).toBe('by class');
    expect(await call().catch(byCode, () => 'by property')).toBe('by property');
    expect(seen).toEqual([[TypeError, RangeError], [byCode]]);
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual(['TypeError: lost', 'TypeError: lost']);
  });

  test('does not record the error of a callback', async () => {
    const recorder = record();
    const ours = new Error('of the caller');
    const throws = () => {
      throw ours;
    };
    const call = traceable(() => new Call(fails));
    expect(
      await call()
        .catch(throws)
        .catch((caught) => caught),
    ).toBe(ours);
    expect(recorder.runs.map((run) => run.error?.split('\n')[0])).toEqual(['TypeError: lost']);
  });
});

test.each<[string, number, string, RegExp, string | undefined]>([
  ['an unhandled rejection', 1, '', /TypeError: lost/, 'TypeError: lost'],
  ['a rejection that is handled late', 0, 'unhandled lost\ncaught\nhandled\n', /^$/, 'TypeError: lost'],
  ['an unhandled rejection with text', 1, '', /reason "just text"/, 'just text'],
  ['an unhandled rejection of a subclass', 1, '', /TypeError: lost/, undefined],
  ['a rejection of a subclass with one callback', 0, 'unhandled lost\n', /^$/, 'TypeError: lost'],
  ['an unhandled step of an async generator', 0, 'unhandled lost\n', /^$/, 'TypeError: lost'],
  ['an unhandled error of a web stream', 1, '', /TypeError: torn/, 'TypeError: torn'],
  ['an unhandled error of a Node stream', 1, '', /TypeError: torn/, 'TypeError: torn'],
  ['an uncaught error', 1, '', /RangeError: thrown/, 'RangeError: thrown'],
  ['an uncaught error in a timer', 1, '', /RangeError: thrown/, 'RangeError: thrown'],
  ['an unhandled error with causes', 1, '', /Error: outer/, 'Error: outer'],
  ['an exit in the function', 7, '', /^$/, undefined],
  ['an exit code that the function sets', 9, '', /^$/, undefined],
  ['a promise that never settles', 0, '', /^$/, undefined],
])('a program ends in the same way with tracing after %s', async (way, code, stdout, stderr, error) => {
  const both = ['bare', 'traced'].map((mode) => runProgram('ends', [mode, way]));
  const [{ runs: none, ...bare }, { runs, ...traced }] = (await Promise.all(both)) as [Program, Program];
  expect(bare).toEqual({ code, signal: null, stdout, stderr: expect.stringMatching(stderr) });
  expect(traced).toEqual(bare);
  expect(none).toEqual([]);
  expect(runs.map((run) => run.error?.split('\n')[0])).toEqual([error]);
});
