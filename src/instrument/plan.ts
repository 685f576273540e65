import { diagnostics } from '../base/diagnostics.ts';
import { guard, ignoreRejection, reportFailure } from '../base/guard.ts';
import { type Checks, FUNCTION, TRUE_OR_FALSE } from '../config/checker.ts';
import { type EncodedPayload, encodePayload } from '../payload/serialize.ts';
import { types } from '../platform/node.ts';
import type { Project } from '../run/encoded-run.ts';
import type { Fields } from '../run/fields.ts';
import type { RunHooks } from '../run/hooks.ts';
import type { RunType } from '../run/record.ts';
import type { CallDescription, Run } from '../run/run.ts';
import { commonChecks, type Hiding, type RunOptions, type StartOptions, usableOptions } from '../run/run-options.ts';
import type { CapturePolicy, RunSink } from '../run/sink.ts';

/** The types of a function's arguments. */
export type ArgumentsOf<Fn> = Fn extends (...args: infer Args) => unknown ? Args : never;

/** The type of a function's awaited result. For a generator or a stream, an array of its chunks. */
export type OutcomeOf<Fn> = Fn extends (...args: never[]) => infer Result ? WholeOf<Awaited<Result>> : never;

/** Maps the type of a generator, async iterable or `Observable` to an array of its chunks. Returns other types unchanged. */
export type WholeOf<Value> = Value extends
  | Generator<infer Chunk>
  | IterableIterator<infer Chunk>
  | AsyncIterable<infer Chunk>
  | { forEach(next: (value: infer Chunk) => void): Promise<void> }
  ? Chunk[]
  : Value;

/** Options of `traceable`, `@traced` and `traceMethods`. Every option is optional. */
export interface TraceableOptions<Args extends readonly unknown[] = unknown[], Outcome = unknown>
  extends Omit<RunOptions, 'name' | 'inputs' | 'startTime'> {
  /** @default the function's own name */
  name?: string;
  /**
   * If false, calls to this function are not traced, and nothing that runs in them is.
   * @default true
   */
  enabled?: boolean;
  /**
   * Callback that receives the function's arguments and returns the inputs to record. Called before the traced
   * function. If the callback throws or returns a promise, an error text is recorded instead of the inputs.
   *
   * @default `{}` for no arguments, the argument itself for one plain object, `{ input }` for any other single
   * argument, `{ args: […] }` for several arguments
   */
  inputs?(args: Args): Fields;
  /**
   * Callback that receives the function's result and returns the outputs to record. For a promise, the callback
   * receives the resolved value. For a generator or stream, the callback receives an array of the chunks, or the result
   * of `aggregate` if set.
   *
   * @default the result itself if it is a plain object, `{}` for `undefined`, `{ outputs }` for any other value
   */
  outputs?(value: Outcome): Fields;
  /** Combines the chunks of a generator or stream into the value to record. */
  aggregate?(chunks: unknown[]): unknown;
  /**
   * Callback that selects the stream or generator to trace from the function's result. For example, if the function
   * returns `{ stream, id }`, set this option to `({ stream }) => stream`. The run records the selected stream's chunks
   * as outputs and ends when the stream ends. If the callback throws or returns another value, the result itself is
   * recorded. Generator functions ignore this option.
   */
  stream?(result: Outcome): unknown;
}

/** Options of one traced function, including options that only integrations use. */
export type PlanOptions = Omit<Plan, 'with' | 'forCall' | 'encodeInputs'>;

export type ChunkOptions = Pick<PlanOptions, 'name' | 'outputs' | 'aggregate'>;

/**
 * The validated options of one traced function. Every plan has all fields, so all plans share one hidden class in V8.
 */
