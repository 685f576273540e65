import { guard } from '../../base/guard.ts';
import { errorLine } from '../../payload/errors.ts';
import { type Fields, fieldsOf, isFields, isPlainObject, listOf, parsedJson, textOf } from '../../payload/fields.ts';
import { AsyncResource } from '../../platform/node.ts';
import { setSoon } from '../../platform/timers.ts';
import { OpenRuns } from '../../run/calls/open-runs.ts';
import type { RunContext } from '../../run/context/context.ts';
import { addStepSource } from '../../run/context/current.ts';
import type { RunChanges } from '../../run/hooks.ts';
import type { Run } from '../../run/run.ts';
import type { EndOptions, RunOptions } from '../../run/run-options.ts';
import type { Instrumentation } from '../module-hooks.ts';
import { watchProperty } from '../watch-property.ts';

const PLACE = 'runspan/register openai-agents';
/** Global property with the trace provider of @openai/agents-core. All copies of the package share the provider. */
const PROVIDER = Symbol.for('openai.agents.core.traceProvider');

interface Trace {
  readonly traceId: string;
  readonly name: string;
  readonly groupId?: string | null;
  readonly metadata?: Fields;
}

interface Span {
  readonly spanId: string;
  readonly traceId: string;
  readonly parentId?: string | null;
  readonly spanData: Fields;
  readonly error?: unknown;
  readonly endedAt?: string | null;
}

interface TraceProvider {
  getCurrentSpan(): Span | null;
  getCurrentTrace(): Trace | null;
  registerProcessor(processor: object): void;
  setProcessors(processors: readonly object[]): void;
}

/** Records traces of the OpenAI Agents SDK with a trace processor. */
export const agents: Instrumentation = {
  name: 'openai-agents',
  start() {
    watchProperty(PLACE, globalThis, PROVIDER, (provider) => observe(provider as TraceProvider));
  },
};

function observe(provider: TraceProvider): void {
  const recorder = new TraceRecorder(provider);
  provider.registerProcessor(recorder);
  // `setProcessors` is patched, because the package replaces all processors when it is loaded.
  const replace = provider.setProcessors;
  provider.setProcessors = (processors) => Reflect.apply(replace, provider, [[recorder, ...processors]]);
  addStepSource(() => guard(PLACE, () => recorder.current()));
}

/**
 * Types of spans that are not recorded as runs. A `task` repeats the trace. A `turn` only groups a model call and its
 * tool calls. Model calls are recorded through `fetch`.
 */
const HIDDEN: readonly unknown[] = ['task', 'turn', 'generation', 'response'];

interface State {
  /** For a hidden span, the nearest run above. */
  readonly owner?: Run | undefined;
  /** For a trace, a function that returns whether the traced function has ended. */
  readonly hasEnded?: () => boolean;
  /** For a trace, the error of its last span, in the turn of the event loop in which the span has ended. */
  problem?: string | undefined;
}

class TraceRecorder {
  readonly #steps = new OpenRuns<string, State>(PLACE);
  readonly #provider: TraceProvider;

  constructor(provider: TraceProvider) {
    this.#provider = provider;
  }

  current(): RunContext | undefined {
    return this.#steps.below(this.#provider.getCurrentSpan()?.spanId ?? this.#provider.getCurrentTrace()?.traceId);
  }

