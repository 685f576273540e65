import { traceable } from '../instrument/traceable.ts';
import { currentContext } from '../run/context.ts';

/** The run of a call. Inputs and outputs must not contain keys and secrets. */
export interface CallRun<Result> {
  readonly name: string;
  readonly runType: 'chain' | 'tool';
  readonly inputs: () => Record<string, unknown>;
  /** @default the result of the call */
  readonly outputs?: (result: Result) => Record<string, unknown>;
}

/** Whether a call is recorded. A client never starts a trace. */
export function isInRun(): boolean {
  return currentContext()?.id !== undefined;
}

/** Records a call as a child of the current run. Without a current run, the call is not recorded. */
export function tracedCall<Result>(run: CallRun<Result>, call: () => Promise<Result>): Promise<Result> {
  if (!isInRun()) return call();
  const { name, runType, inputs, outputs } = run;
  const recorded = outputs && { outputs: (result: unknown) => outputs(result as Result) };
  return traceable(call, { name, runType, inputs, ...recorded })();
}
