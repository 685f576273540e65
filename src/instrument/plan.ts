import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreRejection, reportFailure } from '../base/guard.ts';
import { types } from '../base/node.ts';
import { type Checks, FUNCTION, TRUE_OR_FALSE } from '../base/options.ts';
import { type EncodedPayload, encodePayload } from '../payload/serialize.ts';
import type { RunType } from '../run/record.ts';
import type { Run } from '../run/run.ts';
import type { Fields } from '../run/run-fields.ts';
import type { RunHooks } from '../run/run-hooks.ts';
import { commonChecks, type RunOptions, type StartOptions, usableOptions } from '../run/run-options.ts';
import type { RunSink } from '../run/sink.ts';

/** The types of a function's arguments. */
export type ArgumentsOf<Fn> = Fn extends (...args: infer Args) => unknown ? Args : never;

/** The awaited result of a function, or an array of chunks if the result is a generator or a stream. */
export type OutcomeOf<Fn> = Fn extends (...args: never[]) => infer Result ? WholeOf<Awaited<Result>> : never;

/** Maps the type of a generator or an async iterable to an array of its chunks. Any other type does not change. */
export type WholeOf<Value> = Value extends
  | Generator<infer Chunk>
  | IterableIterator<infer Chunk>
  | AsyncIterable<infer Chunk>
  ? Chunk[]
  : Value;

/** Options of `traceable`, `@traced` and `traceMethods`. Every option is optional. */
export interface TraceableOptions<Args extends readonly unknown[] = unknown[], Outcome = unknown>
  extends Omit<RunOptions, 'name' | 'inputs' | 'startTime'> {
  /** @default the function's own name */
  name?: string;
  /** If false, calls of this function are not traced. Nested traced functions are still traced. @default true */
  enabled?: boolean;
  /**
   * Receives the arguments and returns the inputs to record. The callback runs before the traced function. If the
   * callback throws or returns a promise, a marker is recorded instead of the arguments.
   *
   * @default `{}` without arguments; for one argument, the argument itself if it is a plain object, else `{ input }`;
   * for several arguments, `{ args: […] }`
   */
  inputs?(args: Args): Fields;
  /**
   * Receives the result and returns the outputs to record. If the function returns a promise, the callback receives the
   * value of the promise. If the function returns a generator or a stream, the callback receives the array of its
   * chunks, or the result of `aggregate` if that option is set.
   *
   * @default the result itself if it is a plain object, `{}` for `undefined`, `{ outputs }` for any other value
   */
  outputs?(value: Outcome): Fields;
  /** Combines the chunks of a generator or stream into the value to record. */
  aggregate?(chunks: unknown[]): unknown;
  /**
   * Receives the result, for example `{ stream, id }`, and returns the generator or stream in the result that your code
   * reads, for example `({ stream }) => stream`. The run ends when that stream ends, and its outputs are the chunks. If
   * the callback throws or returns another value, the result is recorded as without this option. The option has no
   * effect on generator functions.
   */
  stream?(result: Outcome): unknown;
}

/** The options of one traced function, including options that only integrations use. */
export type PlanOptions = Omit<Plan, 'with' | 'forCall' | 'encodeInputs'>;

export type ChunkOptions = Pick<PlanOptions, 'name' | 'outputs' | 'aggregate'>;

/** The data that an integration records for one method call. */
export interface CallDescription {
  /** The name of the run. Replaces the plan's name. */
  readonly name?: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  /** The metadata of the call. Added to the plan's metadata. */
  readonly metadata?: Fields;
  /** The OpenTelemetry span that the SDK started for this call. */
  readonly span?: object | undefined;
  /** Called when the run has started. May throw. */
  readonly started?: ((run: Run) => void) | undefined;
  /** The caller's abort signal. If the call fails after this signal is aborted, the run ends as cancelled. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The checked options of one traced function. Every plan has every field, so that all plans have the same hidden class
 * in V8.
 */
export class Plan implements StartOptions {
  name: string;
  runType?: RunType;
  tags?: readonly string[];
  metadata?: Fields;
  project?: string;
  projectId?: string;
  id?: string;
  root?: boolean;
  exporter?: RunSink;
  referenceExampleId?: string;
  onStart?: NonNullable<RunHooks['onStart']>;
  onEnd?: NonNullable<RunHooks['onEnd']>;
  hideInputs?: true;
  hideOutputs?: true;
  enabled?: boolean;
  inputs?: (args: unknown[]) => unknown;
  outputs?: (value: unknown) => unknown;
  aggregate?: (chunks: unknown[]) => unknown;
  stream?: (result: unknown) => unknown;
  /** Used instead of `inputs`. Returns the data of one call, or undefined if the call must not be traced. May throw. */
  describe?: (args: unknown[]) => CallDescription | undefined;
  /** True if the function calls a model. If the enclosing run already records the same model call, no run starts. */
  isModelCall?: true;
  /** Used instead of `outputs`. Receives the result of a call and ends the run. May throw. */
  complete?: (run: Run, value: unknown) => void;
  /** Follows the result of an SDK method. Returns true if this callback will end the run itself. */
  follow?: (result: object, run: Run, plan: Plan) => boolean;
  #isIdUsed = false;

