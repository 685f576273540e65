import { types } from 'node:util';
import { guard, ignoreRejection } from '../base/guard.ts';
import type { Check, Checks } from '../base/options.ts';
import { type EncodedPayload, encodePayload } from '../payload/serialize.ts';
import type { Run } from '../run/run.ts';
import type { Fields } from '../run/run-fields.ts';
import { commonChecks, type Hiding, type RunOptions, usableOptions } from '../run/run-options.ts';
import type { RunSink } from '../run/sink.ts';

/** The arguments of a function. */
export type ArgumentsOf<Fn> = Fn extends (...args: infer Args) => unknown ? Args : never;

/** What a call of it comes to: its result or what its promise resolves to, the list of its chunks where that is a sequence. */
export type OutcomeOf<Fn> = Fn extends (...args: never[]) => infer Result ? WholeOf<Awaited<Result>> : never;

/** Maps the type of a generator or an async iterable to an array of its chunks. Any other type is left unchanged. */
export type WholeOf<Value> = Value extends
  | Generator<infer Chunk>
  | IterableIterator<infer Chunk>
  | AsyncIterable<infer Chunk>
  ? Chunk[]
  : Value;

/** How a function is traced. Everything is optional. */
export interface TraceableOptions<Args extends readonly unknown[] = unknown[], Outcome = unknown>
  extends Omit<RunOptions, 'name' | 'inputs'> {
  /** @default the function's own name */
  name?: string;
  /** False leaves calls of this function untraced; what it calls is traced all the same. @default true */
  enabled?: boolean;
  /**
   * What to record as inputs, given the list of arguments. Called at each call, before the function. When it throws or
   * answers with a promise, a marker is recorded in its place and the arguments are not.
   *
   * @default no argument `{}`, one plain object itself, one other value `{ input }`, several `{ args: […] }`
   */
  inputs?(args: Args): Fields;
  /**
   * What to record as outputs, given the result: what a promise resolved to, or the list of a generator's or stream's chunks;
   * where there is an `aggregate` too, what that made of them, which the type cannot tell.
   *
   * @default a plain object itself, `undefined` `{}`, any other value `{ outputs }`
   */
  outputs?(value: Outcome): Fields;
  /** Folds the chunks of a generator or stream into the one value to record. */
  aggregate?(chunks: unknown[]): unknown;
}

/** Options of one wrapped function, checked once when it is wrapped. */
export interface Plan extends Omit<RunOptions, 'inputs'>, Hiding {
  enabled?: boolean;
  inputs?: (args: unknown[]) => unknown;
  outputs?: (value: unknown) => unknown;
  aggregate?: (chunks: unknown[]) => unknown;
  /** For `integrations/`, in the place of `inputs`: what is recorded of one call, undefined to leave it untraced. It may throw. */
  describe?: (args: unknown[]) => CallDescription | undefined;
  /** For `integrations/`: its calls are calls of a model, which an instrumentation may see as well. */
  isModelCall?: true;
  /** For `integrations/`, in the place of `outputs`: takes over the run of a call that came to `value`. It may throw. */
  complete?: (run: Run, value: unknown) => void;
  /**
   * For `integrations/`: takes over a result that the general ways do not follow as it has to be. True when it will end
   * the run itself; the caller gets the same object in any case.
   */
  follow?: (result: object, run: Run, plan: Plan) => boolean;
}

/** What an integration tells of one call of a method. */
export interface CallDescription {
  /** In the place of the plan's. */
  readonly name?: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  /** Beside the plan's. */
  readonly metadata?: Fields;
  /** The OpenTelemetry span that the SDK started for this call before calling the method. */
  readonly span?: object | undefined;
}

const aFunction: Check = ['a function', (value) => typeof value === 'function'];

const planChecks: Checks<TraceableOptions> = {
  ...commonChecks,
  enabled: ['true or false', (value) => typeof value === 'boolean'],
  inputs: aFunction,
  outputs: aFunction,
  aggregate: aFunction,
};

