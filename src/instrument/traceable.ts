import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreErrors, reportFailure } from '../base/guard.ts';
import { shared } from '../base/shared.ts';
import { types } from '../platform/node.ts';
import { captureIn, policyOf, type RunStart } from '../run/begin.ts';
import type { RunContext } from '../run/context/context.ts';
import { applyIn, currentContext, offToEnter } from '../run/context/current.ts';
import { placement } from '../run/context/placement.ts';
import { beginRun, type CallDescription, type Run } from '../run/run.ts';
import { areRunsMeasured } from '../run/run-meters.ts';
import { hiddenByEither } from '../run/run-options.ts';
import { sample } from '../run/sampling/sampling.ts';
import {
  type ArgumentsOf,
  callOptions,
  describeCall,
  type OutcomeOf,
  Plan,
  type PlanOptions,
  type TraceableOptions,
  traceableOptions,
  type WithOptions,
} from './plan.ts';
import { followPromise, followResult, followSteps, RunObserver } from './results/follow.ts';
import { followLazyGenerator } from './results/iterator.ts';
import { noObserver, type StreamObserver } from './results/observer.ts';

export type Callable = (...args: unknown[]) => unknown;

/** The type of a traced function: the original function's type plus the method `with`. */
export type Traceable<Fn> = Fn & {
  /**
   * Returns the function with other options, for example to set one run's id: `answer.with({ id })(question)`. `with`
   * adds to the existing tags and metadata, and replaces other options. If the original function already has a `with`
   * property, that property is kept.
   */
  with(options: WithOptions): Fn;
};

/**
 * Maps each wrapper to its original function and plan. If a function is wrapped twice, each call still records only one
 * run.
 */
const wrapped: WeakMap<object, { readonly fn: Callable; readonly plan: Plan }> = shared('wrapped', () => new WeakMap());

/**
 * Returns a function that records a run for each call to `fn`. The current run becomes the parent of the new run. The
 * returned function behaves like `fn`: it has the same results, errors, `this` and own properties. Synchronous
 * functions stay synchronous, and generators stay lazy. If tracing is off, a call takes at most 50 ns longer.
 *
 * If `fn` is already traced, the new tags and metadata are added, and other options are replaced. If `fn` is a class or
 * not a function, `traceable` logs a warning and returns `fn` unchanged.
 */
export function traceable<Fn extends CallableFunction>(
  fn: Fn,
  options?: TraceableOptions<ArgumentsOf<Fn>, OutcomeOf<Fn>>,
): Traceable<Fn> {
  const kind = uncallableKind(fn);
  if (kind !== undefined) {
    diagnostics.warnOnce(
      `traceable ${kind}`,
      `traceable(fn): expected a function, got ${kind}; the value is not traced.`,
    );
    return fn as Traceable<Fn>;
  }
  const known = wrapped.get(fn);
  const checked = traceableOptions(options);
  const plan = known?.plan.with(checked) ?? new Plan({ ...checked, name: checked.name ?? nameOf(fn) });
  const original = fn as unknown as Callable;
  return wrap(plan, known?.fn ?? original, original) as unknown as Traceable<Fn>;
}

/**
 * Calls `fn` in a new run with the given name, and returns what `fn` returns. The run starts its own trace, also inside
 * another run or an incoming request. Use `withTrace` for work that no request starts, for example a message from a
 * queue or a scheduled job. The result and errors are recorded as by `traceable`: a synchronous function stays
 * synchronous, and an error is recorded and thrown again.
 */
export function withTrace<Result>(name: string, fn: () => Result): Result {
  return traceable(fn, { name, root: true })();
}

/** Traces a function for an integration. Unlike `traceable`, does not validate the options. */
export function tracedBy(options: PlanOptions, fn: Callable): Callable {
  return wrap(new Plan(options), fn, fn);
}

