import { guard } from '../../base/guard.ts';
import { shared } from '../../base/shared.ts';
import { type Fields, fieldsOf, parsedJson, textOf } from '../../payload/fields.ts';
import { encodePayload } from '../../payload/serialize.ts';
import { OpenRuns, type OpenStep } from '../../run/calls/open-runs.ts';
import { requestTexts } from '../../run/calls/request-key.ts';
import type { RunContext } from '../../run/context/context.ts';
import { addStepSource } from '../../run/context/current.ts';
import type { RunSink } from '../../run/sink.ts';

/** What one handler, or LangSmith's tracer, knows of an open LangChain step. */
export interface StepState {
  /** Undefined if LangSmith's tracer or a program posts the step to `runspan/langsmith`. */
  readonly handler: object | undefined;
  /** Number of posted events. When a run ends, LangChain posts all of its events again. */
  events: number;
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
  readonly isGraph: boolean;
  /** The error that a nested step threw last. */
  thrown?: unknown;
  /** If a graph is waiting for input, its interrupts. */
  interrupts?: readonly unknown[];
}

export type Step = OpenStep<string, StepState>;

export function newState(known: Partial<StepState>): StepState {
  const kind = { handler: undefined, model: undefined, tags: undefined, isChat: false, isGraph: false };
  return { ...kind, isRequested: false, hasTokens: false, text: '', events: 0, ...known };
}

/**
 * The open steps of all handlers, and posted runs, by LangChain's run id. Each sink has at most one run per id, whether a
 * handler or LangSmith's tracer reports it first.
 */
export const steps: OpenRuns<string, StepState> = shared('langchainSteps', () => new OpenRuns('LangChain', keepText));

/**
 * Detects steps that can no longer end. If the application leaves a stream with `break`, LangChain does not report the
 * end of the step. The object that would report the end references the step's list of tags. Once that list is
 * garbage-collected, the step can no longer end. Detection starts when a step ends with the list that it started with.
 * If a step ends with another list, LangChain copies lists, and detection stops for the rest of the process.
 */
const abandoned = new FinalizationRegistry<Step>((step) => {
  if (areTagsKept !== true) return;
  guard('langchain', () => steps.abandon(step, 'the result was garbage-collected before it ended'));
});
let areTagsKept: boolean | undefined;

/** Makes runs that start inside an open LangChain step children of that step. */
export function installStepSource(): void {
  addStepSource(() => {
    const id = guard('langchain', activeStepId);
    return steps.find(id)?.below;
  });
}

export function watchTags(step: Step): void {
  const tags = step.state.tags?.deref();
  if (tags !== undefined) abandoned.register(tags, step, step);
}

export function unwatchTags(step: Step, tags: unknown): void {
  const tagsAtStart = step.state.tags?.deref();
  if (areTagsKept !== false && tagsAtStart !== undefined && tags !== undefined) areTagsKept = tagsAtStart === tags;
  abandoned.unregister(step);
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
  let texts: readonly string[] | undefined;
  for (const step of modelSteps(around, sink)) {
    const { run, state } = step;
    if (state.isRequested || state.model !== model) continue;
    state.lastText ??= requestTexts(run?.inputs).at(-1) ?? '';
    texts ??= requestTexts(parsedJson(encodePayload('inputs', inputs, sink.capture).json));
    if (state.lastText !== '' && !texts.includes(state.lastText)) continue;
    state.isRequested = true;
    return step;
  }
  return undefined;
}

/** Returns the open model steps below `around`. Without LangChain's storage, all open model steps. */
export function modelSteps(around: RunContext | undefined, sink: RunSink): Step[] {
  const above = Reflect.get(globalThis, STORAGE) === undefined ? undefined : around?.dottedOrder;
  return steps.all().filter(({ run }) => {
    if (run?.runType !== 'llm' || run.sink !== sink) return false;
    return above === undefined || run.dottedOrder.startsWith(`${above}.`);
  });
}

/** Records the text streamed so far if a model's stream does not reach its end. */
export function keepText({ run, state: { text, isChat } }: Pick<Step, 'run' | 'state'>): void {
  if (text === '') return;
  run?.keepResult(isChat ? { messages: [{ role: 'assistant', content: text }] } : { text });
}

/** The global key of the `AsyncLocalStorage` in which LangChain and langsmith keep the current run tree. */
const STORAGE = Symbol.for('ls:tracing_async_local_storage');
/** The key of LangChain's configuration in a run tree. */
export const CHILD_CONFIG: unique symbol = Symbol.for('lc:child_config');

/**
 * Returns the current run tree of LangChain or langsmith. Calls the original `getStore`, because `runspan/langsmith`
 * replaces `getStore` to return its own runs.
 */
export function storedTree(): Fields {
  const storage: object | undefined = Reflect.get(globalThis, STORAGE);
  return storage === undefined ? {} : fieldsOf(Object.getPrototypeOf(storage).getStore?.call(storage));
}

/** Returns the callbacks of the LangChain step that a run tree belongs to. */
export function callbacksIn({ extra }: Fields): Fields {
  return fieldsOf(fieldsOf(Reflect.get(fieldsOf(extra), CHILD_CONFIG)).callbacks);
}

/** Returns the id of the innermost LangChain step around the running code. */
function activeStepId(): string | undefined {
  const callbacks = callbacksIn(storedTree());
  return typeof callbacks.getParentRunId === 'function' ? textOf(callbacks.getParentRunId()) : undefined;
}
