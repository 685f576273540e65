import { guard } from '../../base/guard.ts';
import { enclosingModelCall, isSameCall, type ModelCall, type RunContext } from '../../run/context.ts';
import type { RunSink } from '../../run/sink.ts';
import { type Attributes, isEmpty, text } from '../conventions/values.ts';
import { OPERATION, runTypeOf } from '../mapping/span-to-run.ts';
import type { SpanLike } from '../span-like.ts';

/** Run types of spans that may record a model call. Retrievers may call a model for ranking. */
const RUN_TYPES: ReadonlySet<string> = new Set(['llm', 'embedding', 'retriever']);

/** Attributes that contain the requested model and are set when a span starts. */
const MODEL_NAMES: readonly string[] = [
  'gen_ai.request.model',
  'llm.model_name',
  'llm.request.model_name',
  'embedding.model_name',
  'reranker.model_name',
  'ai.model.id',
];

/** Matches the instrumentation scopes in Anthropic's SDK. */
const SDK_SCOPE = /^com\.anthropic\.sdk\b/;

/**
 * Returns the model call that a span records. Returns undefined if the span's attributes name no model. Pass
 * `knownType` if the run type is already known.
 */
export function spanModelCall(span: SpanLike, knownType?: string): ModelCall | undefined {
  const { attributes } = span;
  const model = modelOf(attributes);
  if (model === undefined) return undefined;
  const runType = knownType ?? guard(OPERATION, () => runTypeOf(attributes));
  return runType !== undefined && RUN_TYPES.has(runType) ? { runType, model, scope: scopeOf(span) } : undefined;
}

/** Returns whether a new span records the same model call as its parent run. */
export function isCallAbove(span: SpanLike, parent: RunContext | undefined, sink: RunSink): boolean {
  if (isEmpty(span.attributes) || modelOf(span.attributes) === undefined) return false;
  const above = enclosingModelCall(parent, sink);
  return above !== undefined && isSameCall(above, spanModelCall(span));
}

/**
 * Returns whether it is too early to tell if a span's model call already has a run. Some spans get their attributes
 * after the start.
 */
export function isCallUnknown(span: SpanLike, parent: RunContext | undefined, sink: RunSink): boolean {
  if (isEmpty(span.attributes)) return enclosingModelCall(parent, sink) !== undefined;
  return SDK_SCOPE.test(scopeOf(span) ?? '');
}

function scopeOf({ instrumentationScope, instrumentationLibrary }: SpanLike): string | undefined {
  return (instrumentationScope ?? instrumentationLibrary)?.name;
}

function modelOf(attributes: Attributes): string | undefined {
  for (const key of MODEL_NAMES) {
    const model = text(attributes[key]);
    if (model !== undefined) return model;
  }
  return undefined;
}