  async onTraceStart({ traceId, name, groupId, metadata }: Trace): Promise<void> {
    guard(PLACE, () => {
      const thread = typeof groupId === 'string' ? { thread_id: groupId } : {};
      // The SDK calls this method in the context of the trace, and clears the context when the traced function ends.
      const hasEnded = AsyncResource.bind(() => this.#provider.getCurrentTrace() === null);
      const options = { name, runType: 'chain', metadata: { ...metadata, ...thread } };
      this.#steps.start(traceId, undefined, options, () => ({ state: { hasEnded } }));
    });
  }

  /** If a stream fails, the SDK ends the trace at once, as after a function that handles the error and returns. */
  async onTraceEnd({ traceId }: Trace): Promise<void> {
    this.#steps.end(this.#steps.find(traceId), ({ run, state }) => run && endWith(run, state.problem));
  }

  /** After an approval, the SDK goes on with the spans of a trace that has ended. */
  async onSpanStart({ spanId, traceId, parentId, spanData }: Span): Promise<void> {
    guard(PLACE, () => {
      const parent = parentId && this.#steps.has(parentId) ? parentId : traceId;
      const isGroup = HIDDEN.includes(spanData.type);
      this.#keepProblem(traceId, undefined);
      const above = isGroup ? this.#steps.find(parent) : undefined;
      const state = { owner: above?.run ?? above?.state.owner };
      this.#steps.start(spanId, parent, runOptions(spanData), () => ({ isGroup, state }));
    });
  }

  async onSpanEnd({ spanId, traceId, parentId, spanData, error, endedAt }: Span): Promise<void> {
    this.#steps.end(this.#steps.find(spanId), ({ run, state }) => {
      // The message is the same for most errors, for example "Error in agent run". The cause is in the data.
      const problem = isFields(error) ? errorLine(error.message, fieldsOf(error.data).error) || 'Error' : undefined;
      if (problem !== undefined && !parentId) {
        this.#keepProblem(traceId, problem);
        setSoon(() => this.#failIfLeft(traceId, problem));
      }
      const trace = this.#steps.find(traceId)?.run;
      const owners = run === undefined ? [state.owner, trace] : [];
      const isStopped = problem === undefined && state.owner?.stoppedBy !== undefined;
      for (const owner of owners) if (owner !== undefined) setMessages(owner, spanData, isStopped);
      // If the traced function is still running in the next turn, it has handled the abort.
      if (trace !== undefined && !parentId)
        setSoon(() => {
          trace.isAborted = false;
        });
      if (run === undefined) return;
      const end = typeof endedAt === 'string' ? { endTime: endedAt } : {};
      run.set(payloadsOf(spanData));
      // Recorded as text, because an `Error` made here has a stack of this package.
      endWith(run, problem, end);
    });
  }

  async forceFlush(): Promise<void> {
    for (const { id } of this.#steps.all()) this.#failIfLeft(id, 'the function of the trace has failed');
  }

  shutdown(): Promise<void> {
    return this.forceFlush();
  }

  #keepProblem(traceId: string, problem: string | undefined): void {
    const trace = this.#steps.find(traceId);
    if (trace !== undefined) trace.state.problem = problem;
  }

  /** Ends the run of a trace if the traced function has thrown. The SDK does not end such a trace. */
  #failIfLeft(traceId: string, error: string): void {
    this.#keepProblem(traceId, undefined);
    const step = this.#steps.find(traceId);
    if (guard(PLACE, () => step?.state.hasEnded?.()) !== true) return;
    this.#steps.end(step, ({ run }) => run && endWith(run, error));
  }
}

/** Matches the text of an error that reports an abort. The error of the OpenAI client has the name `Error`. */
const ABORTED = /(?:^|: )(?:AbortError|APIUserAbortError)\b|: Error: Request was aborted\.$/;

function endWith(run: Run, problem: string | undefined, end?: EndOptions): void {
  if (problem !== undefined) {
    run.isAborted = ABORTED.test(problem);
    run.fail(problem, end);
  } else if (run.isAborted) run.cancel();
  else run.end(undefined, end);
}

function runOptions({ type, name, tools, handoffs }: Fields): RunOptions {
  return {
    name: textOf(name) ?? textOf(type) ?? 'span',
    runType: type === 'function' ? 'tool' : 'chain',
    ...(type === 'agent' && { metadata: { tools, handoffs } }),
  };
}

/** Returns the inputs and outputs of a span. For agents, inputs and outputs come from the model calls instead. */
function payloadsOf({ type, name: _name, ...data }: Fields): RunChanges {
  if (type === 'agent') return {};
  if (type !== 'function') return { outputs: type === 'custom' ? data.data : data };
  // Tool arguments and results are often JSON text.
  const [input, output] = [data.input, data.output].map((value) => parsedJson(value as string));
  return { inputs: isPlainObject(input) ? input : { input }, outputs: { output } };
}

/**
 * A trace or an agent gets the inputs of its first model call and the outputs of its last model call. If the request of
 * that was stopped, and it has neither an answer nor an error, the spans above have no errors either.
 */
function setMessages(run: Run, { type, input, output, _input, _response }: Fields, isStopped: boolean): void {
  if (type !== 'generation' && type !== 'response') return;
  const [completion] = listOf(output);
  const [choice] = listOf(fieldsOf(completion).choices);
  const message = fieldsOf(choice).message;
  const question = input ?? _input;
  const answer = message === undefined ? (output ?? fieldsOf(_response).output) : [message];
  if (Object.keys(run.inputs ?? {}).length === 0) run.set({ inputs: { messages: question } });
  run.set({ outputs: { messages: answer } });
  run.isAborted = isStopped && answer === undefined;
}
