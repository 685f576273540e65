import { types } from 'node:util';
import { enterContext } from '../run/context.ts';
import type { Run } from '../run/run.ts';
import { Chunks } from './chunks.ts';
import type { Plan } from './plan.ts';

type AnyGenerator = Generator | AsyncGenerator;
type Step = (...args: unknown[]) => IteratorResult<unknown> | Promise<IteratorResult<unknown>>;

export function isGenerator(value: object): value is AnyGenerator {
  return types.isGeneratorObject(value);
}

/**
 * Follows a generator object of either kind without changing it: the same object, its three methods replaced on the
 * instance. `start` is called at the first `next()`; every step runs in the context of the run; the run ends when the
 * generator does, by running out, by `return` (a `break`), or by an error.
 */
export function followGenerator(generator: AnyGenerator, start: () => Run | undefined, plan: Plan): AnyGenerator {
  let follower: Follower | undefined;
  let isBegun = false;
  for (const method of ['next', 'return', 'throw'] as const) {
    const step = generator[method] as Step;
    Reflect.defineProperty(generator, method, {
      configurable: true,
      writable: true,
      value: function (this: unknown, ...args: unknown[]): unknown {
        if (!isBegun) {
          isBegun = true;
          // A generator that is returned or thrown into before its first step never runs at all.
          const run = method === 'next' ? start() : undefined;
          follower = run && new Follower(run, plan);
        }
        return follower === undefined ? Reflect.apply(step, this, args) : follower.step(step, this, args);
      },
    });
  }
  return generator;
}

class Follower {
  readonly #run: Run;
  readonly #chunks: Chunks;

  constructor(run: Run, plan: Plan) {
    this.#run = run;
    this.#chunks = new Chunks(plan, run);
  }

  step(step: Step, generator: unknown, args: unknown[]): unknown {
    let result: ReturnType<Step>;
    try {
      result = enterContext(
        this.#run.context,
        Reflect.apply<unknown, unknown[], ReturnType<Step>>,
        step as (this: unknown, ...args: unknown[]) => ReturnType<Step>,
        generator,
        args,
      );
    } catch (thrown) {
      this.#run.fail(thrown);
      throw thrown;
    }
    if (!(result instanceof Promise)) return this.#took(result);
    return result.then(
      (settled) => this.#took(settled),
      (error) => {
        this.#run.fail(error);
        throw error;
      },
    );
  }

  #took(result: IteratorResult<unknown>): IteratorResult<unknown> {
    if (result.done === true) this.#chunks.end();
    else this.#chunks.push(result.value);
    return result;
  }
}