export class Plan implements StartOptions {
  name: string;
  runType?: RunType;
  tags?: readonly string[];
  metadata?: Fields;
  project?: Project | undefined;
  id?: string;
  root?: boolean;
  exporter?: RunSink;
  referenceExampleId?: string;
  onStart?: NonNullable<RunHooks['onStart']>;
  onEnd?: NonNullable<RunHooks['onEnd']>;
  hideInputs?: true;
  hideOutputs?: true;
  isLangSmith?: true;
  enabled?: boolean;
  inputs?: (args: unknown[]) => unknown;
  outputs?: (value: unknown) => unknown;
  aggregate?: (chunks: unknown[]) => unknown;
  stream?: (result: unknown) => unknown;
  /**
   * Integrations use `describe` instead of `inputs`. Returns the data to record for one call, or undefined if the call
   * must not be traced. May throw.
   */
  describe?: (args: unknown[]) => CallDescription | undefined;
  source?: string;
  /** Identifies the wrapped method among the sources of records, if each of its calls has a plan of its own. */
  method?: object;
  hiding?: Hiding | undefined;
  /** Integrations use `complete` instead of `outputs`. Receives the result of a call and ends the run. May throw. */
  complete?: (run: Run, value: unknown) => void;
  /**
   * Observes the result of an SDK method, and the value that a returned promise resolves to. Returns true if the callback
   * will end the run itself.
   */
  follow?: (result: object, run: Run, plan: Plan) => boolean;
  #isIdUsed = false;

  constructor(options: PlanOptions) {
    this.name = options.name;
    Object.assign(this, options);
  }

  /** Returns a copy of the plan with the given tags and metadata added and the other given options replaced. */
  with(options: Partial<PlanOptions>): Plan {
    const merged = { ...this, ...options };
    if (options.tags !== undefined) merged.tags = [...(this.tags ?? []), ...options.tags];
    guard('metadata', () => {
      if (options.metadata !== undefined) merged.metadata = { ...this.metadata, ...options.metadata };
    });
    return new Plan(merged);
  }

  /** Returns the plan for one call. Only the first call uses the `id` option, because run ids must be unique. */
  forCall(): Plan {
    if (!this.#isIdUsed) {
      this.#isIdUsed = true;
      return this;
    }
    diagnostics.warnOnce(
      'traceable id again',
      `traceable: "${this.name}" has an \`id\` and was called again, so the new run gets another id. Give each call its own id: fn.with({ id })(…).`,
    );
    const others: PlanOptions = { ...this };
    delete others.id;
    return new Plan(others);
  }

  encodeInputs(args: unknown[], capture: CapturePolicy, description?: CallDescription): EncodedPayload | undefined {
    if (capture.hideInputs) return undefined;
    if (description !== undefined) return encodePayload('inputs', description.inputs, capture);
    if (this.inputs === undefined) return encodePayload('inputs', args.length > 1 ? { args } : args[0], capture);
    // The callback receives a copy of the array, because it may change the array.
    return encodePayload('inputs', userValue('inputs', this.name, this.inputs, [...args]), capture);
  }
}

/** The options that a traced function's `with` method accepts. */
export type WithOptions = Omit<TraceableOptions, 'runType' | 'inputs' | 'outputs' | 'aggregate' | 'stream'>;

const { runType, ...otherChecks } = commonChecks;
const callChecks: Checks<WithOptions> = { ...otherChecks, enabled: TRUE_OR_FALSE };

const planChecks: Checks<TraceableOptions> = {
  ...callChecks,
  runType,
  inputs: FUNCTION,
  outputs: FUNCTION,
  aggregate: FUNCTION,
  stream: FUNCTION,
};

export function callOptions(options: unknown): Partial<PlanOptions> {
  return usableOptions<WithOptions>('with', options, callChecks) as Partial<PlanOptions>;
}

export function traceableOptions(options: unknown): Partial<PlanOptions> {
  return usableOptions<TraceableOptions>('traceable', options, planChecks) as Partial<PlanOptions>;
}

export function describeCall(plan: Plan, args: unknown[]): CallDescription | undefined {
  try {
    return plan.describe?.(args);
  } catch (thrown) {
    reportFailure('recording the inputs of a call', thrown);
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
    reportFailure('recording a result', thrown);
    run.end();
  }
}

/** Returns the object whose end ends the run: the function's result, or the stream selected by the `stream` option. */
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
    return failedCallback(option, name, 'returned a promise instead of a value');
  } catch (thrown) {
    // The error's message is omitted, because it may contain the payload.
    return failedCallback(option, name, `threw ${errorName(thrown)}`);
  }
}

function failedCallback(option: string, name: string, how: string): { error: string } {
  const error = `\`${option}\` of "${name}" ${how}`;
  diagnostics.warnOnce(`callback ${error}`, `traceable: ${error}; the error is recorded in place of the value.`);
  return { error };
}

function errorName(thrown: unknown): string {
  const name = guard('traceable', () => (thrown instanceof Error ? thrown.constructor.name : typeof thrown));
  return typeof name === 'string' && name !== '' ? name : 'an error';
}
