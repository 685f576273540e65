import { guard } from '../base/guard.ts';
import { errorLine } from '../payload/errors.ts';
import { type Fields, fieldsOf, isFields, isPlainObject, listOf, parsedJson, textOf } from '../payload/fields.ts';
import { AsyncResource } from '../platform/node.ts';
import { setSoon } from '../platform/timers.ts';
import { addStepSource, currentContext, isOff } from '../run/context.ts';
import type { RunChanges } from '../run/hooks.ts';
import type { Run } from '../run/run.ts';
import type { EndOptions, RunOptions } from '../run/run-options.ts';
import { currentSink } from '../run/sink.ts';
import { startRun } from '../run/start-run.ts';
import type { Instrumentation } from './module-hooks.ts';
import { watchProperty } from './watch-property.ts';

const PLACE = 'runspan/register openai-agents';
/** Global property with the trace provider of @openai/agents-core. All copies of the package share the provider. */
const PROVIDER = Symbol.for('openai.agents.core.traceProvider');
/** Maximum number of open spans. Above this number, the run of the oldest open span is interrupted. */
const OPEN_MAX = 10_000;

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
  addStepSource(() => guard(PLACE, () => recorder.current())?.context);
}

/**
 * Types of spans that are not recorded as runs. A `task` repeats the trace. A `turn` only groups a model call and its
 * tool calls. Model calls are recorded through `fetch`.
 */
const HIDDEN: readonly unknown[] = ['task', 'turn', 'generation', 'response'];

class TraceRecorder {
  /** The run of each open trace and span. A hidden span uses the run of its parent. */
  readonly #runs = new Map<string, Run>();
  /** For each trace's run, a function that returns whether the traced function has ended. */
  readonly #hasEnded = new WeakMap<Run, () => boolean>();
  readonly #provider: TraceProvider;

  constructor(provider: TraceProvider) {
    this.#provider = provider;
  }

  current(): Run | undefined {
    return this.#runs.get(this.#provider.getCurrentSpan()?.spanId ?? this.#provider.getCurrentTrace()?.traceId ?? '');
  }

  async onTraceStart({ traceId, name, groupId, metadata }: Trace): Promise<void> {
    if (currentSink() === undefined) return;
    guard(PLACE, () => {
      const thread = typeof groupId === 'string' ? { thread_id: groupId } : {};
      const run = startRun({ name, runType: 'chain', metadata: { ...metadata, ...thread } });
      if (isOff(run.context)) return;
      this.#add(traceId, run);
      // The SDK calls this method in the context of the trace, and clears the context when the traced function ends.
      this.#hasEnded.set(
        run,
        AsyncResource.bind(() => this.#provider.getCurrentTrace() === null),
      );
    });
  }

  async onTraceEnd({ traceId }: Trace): Promise<void> {
    guard(PLACE, () => this.#take(traceId)?.end());
  }

  async onSpanStart({ spanId, traceId, parentId, spanData }: Span): Promise<void> {
    guard(PLACE, () => {
      const parent = this.#runs.get(parentId ?? traceId);
      // The SDK knows the parent of a span, and the program may be off inside of it.
      const isUnsampled = parent?.context.sampled === true && currentContext()?.sampled === false;
      if (parent !== undefined && !isUnsampled) {
        this.#add(spanId, HIDDEN.includes(spanData.type) ? parent : parent.child(runOptions(spanData)));
      }
    });
  }

  async onSpanEnd({ spanId, traceId, parentId, spanData, error, endedAt }: Span): Promise<void> {
    guard(PLACE, () => {
      const run = this.#take(spanId);
      if (run === undefined) return;
      // The message is the same for most errors, for example "Error in agent run". The cause is in the data.
      const problem = isFields(error) ? errorLine(error.message, fieldsOf(error.data).error) || 'Error' : undefined;
      if (problem !== undefined && !parentId) setSoon(() => this.#failIfLeft(traceId, problem));
      if (HIDDEN.includes(spanData.type)) {
        for (const owner of [run, this.#runs.get(traceId)]) if (owner !== undefined) setMessages(owner, spanData);
        return;
      }
      const end = typeof endedAt === 'string' ? { endTime: endedAt } : {};
      run.set(payloadsOf(spanData));
      // Recorded as text, because an `Error` made here has a stack of this package.
      if (problem === undefined) run.end(undefined, end);
      else failWith(run, problem, end);
    });
  }

  async forceFlush(): Promise<void> {
    for (const id of this.#runs.keys()) this.#failIfLeft(id, 'the function of the trace has failed');
  }

  shutdown(): Promise<void> {
    return this.forceFlush();
  }

  /** Ends the run of a trace if the traced function has thrown. The SDK does not end such a trace. */
  #failIfLeft(traceId: string, error: string): void {
    guard(PLACE, () => {
      const run = this.#runs.get(traceId);
      if (run === undefined || this.#hasEnded.get(run)?.() !== true) return;
      this.#runs.delete(traceId);
      failWith(run, error);
    });
  }

  #add(id: string, run: Run): void {
    this.#runs.set(id, run);
    if (this.#runs.size <= OPEN_MAX) return;
    const [[oldest, other] = []] = this.#runs;
    this.#runs.delete(oldest as string);
    // A hidden span shares the run of an earlier span. If it is the oldest, the earlier span has already ended the run.
    other?.interrupt(`${OPEN_MAX} other spans are open`);
  }

  #take(id: string): Run | undefined {
    const run = this.#runs.get(id);
    this.#runs.delete(id);
    return run;
  }
}

/** Matches the text of an error that reports an abort. The error of the OpenAI client has the name `Error`. */
const ABORTED = /\b(?:AbortError|APIUserAbortError|Error: Request was aborted\.)/;

function failWith(run: Run, problem: string, end?: EndOptions): void {
  if (ABORTED.test(problem)) run.set({ metadata: { end_reason: 'cancelled' } });
  run.fail(problem, end);
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

/** A trace or an agent gets the inputs of its first model call and the outputs of its last model call. */
function setMessages(run: Run, { type, input, output, _input, _response }: Fields): void {
  if (type !== 'generation' && type !== 'response') return;
  const [completion] = listOf(output);
  const [choice] = listOf(fieldsOf(completion).choices);
  const message = fieldsOf(choice).message;
  if (Object.keys(run.inputs ?? {}).length === 0) run.set({ inputs: { messages: input ?? _input } });
  run.set({ outputs: { messages: message === undefined ? (output ?? fieldsOf(_response).output) : [message] } });
}