/** What `wrapped.with(…)` takes: options that hold for the calls of one function that it gives back. */
export type CallOptions = Pick<
  TraceableOptions,
  'name' | 'tags' | 'metadata' | 'project' | 'projectId' | 'id' | 'root' | 'exporter' | 'enabled'
>;

const { inputs: _inputs, outputs: _outputs, aggregate: _aggregate, runType: _runType, ...callChecks } = planChecks;

/** The plan with other options over its own: tags and metadata are added, everything else takes the place of what was. */
export function planWith(plan: Plan, options: unknown): Plan {
  const checked = usableOptions<CallOptions>('with', options, callChecks);
  return merged(plan, checked as Partial<Plan>);
}

/** The plan of a function that is wrapped once more. */
export function planAgain(place: string, plan: Plan, options: unknown): Plan {
  return merged(plan, usableOptions<TraceableOptions>(place, options, planChecks) as Partial<Plan>);
}

function merged(plan: Plan, over: Partial<Plan>): Plan {
  const tags = over.tags === undefined ? plan.tags : [...(plan.tags ?? []), ...over.tags];
  const metadata = guard('metadata', () => ({ ...plan.metadata, ...over.metadata }));
  const merged = { ...plan, ...over, ...(tags && { tags }), ...(metadata && { metadata }) };
  if (over.project !== undefined && over.projectId === undefined) delete merged.projectId;
  return merged;
}

export function planOf(place: string, options: unknown, ownName: string): Plan {
  const checked = usableOptions<TraceableOptions>(place, options, planChecks) as Partial<Plan>;
  return { ...checked, name: checked.name ?? (ownName === '' ? 'anonymous' : ownName) };
}

/** The inputs of one call as they are now, encoded; undefined when they are hidden. */
export function encodedInputs(
  plan: Plan,
  args: unknown[],
  sink: RunSink,
  description: CallDescription | undefined,
): EncodedPayload | undefined {
  if (sink.capture.hideInputs || plan.hideInputs === true) return undefined;
  if (description !== undefined) return encodePayload('inputs', description.inputs, sink.capture);
  // The callback gets a list of its own: what it does to it must not reach the function.
  if (plan.inputs !== undefined) {
    return encodePayload('inputs', chosen('inputs', plan, plan.inputs, [...args]), sink.capture);
  }
  return encodePayload('inputs', args.length > 1 ? { args } : args[0], sink.capture);
}

/**
 * What an integration says of a call; undefined where it leaves it untraced. Where it fails, that is recorded, and nothing
 * of the arguments.
 */
export function describeCall(describe: NonNullable<Plan['describe']>, args: unknown[]): CallDescription | undefined {
  let description: CallDescription | undefined = { inputs: { error: 'the call could not be read' } };
  guard('describing a call', () => {
    description = describe(args);
  });
  return description;
}

/** Ends a run with the value that its function came to. */
export function endWith(run: Run, plan: Plan, value: unknown): void {
  const { complete, outputs } = plan;
  if (!run.isOpen) return;
  if (complete === undefined) {
    run.keepResult(outputs === undefined ? value : chosen('outputs', plan, outputs, value));
    run.end();
  } else if (guard('reading a result', () => complete(run, value) ?? true) === undefined) run.end();
}

/** What a callback of the application makes of a payload; a marker where it fails, never the raw payload. */
export function chosen<Value>(
  option: 'inputs' | 'outputs' | 'aggregate',
  plan: Plan,
  callback: (value: Value) => unknown,
  value: Value,
): unknown {
  try {
    const result = callback(value);
    // Also one of another realm, as tests run their programs in.
    if (!types.isPromise(result)) return result;
    ignoreRejection(result);
    return { error: `\`${option}\` of "${plan.name}" answered with a promise; it has to answer at once` };
  } catch (thrown) {
    // The message may repeat the payload; the name of the error does not.
    return { error: `\`${option}\` of "${plan.name}" threw ${errorName(thrown)}` };
  }
}

function errorName(thrown: unknown): string {
  const name = guard('traceable', () => (thrown instanceof Error ? thrown.constructor.name : typeof thrown));
  return typeof name === 'string' && name !== '' ? name : 'an error';
}
