import { guard } from '../../base/guard.ts';
import { env, parseFlag } from '../../config/environment.ts';
import { enclosingCall, type RecordedCall, type RunContext, recordedCall } from '../../run/context.ts';
import { CALL_TYPES, type Call } from '../../run/same-call.ts';
import type { RunSink } from '../../run/sink.ts';
import { type Attributes, isEmpty, text } from '../conventions/values.ts';
import type { RowIndex } from '../mapping/row-index.ts';
import { OPERATION, runTypeOf } from '../mapping/span-to-run.ts';
import type { SpanLike } from '../span-like.ts';

/** Attributes that vocabularies set on the spans of calls when they start. Other spans are not examined. */
const MARKS: readonly string[] = [
  'gen_ai.operation.name',
  'gen_ai.request.model',
  'openinference.span.kind',
  'llm.request.type',
  'llm.model_name',
  'llm.request.model_name',
  'embedding.model_name',
  'reranker.model_name',
  'ai.operationId',
  'ai.model.id',
  'traceloop.span.kind',
  'langfuse.observation.type',
];

const TOOL_NAMES: readonly string[] = ['gen_ai.tool.name', 'ai.toolCall.name', 'tool.name', 'traceloop.entity.name'];

/** Matches the instrumentation scopes in Anthropic's SDK. */
const SDK_SCOPE = /^com\.anthropic\.sdk\b/;

/** Attributes and scopes that record requests and responses by default. If they record none, the user has turned that off. */
const WITH_CONTENT: readonly string[] = [
  'ai.operationId',
  'openinference.span.kind',
  'traceloop.span.kind',
  'llm.request.type',
  'langfuse.observation.type',
];
const SCOPES_WITH_CONTENT = /^(ai|gen_ai|langfuse-sdk|langsmith)$|^@(ai-sdk|arizeai|langfuse|traceloop)\//;

/** Returns the call that a span records. */
export function spanCall(span: SpanLike, index: RowIndex): Call | undefined {
  const { attributes } = span;
  if (!isMarked(attributes, index)) return undefined;
  const type = guard(OPERATION, () => runTypeOf(attributes, index));
  if (type === undefined || !CALL_TYPES.includes(type)) return undefined;
  const name = TOOL_NAMES.map((key) => text(attributes[key])).find((found) => found !== undefined) ?? span.name;
  return { type, name, source: scopeOf(span) };
}

/** Returns the run that already records the call of a new span. */
export function recordOfSpan(
  span: SpanLike,
  parent: RunContext | undefined,
  sink: RunSink,
  index: RowIndex,
): RecordedCall | undefined {
  // Most spans record no call, and this check is fast.
  const isCall = isMarked(span.attributes, index) && enclosingCall(parent, sink) !== undefined;
  const call = isCall ? spanCall(span, index) : undefined;
  return call && recordedCall(call, parent, sink);
}

/**
 * Returns whether it is too early to tell if the call of a span already has a run. Some spans get their attributes after
 * the start.
 */
export function isCallUnknown(span: SpanLike, parent: RunContext | undefined, sink: RunSink): boolean {
  if (isEmpty(span.attributes)) return enclosingCall(parent, sink) !== undefined;
  return SDK_SCOPE.test(scopeOf(span) ?? '');
}

/** Returns whether the user has asked the source of a span not to record requests and responses. */
export function isContentRefused(span: SpanLike): boolean {
  const scope = scopeOf(span) ?? '';
  const captured = env('OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT')?.toLowerCase();
  if (SCOPES_WITH_CONTENT.test(scope) || WITH_CONTENT.some((key) => span.attributes[key] !== undefined)) return true;
  if (parseFlag(captured) === false || captured === 'no_content') return true;
  const mode = SDK_SCOPE.test(scope) ? env('ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE') : undefined;
  return mode !== undefined && mode.toLowerCase() !== 'content';
}

export function scopeOf({ instrumentationScope, instrumentationLibrary }: SpanLike): string | undefined {
  return (instrumentationScope ?? instrumentationLibrary)?.name;
}

function isMarked(attributes: Attributes, index: RowIndex): boolean {
  for (const key of MARKS) if (attributes[key] !== undefined) return true;
  return index.hasOwnType(attributes);
}
