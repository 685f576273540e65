import { types } from 'node:util';
import { guard } from '../base/guard.ts';
import { applyInContext, contextTo, currentContext, type RunContext, sinkOf } from '../run/context.ts';
import type { RunSink } from '../run/sink.ts';
import { followIterator } from './iterator.ts';
import type { Method } from './own-method.ts';
import type { Plan } from './plan.ts';
import type { Reading } from './reading.ts';

/**
 * Calls a function that has no run. What it starts is recorded as if it were not wrapped, unless it was given an exporter with
 * tracing off: that takes all below the function, and shows it to nobody.
 */
export function callWithoutRun(fn: Method, plan: Plan, self: unknown, args: unknown[]): unknown {
  const context = plan.exporter && guard('traceable', () => contextToHide(plan));
  if (context === undefined) return Reflect.apply(fn, self, args);
  const result: unknown = applyInContext(context, fn, self, args);
  if (types.isGeneratorObject(result)) followIterator(result, new HiddenReading(context));
  return result;
}

const contexts = new WeakMap<RunSink, RunContext>();

/**
 * The context of what goes to an exporter with tracing off, one for all calls. It has to be entered, dear as that is, where
 * runs would be recorded otherwise; nowhere else, so that tracing that is off altogether costs nothing.
 */
function contextToHide({ exporter: off, enabled }: Plan): RunContext | undefined {
  if (off?.isOff !== true || enabled === false) return undefined;
  const around = sinkOf(currentContext());
  if (around === undefined || around.isOff === true) return undefined;
  const context = contexts.get(off) ?? contextTo(off, undefined);
  contexts.set(off, context);
  return context;
}

/** Takes the steps of a generator in a context, and tells nobody of them. */
class HiddenReading implements Reading {
  isStepping = false;
  readonly #context: RunContext;

  constructor(context: RunContext) {
    this.#context = context;
  }

  step(method: Method, self: unknown, args: unknown[]): unknown {
    this.isStepping = true;
    try {
      return applyInContext(this.#context, method, self, args);
    } finally {
      this.isStepping = false;
    }
  }

  took(): void {}

  end(): void {}

  fail(): void {}

  cancel(): void {}

  watch(): void {}

  leaveUnseen(): void {}
}
