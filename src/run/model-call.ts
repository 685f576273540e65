import { type ModelCall, type RunContext, SinkHandle } from './context.ts';
import type { RunType } from './record.ts';
import { Run } from './run.ts';
import type { RunSink } from './sink.ts';

/**
 * Returns the model call of the parent run if that run is open and has the same sink. A nested call of the same type
 * and model is assumed to be the same call, recorded by a second instrumentation. This happens if a wrapped client
 * calls a patched method, or if a patched function calls a wrapped model. The outer record is kept, because it has the
 * application's request and result. Siblings are never compared, because two overlapping calls of one model look alike
 * but are separate calls.
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

/** Nested spans of one instrumentation are different calls: the AI SDK's `embedMany` has a span for each request. */
export function isSameCall(one: ModelCall | undefined, other: ModelCall | undefined): boolean {
  if (one === undefined || one.runType !== other?.runType || one.model !== other.model) return false;
  return one.scope === undefined || one.scope !== other.scope;
}
