// The compiler checks these types: `npm run check` compiles this file. A line below `@ts-expect-error` must not compile.
import { describe, expectTypeOf, test } from 'vitest';
import { type Run, startRun, type Traceable, traceable, traced, withTrace } from '#src/index.ts';

const fail = (): never => {
  throw new Error('never called');
};

test('withTrace has the type of the result', () => {
  expectTypeOf(withTrace('job', () => 1)).toEqualTypeOf<number>();
  expectTypeOf(withTrace('job', async () => 'x')).toEqualTypeOf<Promise<string>>();
  // @ts-expect-error -- the function receives no argument
  () => withTrace('job', (_job: string) => 1);
});

describe('a traced function has the type of its function, with', () => {
  test('optional and rest parameters', () => {
    const fn = (_a: string, _b?: number, ..._rest: boolean[]): Date => new Date(0);
    expectTypeOf(traceable(fn)).toEqualTypeOf<Traceable<typeof fn>>();
    expectTypeOf(traceable(fn)).toExtend<typeof fn>();
    const wrapped = traceable(fn, { name: 'fn' });
    expectTypeOf(wrapped).returns.toEqualTypeOf<Date>();
    expectTypeOf(wrapped).parameters.toEqualTypeOf<[_a: string, _b?: number | undefined, ..._rest: boolean[]]>();
    // @ts-expect-error -- a number is not a string
    () => wrapped(1);
  });

  test('generics and their constraints', () => {
    const first = traceable(<Item extends { id: string }>(items: readonly Item[]): Item | undefined => items[0]);
    expectTypeOf(first([{ id: 'a', size: 1 }])).toEqualTypeOf<{ id: string; size: number } | undefined>();
    // @ts-expect-error -- the constraint applies
    () => first([{ size: 1 }]);
  });

  test('the `this` parameter', () => {
    const wrapped = traceable(function (this: { count: number }, by: number) {
      return this.count + by;
    });
    expectTypeOf(wrapped).thisParameter.toEqualTypeOf<{ count: number }>();
    // @ts-expect-error -- `this` is missing
    () => wrapped(1);
  });

  test('generators', () => {
    const plain = traceable(function* (): Generator<string, number, boolean> {
      yield 'a';
      return 1;
    });
    expectTypeOf(plain).returns.toEqualTypeOf<Generator<string, number, boolean>>();
    const asynchronous = traceable(async function* () {
      yield 1;
    });
    expectTypeOf(asynchronous).returns.toEqualTypeOf<AsyncGenerator<number, void, unknown>>();
  });

  test('properties, subclasses of Promise, type guards, never', () => {
    class Api<Value> extends Promise<Value> {
      withResponse(): string {
        return '';
      }
    }
    const fn = Object.assign((): Api<number> => new Api(() => {}), { help: 'text' });
    expectTypeOf(traceable(fn)).toExtend<typeof fn>();
    expectTypeOf(traceable(fn)).returns.toEqualTypeOf<Api<number>>();
    expectTypeOf(traceable(fn).help).toEqualTypeOf<string>();
    expectTypeOf(
      traceable((value: unknown): value is string => typeof value === 'string'),
    ).guards.toEqualTypeOf<string>();
    expectTypeOf(traceable((): never => fail())).returns.toBeNever();
  });

  test('a method `with`, which returns the function and accepts the options of a call', () => {
    const fn = <Item>(items: Item[]): Item | undefined => items[0];
    const one = traceable(fn).with({ id: '0195c0de-0000-7000-8000-000000000000', tags: ['a'], enabled: true });
    expectTypeOf(one).toEqualTypeOf<typeof fn>();
    expectTypeOf(one([1])).toEqualTypeOf<number | undefined>();
    // @ts-expect-error -- not an option of a call
    () => traceable(fn).with({ inputs: () => ({}) });
  });

  test('only functions accepted', () => {
    // @ts-expect-error -- not a function
    () => traceable({});
    // @ts-expect-error -- a class cannot be called
    () => traceable(class {});
    // @ts-expect-error -- text is not a function
    () => traceable('fn');
  });
});