/** Returns a wrapper for `fn` with the properties of `shown`, which is `fn` or an earlier wrapper. */
function wrap(plan: Plan, fn: Callable, shown: Callable): Callable {
  const wrapper = shapedLike(
    types.isGeneratorFunction(fn) ? tracedGenerator(fn, plan) : tracedFunction(fn, plan),
    shown,
  );
  if (wrapper === shown) return shown;
  wrapped.set(wrapper, { fn, plan });
  guard('traceable', () => {
    if ('with' in fn) return;
    const value = (options: unknown): Callable => wrap(plan.with(callOptions(options)), fn, wrapper);
    Object.defineProperty(wrapper, 'with', { configurable: true, writable: true, value });
  });
  return wrapper;
}

const AsyncFunctionPrototype: unknown = Object.getPrototypeOf(async () => {});

function tracedFunction(fn: Callable, plan: Plan): Callable {
  // An async function from another realm returns promises of that realm's `Promise` class.
  const isAsync = types.isAsyncFunction(fn) && Object.getPrototypeOf(fn) === AsyncFunctionPrototype;
  // `Reflect.construct` checks whether `fn` is a constructor without calling `fn`.
  if (ignoreErrors(() => Reflect.construct(Object, [], fn)) !== undefined) {
    return function traced(this: unknown, ...args: unknown[]): unknown {
      if (new.target !== undefined) return Reflect.construct(fn, args, new.target === traced ? fn : new.target);
      const prepared = prepare(plan, args);
      if (prepared !== undefined) return call(prepared, fn, this, args, isAsync);
      const off = offContext(plan);
      return off === undefined ? Reflect.apply(fn, this, args) : callOff(off, fn, this, args);
    };
  }
  // The wrapper is a method, because methods have no `prototype` and are not constructors.
  const wrapper = {
    traced(this: unknown, ...args: unknown[]): unknown {
      const prepared = prepare(plan, args);
      if (prepared !== undefined) return call(prepared, fn, this, args, isAsync);
      const off = offContext(plan);
      // Each further function would add a stack frame to every level of a recursion.
      return off === undefined ? Reflect.apply(fn, this, args) : callOff(off, fn, this, args);
    },
  };
  return wrapper.traced;
}

function call(prepared: PreparedRun, fn: Callable, self: unknown, args: unknown[], isAsync: boolean): unknown {
  const { options: plan } = prepared;
  const run = start(prepared);
  if (run === undefined) return Reflect.apply(fn, self, args);
  let result: unknown;
  try {
    result = applyIn(run.context, fn, self, args);
  } catch (thrown) {
    run.fail(thrown);
    throw thrown;
  }
  if (!run.isOpen) {
    // Observes a generator even if its run is not recorded, because each step must run in the run's context.
    return types.isGeneratorObject(result) ? followResult(result, run, plan) : result;
  }
  return isAsync ? followPromise(result as Promise<unknown>, run, plan) : followResult(result, run, plan);
}

/** Traces a generator function. The call captures the inputs and the parent. The first `next()` starts the run. */
function tracedGenerator(fn: Callable, plan: Plan): Callable {
  const wrapper = {
    traced(this: unknown, ...args: unknown[]): unknown {
      const prepared = prepare(plan, args);
      if (prepared === undefined) {
        const off = offContext(plan);
        return off === undefined ? Reflect.apply(fn, this, args) : callOff(off, fn, this, args);
      }
      let generator: object;
      try {
        generator = Reflect.apply(fn, this, args) as object;
      } catch (thrown) {
        // A parameter's default value threw an error, so there is no generator.
        start(prepared)?.fail(thrown);
        throw thrown;
      }
      followLazyGenerator(generator, () => {
        const run = start(prepared);
        return run && new RunObserver(run, plan);
      });
      return generator;
    },
  };
  return wrapper.traced;
}

interface PreparedRun extends RunStart<Plan> {
  readonly description: CallDescription | undefined;
}

