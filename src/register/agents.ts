import { guard } from '../base/guard.ts';
import { type Fields, fieldsOf, isFields, isPlainObject, listOf, parsedJson, textOf } from '../payload/fields.ts';
import { addStepSource } from '../run/context.ts';
import type { Run } from '../run/run.ts';
import type { RunChanges } from '../run/run-hooks.ts';
import type { RunOptions } from '../run/run-options.ts';
import { currentSink } from '../run/sink.ts';
import { startRun } from '../run/start-run.ts';
import type { Instrumentation } from './module-hooks.ts';
import { watchProperty } from './watch-property.ts';

const PLACE = 'runspan/register openai-agents';
/** The global property in which @openai/agents-core stores its trace provider, which all copies of the package share. */
const PROVIDER = Symbol.for('openai.agents.core.traceProvider');
/** Maximum number of open spans. If one more span starts, the oldest open span is no longer recorded. */
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
  readonly error?: { readonly message: string } | null;
  readonly endedAt?: string | null;
}

interface TraceProvider {
  getCurrentSpan(): Span | null;
  getCurrentTrace(): Trace | null;
  registerProcessor(processor: object): void;
  setProcessors(processors: readonly object[]): void;
}

/** Records the traces of the OpenAI Agents SDK with a trace processor. */
export const agents: Instrumentation = {
  name: 'openai-agents',
  start() {
    watchProperty(PLACE, globalThis, PROVIDER, (provider) => observe(provider as TraceProvider));
    return undefined;
  },
};

function observe(provider: TraceProvider): void {
  const recorder = new TraceRecorder();
  provider.registerProcessor(recorder);
  // The package itself replaces all processors when it is loaded.
  const replace = provider.setProcessors;
  provider.setProcessors = (processors) => Reflect.apply(replace, provider, [[recorder, ...processors]]);
  addStepSource(() => guard(PLACE, () => recorder.current(provider))?.context);
}

/**
 * The spans that are not recorded as runs. `task` repeats the trace, and a `turn` contains a model call and the tools
 * that it calls. The recorder of `fetch` records the model calls.
 */
const HIDDEN: readonly unknown[] = ['task', 'turn', 'generation', 'response'];

class TraceRecorder {
  /** The run of each open trace and span. The run of a hidden span is the run of its parent. */
  readonly #runs = new Map<string, Run>();

  current(provider: TraceProvider): Run | undefined {
    return this.#runs.get(provider.getCurrentSpan()?.spanId ?? provider.getCurrentTrace()?.traceId ?? '');
  }

  async onTraceStart({ traceId, name, groupId, metadata }: Trace): Promise<void> {
    if (currentSink() === undefined) return;
    guard(PLACE, () => {
      const thread = typeof groupId === 'string' ? { thread_id: groupId } : {};
      this.#add(traceId, startRun({ name, runType: 'chain', metadata: { ...metadata, ...thread } }));
    });
  }

  async onTraceEnd({ traceId }: Trace): Promise<void> {
    guard(PLACE, () => this.#take(traceId)?.end());
  }

  async onSpanStart({ spanId, traceId, parentId, spanData }: Span): Promise<void> {
    guard(PLACE, () => {
      const parent = this.#runs.get(parentId ?? traceId);
      if (parent !== undefined) {
        this.#add(spanId, HIDDEN.includes(spanData.type) ? parent : parent.child(runOptions(spanData)));
      }
    });
  }

  async onSpanEnd({ spanId, traceId, spanData, error, endedAt }: Span): Promise<void> {
    guard(PLACE, () => {
      const run = this.#take(spanId);
      if (run === undefined) return;
      if (HIDDEN.includes(spanData.type)) {
        for (const owner of [run, this.#runs.get(traceId)]) if (owner !== undefined) setMessages(owner, spanData);
        return;
      }
      const end = typeof endedAt === 'string' ? { endTime: endedAt } : {};
      run.set(payloadsOf(spanData));
      if (isFields(error)) run.fail(new Error(error.message), end);
      else run.end(undefined, end);
    });
  }

  async forceFlush(): Promise<void> {}
  async shutdown(): Promise<void> {}

  #add(id: string, run: Run): void {
    this.#runs.set(id, run);
    if (this.#runs.size > OPEN_MAX) this.#runs.delete(this.#runs.keys().next().value as string);
  }

  #take(id: string): Run | undefined {
    const run = this.#runs.get(id);
    this.#runs.delete(id);
    return run;
  }
}

function runOptions({ type, name, tools, handoffs }: Fields): RunOptions {
  return {
    name: textOf(name) ?? textOf(type) ?? 'span',
    runType: type === 'function' ? 'tool' : 'chain',
    ...(type === 'agent' && { metadata: { tools, handoffs } }),
  };
}

/** The payloads of an agent are those of its model calls. */
function payloadsOf({ type, name: _name, ...data }: Fields): RunChanges {
  if (type === 'agent') return {};
  if (type !== 'function') return { outputs: type === 'custom' ? data.data : data };
  // The arguments and the result of a tool are often JSON text.
  const [input, output] = [data.input, data.output].map((value) => parsedJson(value as string));
  return { inputs: isPlainObject(input) ? input : { input }, outputs: { output } };
}

/** Sets the inputs and outputs of a trace or an agent to those of its first and its last model call. */
function setMessages(run: Run, { type, input, output, _input, _response }: Fields): void {
  if (type !== 'generation' && type !== 'response') return;
  const [completion] = listOf(output);
  const [choice] = listOf(fieldsOf(completion).choices);
  const message = fieldsOf(choice).message;
  if (Object.keys(run.inputs ?? {}).length === 0) run.set({ inputs: { messages: input ?? _input } });
  run.set({ outputs: { messages: message === undefined ? (output ?? fieldsOf(_response).output) : [message] } });
}
