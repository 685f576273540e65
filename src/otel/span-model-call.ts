import { guard } from '../base/guard.ts';
import { contextTo, type ModelCall, type RunContext } from '../run/context.ts';
import { areCallsTold, callAbove, isSameCall, toldCallsLike } from '../run/model-call.ts';
import { Run } from '../run/run.ts';
import type { RunSink } from '../run/sink.ts';
import { mapStart } from './mapping.ts';
import type { SpanEntry } from './span-registry.ts';
import { type Attributes, text } from './values.ts';

const NO_PAYLOADS = { hideInputs: true, hideOutputs: true };

/** Types of the runs that wrappers make of calls of models; a retriever is one that ranks with a model. */
const RUN_TYPES: ReadonlySet<string> = new Set(['llm', 'embedding', 'retriever']);

/** In which vocabularies name the model that is asked for, when its span starts. */
const MODEL_NAMES: readonly string[] = [
  'gen_ai.request.model',
  'llm.model_name',
  'llm.request.model_name',
  'embedding.model_name',
  'reranker.model_name',
  'ai.model.id',
];

/** Which call of a model a span is that has just started, and that becomes a run of this type. */
export function spanModelCall(attributes: Attributes, runType: string): ModelCall | undefined {
  const model = RUN_TYPES.has(runType) ? modelOf(attributes) : undefined;
  return model === undefined ? undefined : { runType, model };
}

/**
 * What stands for a span whose call has a run already, of a wrapped client or model, or of a step of LangChain: what the
 * span has below it moves up there. Undefined for any other span.
 */
export function seenAlready(
  attributes: Attributes,
  above: ModelCall | undefined,
  parent: RunContext | undefined,
  sink: RunSink,
): SpanEntry | undefined {
  if ((above === undefined && !areCallsTold()) || modelOf(attributes) === undefined) return undefined;
  const call = guard('reading a span', () => spanModelCall(attributes, mapStart(attributes, NO_PAYLOADS).runType));
  if (isSameCall(above, call)) return { context: parent };
  const told = toldCallsLike(call, parent, sink);
  const free = told.find(({ isTaken }) => !isTaken);
  if (free === undefined) return undefined;
  free.isTaken = true;
  // Which of several it is cannot be told; what is above all of them is right.
  const context = told.length === 1 ? free.run.context : (parent ?? contextTo(sink, undefined));
  return { context, call: free };
}

/**
 * The call of a wrapped client or model that a span starts in. Of two instrumentations that see one call both are recorded:
 * what each says of it is theirs.
 */
export function wrappedCallAbove(parent: RunContext | undefined, sink: RunSink): ModelCall | undefined {
  return parent?.handle instanceof Run ? callAbove(parent, sink) : undefined;
}

function modelOf(attributes: Attributes): string | undefined {
  for (const key of MODEL_NAMES) {
    const model = text(attributes[key]);
    if (model !== undefined) return model;
  }
  return undefined;
}
