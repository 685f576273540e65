import { diagnostics } from '../../base/diagnostics.ts';
import { forgetOldest } from '../../base/forget-oldest.ts';
import { guard } from '../../base/guard.ts';
import { prepareRun } from '../begin.ts';
import { isOff, type RunContext, remoteContext } from '../context/context.ts';
import { currentContext, insideStep } from '../context/current.ts';
import { sinkOf } from '../context/inherited.ts';
import type { Fields } from '../fields.ts';
import { beginRun, type CallDescription, type Run } from '../run.ts';
import type { StartOptions } from '../run-options.ts';
import type { RunSink } from '../sink.ts';
import type { CallStart } from './calls.ts';

/** Maximum number of ids of open steps, and of ended steps whose contexts are kept. */
const STEPS_MAX = 10_000;

/** An open step of an SDK, for example an agent, a tool or a model call. */
export interface OpenStep<Id, State> {
  readonly id: Id;
  /** Undefined if the step is off, or only groups other steps. */
  readonly run: Run | undefined;
  readonly below: RunContext | undefined;
  readonly state: State;
}

/** What an adapter knows of a step that starts. */
export interface StepStart<State> {
  readonly state: State;
  /** Whether the step only groups other steps, and has no run. */
  readonly isGroup?: boolean | undefined;
  readonly inputs?: Fields | (() => Fields | undefined) | undefined;
  readonly call?: CallStart | undefined;
  readonly description?: Omit<CallDescription, 'inputs'> | undefined;
}

/**
 * The open steps of an SDK that reports starts and ends with ids of its own. An adapter translates the events of the SDK.
 * Steps may start below a step that has ended. An id has several steps if several sinks record it.
 */
export class OpenRuns<Id, State> {
  readonly #sdk: string;
  readonly #givenUp: ((step: OpenStep<Id, State>) => void) | undefined;
  readonly #open = new Map<Id, readonly OpenStep<Id, State>[]>();
  /** The contexts of ended steps. They have no run, whose payloads would stay in memory. */
  readonly #ended = new Map<Id, RunContext>();

  /** `sdk` names the SDK in log lines. `givenUp` is called with a step whose end will not be reported. */
  constructor(sdk: string, givenUp?: (step: OpenStep<Id, State>) => void) {
    this.#sdk = sdk;
    this.#givenUp = givenUp;
  }

  /**
   * Starts a step below the step `parentId`, or in the current context if that is further inside or the parent is unknown.
   * Returns undefined if nothing is recorded or the sink records the step already. Otherwise, calls `describe`.
   */
  start(
    id: Id,
    parentId: Id | undefined,
    options: StartOptions,
    describe: () => StepStart<State>,
  ): OpenStep<Id, State> | undefined {
    const { exporter } = options;
    const around = insideStep(currentContext(exporter), this.below(parentId, exporter));
    const sink = sinkOf(around, exporter);
    const isKnown = this.all(id).some(({ run }) => run?.sink === sink);
    if (isKnown || (sink === undefined && !isOff(around))) return undefined;
    const { state, isGroup, inputs, call, description } = describe();
    // The SDK knows the parent of a step, so the steps below a step that is off are off, wherever they start.
    if (isGroup === true || isOff(around)) return this.add({ id, run: undefined, below: around, state });
    const run = beginRun(prepareRun(options, around, inputs, call), description);
    return this.add({ id, run, below: run.context, state });
  }

  /** Adds a step that has started. Above the limit, the oldest step is interrupted. */
  add(step: OpenStep<Id, State>): OpenStep<Id, State> {
    this.#open.set(step.id, [...this.all(step.id), step]);
    if (this.#open.size > STEPS_MAX) {
      const [oldest = []] = this.#open.values();
      for (const other of oldest) this.abandon(other, `${STEPS_MAX} other steps are open`);
      diagnostics.warnOnce(
        `${this.#sdk} steps`,
        `${this.#sdk}: more than ${STEPS_MAX} steps are open; the runs of the oldest end as interrupted`,
      );
    }
    return step;
  }

  /** Whether a step of this id is open or has ended recently. */
  has(id: Id): boolean {
    return this.#open.has(id) || this.#ended.has(id);
  }

  /** Returns the open steps, or those of one id. */
  all(id?: Id): readonly OpenStep<Id, State>[] {
    return id === undefined ? [...this.#open.values()].flat() : (this.#open.get(id) ?? []);
  }

  /** Returns an open step, preferably one with a run, and the one that is sent to `sink`. */
  find(id: Id | undefined, sink?: RunSink): OpenStep<Id, State> | undefined {
    const steps = id === undefined ? [] : this.all(id);
    const withRun = steps.filter(({ run }) => run !== undefined);
    return withRun.find(({ run }) => run?.sink === sink) ?? withRun[0] ?? steps[0];
  }

  /** Returns the context below a step, which may have ended. */
  below(id: Id | undefined, sink?: RunSink): RunContext | undefined {
    return id === undefined ? undefined : (this.find(id, sink)?.below ?? this.#ended.get(id));
  }

  /** Ends a step. `finish` may throw, and may end the run in another way. */
  end(step: OpenStep<Id, State> | undefined, finish?: (step: OpenStep<Id, State>) => void): void {
    if (step === undefined || !this.#remove(step)) return;
    if (finish !== undefined) guard(this.#sdk, () => finish(step));
    step.run?.end();
  }

  /** Ends a step whose end will not be reported as interrupted. */
  abandon(step: OpenStep<Id, State>, reason: string): void {
    if (!this.#remove(step)) return;
    this.#givenUp?.(step);
    step.run?.interrupt(reason);
  }

  /** Interrupts all open steps, the innermost first. */
  interrupt(reason: string): void {
    for (const step of this.all().toReversed()) this.abandon(step, reason);
  }

  #remove(step: OpenStep<Id, State>): boolean {
    const { id, below } = step;
    const steps = this.all(id);
    const others = steps.filter((other) => other !== step);
    if (others.length === steps.length) return false;
    if (others.length > 0) this.#open.set(id, others);
    else this.#open.delete(id);
    const sink = sinkOf(below);
    const context = below && sink ? remoteContext(below, sink) : below;
    if (context !== undefined) this.#ended.set(id, context);
    forgetOldest(this.#ended, STEPS_MAX);
    return true;
  }
}
