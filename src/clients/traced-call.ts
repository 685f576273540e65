import { traceable } from '../instrument/traceable.ts';
import { currentContext } from '../run/context.ts';

/** What the run of a call tells. */
export interface CallRun<Result> {
  readonly name: string;
  readonly runType: 'chain' | 'tool';
  /** Without keys and secrets. */
  readonly inputs: () => Record<string, unknown>;
  /** Without keys and secrets. By default what the call resolves with. */
  readonly outputs?: (result: Result) => Record<string, unknown>;
}

/** Whether a call that is made now becomes a run, below the one that is current. */
export function isInRun(): boolean {
  return currentContext()?.id !== undefined;
}

/** Makes a call as a run below the current one. Outside of any run it is just made: a client starts no trace. */
export function tracedCall<Result>(run: CallRun<Result>, call: () => Promise<Result>): Promise<Result> {
  if (!isInRun()) return call();
  const { name, runType, inputs, outputs } = run;
  const told = outputs && { outputs: (result: unknown) => outputs(result as Result) };
  return traceable(call, { name, runType, inputs, ...told })();
}