describe('options', () => {
  test('have callbacks with the types of the arguments and the result', () => {
    traceable((_question: string, _limit: number) => ({ answer: 1 }), {
      inputs: (args) => {
        expectTypeOf(args).toEqualTypeOf<[_question: string, _limit: number]>();
        return { question: args[0] };
      },
      outputs: (value) => {
        expectTypeOf(value).toEqualTypeOf<{ answer: number }>();
        return value;
      },
    });
  });

  test('have a callback `stream` that receives the result, and hooks that receive the run', () => {
    traceable(async (_: string) => ({ stream: [1].values(), id: 'a' }), {
      stream: (result) => {
        expectTypeOf(result.id).toEqualTypeOf<string>();
        return result.stream;
      },
      onStart: (run) => expectTypeOf(run.metadata).toEqualTypeOf<Record<string, unknown>>(),
      onEnd: (run: Run) => run.set({ tags: ['a'] }),
    });
    // @ts-expect-error -- a traced function starts when it is called
    () => traceable(() => 1, { startTime: 0 });
  });

  test('have a callback `outputs` that receives the value of a promise or the chunks of a generator', () => {
    traceable(async () => 'text', {
      outputs: (value) => {
        expectTypeOf(value).toEqualTypeOf<string>();
        return { length: value.length };
      },
    });
    const dates = async function* (): AsyncGenerator<Date> {
      yield new Date(0);
    };
    traceable(dates, {
      outputs: (chunks) => {
        expectTypeOf(chunks).toEqualTypeOf<Date[]>();
        return { chunks };
      },
      aggregate: (chunks) => {
        expectTypeOf(chunks).toEqualTypeOf<unknown[]>();
        return chunks.length;
      },
    });
  });
});

describe('@traced', () => {
  test('accepts members of any signature and keeps their types', () => {
    class Service<Item> {
      @traced
      plain(_a: string, _b?: number): Date {
        return new Date(0);
      }

      @traced({ runType: 'tool' })
      generic<Value extends object>(value: Value): Value {
        return value;
      }

      @traced()
      async own(item: Item): Promise<Item> {
        return item;
      }

      @traced
      bound(this: Service<Item>): this is Service<string> {
        return true;
      }

      @traced
      *chunks(items: Item[]): Generator<Item, number> {
        yield* items;
        return 1;
      }

      @traced
      static made(): number {
        return 1;
      }

      @traced
      #hidden(): number {
        return 1;
      }

      @traced
      get size(): number {
        return this.#hidden();
      }

      @traced
      set size(_size: number) {}

      @traced accessor unit = 'm';
      @traced handler = (value: Item): Item => value;
      @traced optional?: (value: Item) => Item;
      @traced({ name: 'static' }) static accessor shared = 1;
    }
    expectTypeOf<Service<Date>['plain']>().toEqualTypeOf<(_a: string, _b?: number) => Date>();
    expectTypeOf<Service<Date>['own']>().toEqualTypeOf<(item: Date) => Promise<Date>>();
    expectTypeOf<Service<Date>['size']>().toEqualTypeOf<number>();
    expectTypeOf<Service<Date>['unit']>().toEqualTypeOf<string>();
    expectTypeOf<Service<Date>['handler']>().toEqualTypeOf<(value: Date) => Date>();
  });

  test('does not accept classes and unknown options', () => {
    () => {
      // @ts-expect-error -- not a class member
      @traced
      class Whole {}
      // @ts-expect-error -- not a class member
      @traced({ name: 'whole' })
      class Optioned {}
      class Member {
        // @ts-expect-error -- an unknown option
        @traced({ retries: 3 })
        run() {}
      }
      return [Whole, Optioned, Member];
    };
  });
});

describe('recorded data', () => {
  interface Question {
    readonly q: string;
    page?: number;
  }
  class Ticket {
    readonly #secret = 1;
    id = 'a';

    get secret(): number {
      return this.#secret;
    }
  }
  const question: Question = { q: 'tea' };
  const ticket = new Ticket();

  test('may have the type of an interface or a class', () => {
    () => startRun({ name: 'ask', inputs: question, metadata: ticket });
    () => startRun({ name: 'ask', inputs: ticket, metadata: question });
    (run: Run) => {
      run.set({ inputs: question, outputs: question, metadata: question });
      run.event('asked', question);
      run.child({ name: 'ask', inputs: question }).end(question);
    };
    const inputs = (): Question => question;
    () => traceable(fail, { inputs, outputs: inputs, metadata: question }).with({ metadata: question });
  });

  test('is not a promise, a collection or text', () => {
    // @ts-expect-error -- a promise must be awaited
    () => startRun({ name: 'ask', inputs: Promise.resolve(question) });
    // @ts-expect-error -- a promise must be awaited
    (run: Run, later: PromiseLike<Question>) => run.event('asked', later);
    // @ts-expect-error -- a list has no keys
    () => startRun({ name: 'ask', inputs: [question] });
    // @ts-expect-error -- a map has no keys
    () => startRun({ name: 'ask', metadata: new Map([['q', 'tea']]) });
    // @ts-expect-error -- text is not an object
    () => startRun({ name: 'ask', inputs: 'tea' });
    // @ts-expect-error -- a list has no keys
    () => traceable(fail, { outputs: () => [1] });
  });
});
