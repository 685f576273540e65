import { types } from 'node:util';
import { guard } from '../base/guard.ts';
import { enterContext } from '../run/context.ts';
import { Run } from '../run/run.ts';
import { Chunks } from './chunks.ts';
import type { Plan } from './plan.ts';

type AnyGenerator = Generator | AsyncGenerator;
type Step = (...args: unknown[]) => IteratorResult<unknown> | Promise<IteratorResult<unknown>>;

export function isGenerator(value: unknown): value is AnyGenerator {
  return types.isGeneratorObject(value);
}

/**
 * Follows a generator object of either kind without changing it: the same object, its three methods replaced on the
 * instance. A run that has not begun is started at the first `next()`; every step runs in the context of the run; the
 * run ends when the generator does, by running out, by `return` (a `break`), or by an error.
 */
export function followGenerator(
  generator: AnyGenerator,
  begun: Run | (() => Run | undefined),
  plan: Plan,
): AnyGenerator {
  if (begun instanceof Run && !canFollow(generator, plan)) begun.end();
  else guard('traceable', () => replaceMethods(generator, begun, plan));
  return generator;
}

/** The functions by which a generator was handed out: one that comes again from the same is followed already. */
const followers = new WeakMap<object, WeakSet<Plan>>();

function canFollow(generator: AnyGenerator, plan: Plan): boolean {
  const plans = followers.get(generator) ?? new WeakSet();
  if (plans.has(plan) || !Object.isExtensible(generator)) return false;
  followers.set(generator, plans.add(plan));
  return true;
}

function replaceMethods(generator: AnyGenerator, begun: Run | (() => Run | undefined), plan: Plan): void {
  let follower = begun instanceof Run ? new Follower(begun, plan) : undefined;
  let start = begun instanceof Run ? undefined : begun;
  for (const method of ['next', 'return', 'throw'] as const) {
    const step = generator[method] as Step;
    Reflect.defineProperty(generator, method, {
      configurable: true,
      writable: true,
      value: function (this: unknown, ...args: unknown[]): unknown {
        if (start !== undefined) {
          // A generator that is returned or thrown into before its first step never runs at all.
          const run = method === 'next' ? start() : undefined;
          follower = run && new Follower(run, plan);
          start = undefined;
        }
        return follower === undefined ? Reflect.apply(step, this, args) : follower.step(step, this, args);
      },
    });
  }
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
      this.#failed(thrown);
      throw thrown;
    }
    if (!(result instanceof Promise)) return this.#took(result);
    return result.then(
      (settled) => this.#took(settled),
      (error) => {
        this.#failed(error);
        throw error;
      },
    );
  }

  #failed(thrown: unknown): void {
    guard('traceable', () => this.#chunks.fail(thrown));
  }

  #took(result: IteratorResult<unknown>): IteratorResult<unknown> {
    // `yield*` hands on the results of any iterator as they are, getters included.
    guard('traceable', () => {
      if (result.done === true) this.#chunks.end();
      else this.#chunks.push(result.value);
    });
    return result;
  }
}
