import { guard } from '../../base/guard.ts';
import { shared } from '../../base/shared.ts';
import { parsedJson } from '../../payload/fields.ts';
import { encodePayload } from '../../payload/serialize.ts';
import { addStepSource, type RunContext } from '../../run/context.ts';
import { requestTexts } from '../../run/request-key.ts';
import type { Run } from '../../run/run.ts';
import type { RunSink } from '../../run/sink.ts';

/** Maximum number of open steps. If one more step starts, the oldest open step is abandoned. */
const STEPS_MAX = 10_000;

/** An open LangChain step that one handler records. */
export interface Step {
  readonly id: string;
  readonly run: Run;
  readonly handler: object;
  /** The name of the model, if the step is a model call. */
  readonly model: string | undefined;
  /** The last text in the step's inputs. Empty if there is none, undefined until it is needed. */
  lastText?: string;
  /** The tags list that LangChain passes to every callback of the step. */
  readonly tags: WeakRef<object> | undefined;
  /** Whether the model has sent its request. Reset if that request fails. */
  isRequested: boolean;
  hasTokens: boolean;
  /** The text streamed by the model, up to about the maximum payload size. */
  text: string;
  /** Whether the streamed text belongs to a message. */
  readonly isChat: boolean;
  /** Whether the step is a graph of LangGraph. */
  readonly isGraph: boolean;
  /** The error that a nested step threw last. */
  thrown?: unknown;
  /** If a graph is waiting for input, its interrupts. */
  interrupts?: readonly unknown[];
}

/** The open steps of all handlers, by LangChain's run id. Each sink has at most one step per id. */
const steps: Map<string, Step[]> = shared('langchainSteps', () => new Map());

/**
 * Detects steps that can no longer end. If the application leaves a stream with `break`, LangChain does not report the
 * end of the step. The object that would report the end references the step's list of tags. Once that list is
 * garbage-collected, the step can no longer end. Detection starts when a step ends with the list that it started with.
 * If a step ends with another list, LangChain copies lists, and detection stops for the rest of the process.
 */
const abandoned = new FinalizationRegistry<Step>((step) => {
  if (areTagsKept === true) guard('langchain', () => abandon(step, 'the result was garbage-collected before it ended'));
});
let areTagsKept: boolean | undefined;

/** Makes runs that start inside an open LangChain step children of that step. */
export function installStepSource(): void {
  addStepSource(() => runOfStep(guard('langchain', activeStepId))?.context);
}

export function addStep(
  id: string,
  run: Run,
  handler: object,
  tags: unknown,
  kind: Pick<Step, 'isChat' | 'isGraph' | 'model'>,
): Step {
  const isObject = typeof tags === 'object' && tags !== null;
  const step: Step = {
    id,
    run,
    handler,
    ...kind,
    tags: isObject ? new WeakRef(tags) : undefined,
    isRequested: false,
    hasTokens: false,
    text: '',
  };
  steps.set(id, [...(steps.get(id) ?? []), step]);
  if (isObject) abandoned.register(tags, step, step);
  if (steps.size > STEPS_MAX) {
    const [oldest = []] = steps.values();
    for (const other of oldest) abandon(other, `${STEPS_MAX} other steps are open`);
  }
  return step;
}

/** Returns the run of an open step, preferably the run that is sent to `sink`. */
export function runOfStep(id: string | undefined, sink?: RunSink): Run | undefined {
  const known = id === undefined ? undefined : steps.get(id);
  return (known?.find(({ run }) => run.sink === sink) ?? known?.[0])?.run;
}

export function isRecorded(id: string, sink: RunSink): boolean {
  return steps.get(id)?.some(({ run }) => run.sink === sink) ?? false;
}

/**
 * Returns the open step that sends a request to `model`, and sets its `isRequested`. Only descendants of `around`, the
 * context of the request, are searched, because model steps never become the current step. Without LangChain's
 * `AsyncLocalStorage`, no step is current, and any open step that calls the model matches. If the request fails, the
 * caller must set `isRequested` to false, because LangChain retries in the same step. The request must contain the last
 * text of the step's inputs, so that a direct call of the same model is not taken for the step's request.
 */
export function takeModelStep(
  model: string,
  inputs: unknown,
  around: RunContext | undefined,
  sink: RunSink,
): Step | undefined {
  const above = (globalThis as LangChainGlobals)[STORAGE] === undefined ? undefined : around?.dottedOrder;
  let texts: readonly string[] | undefined;
  for (const step of [...steps.values()].flat()) {
    const { run, isRequested } = step;
    if (isRequested || run.sink !== sink || step.model !== model) continue;
    if (above !== undefined && !run.dottedOrder.startsWith(`${above}.`)) continue;
    step.lastText ??= requestTexts(run.inputs).at(-1) ?? '';
    texts ??= requestTexts(parsedJson(encodePayload('inputs', inputs, sink.capture).json));
    if (step.lastText !== '' && !texts.includes(step.lastText)) continue;
    step.isRequested = true;
    return step;
  }
  return undefined;
}

/** Returns whether a model step is open below `around`. Without LangChain's storage, any open model step counts. */
export function isModelStepOpen(around: RunContext | undefined, sink: RunSink): boolean {
  const above = (globalThis as LangChainGlobals)[STORAGE] === undefined ? undefined : around?.dottedOrder;
  return [...steps.values()].flat().some(({ run: { runType, sink: own, dottedOrder } }) => {
    return runType === 'llm' && own === sink && (above === undefined || dottedOrder.startsWith(`${above}.`));
  });
}

export function stepOf(id: string, handler: object): Step | undefined {
  return steps.get(id)?.find((step) => step.handler === handler);
}

/** Removes a step that has ended and returns it. */
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

/** Records the text streamed so far if a model's stream does not reach its end. */
export function keepText({ run, text, isChat }: Step): void {
  if (text === '') return;
  run.keepResult(isChat ? { messages: [{ role: 'assistant', content: text }] } : { text });
}

function abandon(step: Step, reason: string): void {
  remove(step);
  keepText(step);
  step.run.interrupt(reason);
}

/**
 * `STORAGE` is the global key of LangChain's `AsyncLocalStorage`. `CHILD_CONFIG` is the key of LangChain's
 * configuration in it.
 */
const STORAGE = Symbol.for('ls:tracing_async_local_storage');
const CHILD_CONFIG = Symbol.for('lc:child_config');

interface LangChainGlobals {
  readonly [STORAGE]?: object;
}

interface Storage {
  getStore?(): { readonly extra?: { readonly [CHILD_CONFIG]?: ChildConfig } } | undefined;
}

interface ChildConfig {
  readonly callbacks?: { getParentRunId?(): string | undefined };
}

/**
 * Returns the id of the innermost LangChain step around the running code. Calls the original `getStore`, because
 * `runspan/langsmith` replaces `getStore` to return its own runs.
 */
function activeStepId(): string | undefined {
  const { [STORAGE]: storage } = globalThis as LangChainGlobals;
  const store = storage && (Object.getPrototypeOf(storage) as Storage).getStore?.call(storage);
  return store?.extra?.[CHILD_CONFIG]?.callbacks?.getParentRunId?.();
}
