import { guard } from '../../base/guard.ts';
import { callbacksIn, storedTree } from '../../integrations/langchain/steps.ts';
import { duplicateTracer } from '../../integrations/langchain/tracer.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../payload/fields.ts';
import type { RunContext } from '../../run/context/context.ts';
import { fromHeaders } from '../../run/propagation/propagation.ts';
import { currentSink } from '../../run/sink.ts';
import type { Header } from '../module-hooks.ts';
import { isTracerReplaced, USER_AGENT } from './langchain.ts';

/** Returns the run tree of langsmith's current run, if langsmith sends runs to the same endpoint. */
function currentTree(): Fields | undefined {
  const tree = storedTree();
  if (textOf(tree.dotted_order) === undefined || tree.tracingEnabled === false) return undefined;
  return duplicateTracer() === undefined ? undefined : tree;
}

/** Returns the context of langsmith's current run. Runs that start inside that run then become its children. */
export function langsmithRun(): RunContext | undefined {
  const tree = guard('runspan/register langsmith', currentTree);
  const sink = tree && currentSink();
  return sink && fromHeaders({ 'langsmith-trace': textOf(tree.dotted_order) })?.contextFor(sink);
}

/**
 * Returns whether langsmith itself records a model call. langsmith records the calls of wrapped clients and LangChain
 * models. Some LangChain models are recognized only by their open run.
 */
export function isLeftToLangsmith(header: Header, runType: string, model: string | undefined): boolean {
  const tree = currentTree();
  if (tree?.run_type === 'llm') return true;
  // LangChain's tracer does not record embeddings.
  if (runType !== 'llm' || isTracerReplaced() || duplicateTracer() === undefined) return false;
  return USER_AGENT.test(header('user-agent') ?? '') || (tree !== undefined && hasOpenModel(tree, model));
}

/**
 * Returns whether a model run is open below the current run. The tracer of a LangChain step contains all open runs of
 * the trace.
 */
function hasOpenModel(tree: Fields, model: string | undefined): boolean {
  const handlers = listOf(callbacksIn(tree).handlers).map(fieldsOf);
  const runs = handlers.find(({ name }) => name === 'langchain_tracer')?.runTreeMap;
  return [...(runs instanceof Map ? runs.values() : [])].map(fieldsOf).some(({ run_type, dotted_order, extra }) => {
    if (run_type !== 'llm' || !textOf(dotted_order)?.startsWith(`${tree.dotted_order}.`)) return false;
    const { metadata, invocation_params: params } = fieldsOf(extra);
    return [fieldsOf(metadata).ls_model_name, fieldsOf(params).model].includes(model);
  });
}