function prepare(given: Plan, args: unknown[]): PreparedRun | undefined {
  if (given.enabled === false) return undefined;
  try {
    let described: CallDescription | undefined;
    const isRecorded = (): boolean => {
      if (given.describe !== undefined) described = describeCall(given, args);
      return given.describe === undefined || described !== undefined;
    };
    const { parent, sink } = placement(given, currentContext(given.exporter), isRecorded);
    if (sink === undefined) return undefined;
    const called = given.id === undefined ? given : given.forCall();
    const sampling = sample(called, parent, sink);
    const { isSampled } = sampling;
    const isOpen = isSampled || areRunsMeasured();
    if (!isOpen && parent?.id !== undefined) {
      sink.skip();
      return undefined;
    }
    // If sampling leaves out a trace, its first run still starts: the run's context excludes all nested runs.
    const isShown = isOpen && called.describe !== undefined;
    const description = isShown ? (described ?? describeCall(called, args)) : undefined;
    if (isShown && description === undefined) return undefined;
    const call = description && { source: called.method ?? called, inputs: () => description.inputs, isSender: true };
    const options = description === undefined ? called : describedPlan(called, description);
    const capture = captureIn(options, parent, sink, call !== undefined);
    const isCaptured = isSampled && parent?.refused !== true;
    const inputs = isCaptured
      ? options.encodeInputs(args, policyOf(capture, sampling.hold !== undefined), description)
      : undefined;
    const isIdGiven = called.id !== undefined;
    return { options, parent, sink, sampling, capture, inputs, description, call, isIdGiven };
  } catch (thrown) {
    reportFailure('traceable', thrown);
    return undefined;
  }
}

function describedPlan(plan: Plan, { name = plan.name, hiding }: CallDescription): Plan {
  if (name === plan.name && hiding === undefined) return plan;
  return plan.with({ name, hiding: hiddenByEither(plan.hiding, hiding) });
}

function start(prepared: PreparedRun): Run | undefined {
  try {
    return beginRun(prepared, prepared.description);
  } catch (thrown) {
    reportFailure('traceable', thrown);
    return undefined;
  }
}

/**
 * Returns the context for a call without a run, in which nothing is recorded. Undefined if the call's own options do not
 * turn tracing off: nested runs are then recorded as they would be without the call.
 */
function offContext({ enabled, exporter }: Plan): RunContext | undefined {
  return enabled === false || exporter?.isOff === true ? guard('traceable', offToEnter) : undefined;
}

function callOff(context: RunContext, fn: Callable, self: unknown, args: unknown[]): unknown {
  const step: StreamObserver['step'] = (method, owner, given) => applyIn(context, method, owner, given);
  return followSteps(applyIn(context, fn, self, args), { ...noObserver, step });
}

/** Copies the prototype, own properties and `reflect-metadata` entries from `fn` to the wrapper. */
export function shapedLike(wrapper: Callable, fn: Callable): Callable {
  return (
    guard('traceable', () => {
      Object.setPrototypeOf(wrapper, Object.getPrototypeOf(fn));
      for (const key of Reflect.ownKeys(fn)) {
        Reflect.defineProperty(wrapper, key, Object.getOwnPropertyDescriptor(fn, key) as PropertyDescriptor);
      }
      // Bound functions have no `prototype`. The wrapper's `prototype` cannot be deleted, so it is set to undefined.
      if (Object.hasOwn(wrapper, 'prototype') && !Object.hasOwn(fn, 'prototype')) wrapper.prototype = undefined;
      copyMetadata(fn, wrapper);
      return wrapper;
    }) ?? fn
  );
}

interface ReflectMetadata {
  getOwnMetadataKeys?(target: object): Iterable<unknown>;
  getOwnMetadata(key: unknown, target: object): unknown;
  defineMetadata(key: unknown, value: unknown, target: object): void;
}

/** Frameworks such as NestJS store routes and guards in a function's `reflect-metadata` entries. */
function copyMetadata(from: Callable, to: Callable): void {
  const reflect = Reflect as unknown as ReflectMetadata;
  for (const key of reflect.getOwnMetadataKeys?.(from) ?? []) {
    reflect.defineMetadata(key, reflect.getOwnMetadata(key, from), to);
  }
}

function nameOf(fn: CallableFunction): string {
  const name: unknown = guard('traceable', () => fn.name);
  return typeof name === 'string' && name !== '' ? name : 'anonymous';
}

export function uncallableKind(value: unknown): string | undefined {
  if (typeof value !== 'function') return value === null ? 'null' : typeof value;
  // The source of a method named `class` also starts with `class`, but methods have no `prototype`.
  const isClass = /^class\b/.test(Function.prototype.toString.call(value)) && Object.hasOwn(value, 'prototype');
  return isClass ? 'a class' : undefined;
}