  constructor(options: PlanOptions) {
    this.name = options.name;
    Object.assign(this, options);
  }

  /**
   * Returns a copy of the plan with these options. Tags and metadata are added to those of the plan. Other options
   * replace those of the plan.
   */
  with(options: Partial<PlanOptions>): Plan {
    const merged = { ...this, ...options };
    if (options.tags !== undefined) merged.tags = [...(this.tags ?? []), ...options.tags];
    guard('metadata', () => {
      if (options.metadata !== undefined) merged.metadata = { ...this.metadata, ...options.metadata };
    });
    if (options.project !== undefined && options.projectId === undefined) delete merged.projectId;
    return new Plan(merged);
  }

  /** Returns the plan for one call. Only the first call uses the option `id`, because two runs must not share an id. */
  forCall(): Plan {
    if (!this.#isIdUsed) {
      this.#isIdUsed = true;
      return this;
    }
    diagnostics.warnOnce(
      'traceable id again',
      `traceable: expected a function with an \`id\` to be called once, got another call of "${this.name}"; its run gets a new id. Give each call its own id: fn.with({ id })(…).`,
    );
    const others: PlanOptions = { ...this };
    delete others.id;
    return new Plan(others);
  }

  encodeInputs(args: unknown[], sink: RunSink, description: CallDescription | undefined): EncodedPayload | undefined {
    const { capture } = sink;
    if (capture.hideInputs || this.hideInputs === true) return undefined;
    if (description !== undefined) return encodePayload('inputs', description.inputs, capture);
    if (this.inputs === undefined) return encodePayload('inputs', args.length > 1 ? { args } : args[0], capture);
    // The array is copied because the callback may change it.
    return encodePayload('inputs', userValue('inputs', this.name, this.inputs, [...args]), capture);
  }
}

/** Options of `fn.with(…)`. */
export type CallOptions = Omit<TraceableOptions, 'runType' | 'inputs' | 'outputs' | 'aggregate' | 'stream'>;

const { runType, ...otherChecks } = commonChecks;
const callChecks: Checks<CallOptions> = { ...otherChecks, enabled: TRUE_OR_FALSE };

const planChecks: Checks<TraceableOptions> = {
  ...callChecks,
  runType,
  inputs: FUNCTION,
  outputs: FUNCTION,
  aggregate: FUNCTION,
  stream: FUNCTION,
};

export function callOptions(options: unknown): Partial<PlanOptions> {
  return usableOptions<CallOptions>('with', options, callChecks) as Partial<PlanOptions>;
}

export function traceableOptions(options: unknown): Partial<PlanOptions> {
  return usableOptions<TraceableOptions>('traceable', options, planChecks) as Partial<PlanOptions>;
}

export function describeCall(plan: Plan, args: unknown[]): CallDescription | undefined {
  try {
    return plan.describe?.(args);
  } catch (thrown) {
    reportFailure('describing a call', thrown);
    return { inputs: { error: 'the call could not be read' } };
  }
}

export function endWith(run: Run, plan: Plan, value: unknown): void {
  if (!run.isOpen) return;
  const { complete, outputs } = plan;
  if (complete === undefined) {
    run.keepResult(outputs === undefined ? value : userValue('outputs', plan.name, outputs, value));
    run.finish();
    return;
  }
  try {
    complete(run, value);
  } catch (thrown) {
    reportFailure('reading a result', thrown);
    run.end();
  }
}

/** Returns the object whose end ends the run: the result, or the stream in the result that the option `stream` returns. */
export function followedValue({ stream }: Plan, result: unknown): unknown {
  return (stream && guard('stream', () => stream(result))) ?? result;
}

export function userValue<Value>(
  option: 'inputs' | 'outputs' | 'aggregate',
  name: string,
  callback: (value: Value) => unknown,
  value: Value,
): unknown {
  try {
    const result = callback(value);
    if (!types.isPromise(result)) return result;
    ignoreRejection(result);
    return { error: `\`${option}\` of "${name}" returned a promise instead of a value` };
  } catch (thrown) {
    // Only the name of the error is recorded, because the error message may contain the payload.
    return { error: `\`${option}\` of "${name}" threw ${errorName(thrown)}` };
  }
}

function errorName(thrown: unknown): string {
  const name = guard('traceable', () => (thrown instanceof Error ? thrown.constructor.name : typeof thrown));
  return typeof name === 'string' && name !== '' ? name : 'an error';
}
