import { guard } from '../base/guard.ts';
import { type RunContext, setStepSource } from '../run/context.ts';
import type { Run } from '../run/run.ts';
import type { RunSink } from '../run/sink.ts';

/** Steps of LangChain known at once; beyond it the one that began first is taken for abandoned. */
const STEPS_MAX = 10_000;

/** A step of LangChain that has not ended, and the handler that records it. */
export interface Step {
  readonly run: Run;
  readonly handler: object;
  /** The list of tags that LangChain hands out with every callback of the step. */
  readonly tags: WeakRef<object> | undefined;
  /** A model has begun to answer. */
  hasAnswered: boolean;
  /** Of a graph that waits for somebody: what it waits for. */
  interrupts?: readonly unknown[];
}

/** The open steps of all handlers by LangChain's run ids: an id has one step for each sink. */
const steps = new Map<string, Step[]>();

/**
 * LangChain tells nobody when a stream is left by `break`. The object that ends a step holds its list of tags, so when that
 * list is collected nothing can end the step any more. This is believed once a step was seen to end with the list it
 * began with, and not after one has ended with another.
 */
const abandoned = new FinalizationRegistry<{ readonly id: string; readonly run: Run }>(({ id, run }) => {
  if (areTagsKept === true) guard('langchain', () => abandon(id, run, 'the result was collected before its end'));
});
let areTagsKept: boolean | undefined;

/** From now on runs that start inside steps of LangChain are their children. */
export function followSteps(): void {
  setStepSource(activeStep);
}

export function addStep(id: string, run: Run, handler: object, tags: unknown): void {
  const isObject = typeof tags === 'object' && tags !== null;
  const step: Step = { run, handler, tags: isObject ? new WeakRef(tags) : undefined, hasAnswered: false };
  const known = steps.get(id);
  if (known === undefined) steps.set(id, [step]);
  else known.push(step);
  if (isObject) abandoned.register(tags, { id, run }, run);
  if (steps.size > STEPS_MAX) abandonFirst();
}

/** The run of a step that has not ended, of the same sink where there are several. */
export function runOfStep(id: string | undefined, sink?: RunSink): Run | undefined {
  const known = id === undefined ? undefined : steps.get(id);
  if (known === undefined || sink === undefined) return known?.[0]?.run;
  return (known.find(({ run }) => run.sink === sink) ?? known[0])?.run;
}

/** Whether the step is recorded in this sink: two handlers would send it twice. */
export function isRecorded(id: string, sink: RunSink): boolean {
  return steps.get(id)?.some(({ run }) => run.sink === sink) ?? false;
}

/** The step as this handler records it. */
export function ownStep(id: string, handler: object): Step | undefined {
  return steps.get(id)?.find((step) => step.handler === handler);
}

/** The same for the last time: it has ended, and is forgotten. */
export function takeStep(id: string, handler: object, tags: unknown): Step | undefined {
  const step = ownStep(id, handler);
  if (step === undefined) return undefined;
  const begunWith = step.tags?.deref();
  if (areTagsKept !== false && begunWith !== undefined && tags !== undefined) areTagsKept = begunWith === tags;
  forget(id, step.run);
  return step;
}

function forget(id: string, run: Run): void {
  const others = steps.get(id)?.filter((step) => step.run !== run) ?? [];
  if (others.length === 0) steps.delete(id);
  else steps.set(id, others);
  abandoned.unregister(run);
}

function abandonFirst(): void {
  for (const [id, known] of steps) {
    for (const { run } of known) abandon(id, run, `${STEPS_MAX} other steps are open`);
    return;
  }
}

function abandon(id: string, run: Run, reason: string): void {
  forget(id, run);
  run.interrupt(reason);
}

/** LangChain's own AsyncLocalStorage, and where it keeps the configuration of what a step calls. */
const STORAGE = Symbol.for('ls:tracing_async_local_storage');
const CHILD_CONFIG = Symbol.for('lc:child_config');

interface LangChainGlobals {
  readonly [STORAGE]?: { getStore?(): { readonly extra?: { readonly [CHILD_CONFIG]?: ChildConfig } } | undefined };
}

interface ChildConfig {
  readonly callbacks?: { getParentRunId?(): string | undefined };
}

/** The innermost step that this code runs in, where LangChain says so. */
function activeStep(): RunContext | undefined {
  return runOfStep(guard('langchain', activeStepId))?.context;
}

function activeStepId(): string | undefined {
  const store = (globalThis as LangChainGlobals)[STORAGE]?.getStore?.();
  return store?.extra?.[CHILD_CONFIG]?.callbacks?.getParentRunId?.();
}
