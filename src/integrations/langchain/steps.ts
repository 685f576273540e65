import { guard } from '../../base/guard.ts';
import { shared } from '../../base/shared.ts';
import { addStepSource, type RunContext } from '../../run/context.ts';
import type { Run } from '../../run/run.ts';
import type { RunSink } from '../../run/sink.ts';

/** Maximum number of open steps. Starting one more abandons the oldest open step. */
const STEPS_MAX = 10_000;

/** An open LangChain step, as recorded by one handler. */
export interface Step {
  readonly id: string;
  readonly run: Run;
  readonly handler: object;
  /** The list of tags that LangChain passes to each of the step's callbacks. */
  readonly tags: WeakRef<object> | undefined;
  /** True after a model has sent its request, unless that request has failed. */
  isRequested: boolean;
  /** True after a model's first token. */
  hasTokens: boolean;
  /** The text streamed by a model, up to about the maximum payload size. */
  text: string;
  /** Whether the streamed text belongs to a message. */
  isChat: boolean;
  /** The interrupts of a graph that is waiting for input. */
  interrupts?: readonly unknown[];
}

/** All handlers' open steps, by LangChain's run id. Each sink has at most one step per id. */
const steps: Map<string, Step[]> = shared('langchainSteps', () => new Map());

/**
 * Detects steps that can no longer end. If the application leaves a stream with `break`, LangChain does not report the
 * end of the step. The object that would report the end references the step's list of tags, so the step can no longer
 * end once this list is garbage-collected. Detection turns on when a step has ended with the list that it started with.
 * Detection turns off for the rest of the process when a step ends with another list, because LangChain then copies
 * lists.
 */
const abandoned = new FinalizationRegistry<Step>((step) => {
  if (areTagsKept === true) guard('langchain', () => abandon(step, 'the result was collected before its end'));
});
let areTagsKept: boolean | undefined;

/** Makes runs that start inside an open step children of that step. */
export function installStepSource(): void {
  addStepSource(() => runOfStep(guard('langchain', activeStepId))?.context);
}

export function addStep(id: string, run: Run, handler: object, tags: unknown): Step {
  const isObject = typeof tags === 'object' && tags !== null;
  const step: Step = {
    id,
    run,
    handler,
    tags: isObject ? new WeakRef(tags) : undefined,
    isRequested: false,
    hasTokens: false,
    text: '',
    isChat: false,
  };
  steps.set(id, [...(steps.get(id) ?? []), step]);
  if (isObject) abandoned.register(tags, step, step);
  if (steps.size > STEPS_MAX) {
    const [oldest = []] = steps.values();
    for (const other of oldest) abandon(other, `${STEPS_MAX} other steps are open`);
  }
  return step;
}

/** Returns an open step's run, preferably the run that is sent to `sink`. */
export function runOfStep(id: string | undefined, sink?: RunSink): Run | undefined {
  const known = id === undefined ? undefined : steps.get(id);
  return (known?.find(({ run }) => run.sink === sink) ?? known?.[0])?.run;
}

export function isRecorded(id: string, sink: RunSink): boolean {
  return steps.get(id)?.some(({ run }) => run.sink === sink) ?? false;
}

/**
 * Returns the open step that sends a request to `model`, and marks it as requested. The step is below `around`, the
 * request's context, because models do not become the current step. If LangChain has no `AsyncLocalStorage`, which only
 * some of its packages create, no step becomes current, and any open step that calls the model counts. If the request
 * fails, the caller must set `isRequested` to false, because LangChain repeats the request in the same step.
 */
export function takeModelStep(model: string, around: RunContext | undefined, sink: RunSink): Step | undefined {
  const above = (globalThis as LangChainGlobals)[STORAGE] === undefined ? undefined : around?.dottedOrder;
  for (const step of [...steps.values()].flat()) {
    const { run, isRequested } = step;
    if (isRequested || run.sink !== sink || run.modelCall?.model !== model) continue;
    if (above !== undefined && !run.dottedOrder.startsWith(`${above}.`)) continue;
    step.isRequested = true;
    return step;
  }
  return undefined;
}

export function stepOf(id: string, handler: object): Step | undefined {
  return steps.get(id)?.find((step) => step.handler === handler);
}

/** Removes and returns a step that has ended. */
export function takeStep(id: string, handler: object, tags: unknown): Step | undefined {
  const step = stepOf(id, handler);
  if (step === undefined) return undefined;
  const tagsAtStart = step.tags?.deref();
  if (areTagsKept !== false && tagsAtStart !== undefined && tags !== undefined) areTagsKept = tagsAtStart === tags;
  remove(step);
  return step;
}

function remove(step: Step): void {
  const others = steps.get(step.id)?.filter((other) => other !== step) ?? [];
  if (others.length === 0) steps.delete(step.id);
  else steps.set(step.id, others);
  abandoned.unregister(step);
}

/** Records a model's streamed text if its stream does not reach its end. */
export function keepText({ run, text, isChat }: Step): void {
  if (text === '') return;
  run.keepResult(isChat ? { messages: [{ role: 'assistant', content: text }] } : { text });
}

function abandon(step: Step, reason: string): void {
  remove(step);
  keepText(step);
  step.run.interrupt(reason);
}

/** The global key of LangChain's own `AsyncLocalStorage`, and the key of LangChain's configuration in it. */
const STORAGE = Symbol.for('ls:tracing_async_local_storage');
const CHILD_CONFIG = Symbol.for('lc:child_config');

interface LangChainGlobals {
  readonly [STORAGE]?: { getStore?(): { readonly extra?: { readonly [CHILD_CONFIG]?: ChildConfig } } | undefined };
}

interface ChildConfig {
  readonly callbacks?: { getParentRunId?(): string | undefined };
}

/** Returns the id of the innermost step that contains the running code. */
function activeStepId(): string | undefined {
  const store = (globalThis as LangChainGlobals)[STORAGE]?.getStore?.();
  return store?.extra?.[CHILD_CONFIG]?.callbacks?.getParentRunId?.();
}
