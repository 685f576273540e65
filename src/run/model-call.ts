import { type ModelCall, type RunContext, SinkHandle } from './context.ts';
import type { RunType } from './record.ts';
import { Run } from './run.ts';
import type { RunSink } from './sink.ts';

/**
 * The call that the run above is, as long as it is open, and goes to the same sink. A call of the same type and model that
 * begins below is this very call, seen by somebody else: a wrapped client calls a method that an instrumentation has
 * replaced, or an instrumented function a wrapped model. The outer one stays: it has been told when the inner begins, and has
 * seen what the application asked for and what it got.
 */
export function callAbove(parent: RunContext | undefined, sink: RunSink): ModelCall | undefined {
  const handle = parent?.handle;
  if (!(handle instanceof Run || handle instanceof SinkHandle)) return undefined;
  return handle.sink === sink ? handle.modelCall : undefined;
}

/** The call that a run of this type is, by what its metadata tell; undefined where they name no model. */
export function modelCall(runType: RunType | undefined, metadata: object | undefined): ModelCall | undefined {
  const model: unknown = metadata && Reflect.get(metadata, 'ls_model_name');
  return runType !== undefined && typeof model === 'string' && model !== '' ? { runType, model } : undefined;
}

export function isSameCall(one: ModelCall | undefined, other: ModelCall | undefined): boolean {
  return one !== undefined && one.runType === other?.runType && one.model === other.model;
}

/** A call that a framework tells of by callbacks alone, so that the code that makes it is not inside of its run. */
export interface ToldCall {
  readonly run: Run;
  /** Somebody else has seen it as well, and is not done: whoever sees one now sees another. */
  isTaken: boolean;
}

const told = new Map<Run, ToldCall>();

/** Notes such a call when it begins. Those of others that are open meanwhile are compared with it: few are open at once. */
export function noteToldCall(run: Run, call: ModelCall | undefined): void {
  run.modelCall = call;
  if (call !== undefined && run.isOpen) told.set(run, { run, isTaken: false });
}

export function forgetToldCall(run: Run): void {
  told.delete(run);
}

/** Whether there are such calls, so that one who sees a call has to ask. */
export function areCallsTold(): boolean {
  return told.size > 0;
}

/**
 * Those that may be the call that somebody sees below `parent`: in the same trace, or in any where there is none above.
 * That it began within one of them is all that can be known.
 */
export function toldCallsLike(call: ModelCall | undefined, parent: RunContext | undefined, sink: RunSink): ToldCall[] {
  if (call === undefined) return [];
  return [...told.values()].filter(({ run }) => {
    const isBelow = parent?.traceId === undefined || parent.traceId === run.traceId;
    return isBelow && run.sink === sink && isSameCall(run.modelCall, call);
  });
}
