import { guard } from '../../base/guard.ts';
import { defined, type Fields, fieldsOf, isPlainObject, textOf } from '../../payload/fields.ts';
import { metadataOfUsage } from '../../payload/usage.ts';
import { OpenRuns, type OpenStep } from '../../run/calls/open-runs.ts';
import { isCallType, MODEL_TYPES, RESPONSE_ID } from '../../run/calls/same-call.ts';
import { enterContext } from '../../run/context/current.ts';
import type { RunType } from '../../run/record.ts';
import type { Run } from '../../run/run.ts';
import { hiddenByEither, hidingIf, type StartOptions, type WrapOptions, wrapOptions } from '../../run/run-options.ts';
import { currentSink } from '../../run/sink.ts';
import { timestampUs } from '../../run/time.ts';
import { aiSdkUsage } from '../../services/ai-sdk/usage.ts';

const PLACE = 'RunspanBridge';
const SOURCE = 'mastra';
/** Spans without a run. A generation consists of steps, a step of a model call and tools. */
const GROUPS: readonly string[] = ['model_generation', 'model_step'];

interface Span {
  readonly id: string;
  readonly parentSpanId?: string;
  readonly type: string;
  readonly name: string;
  readonly startTime?: unknown;
  readonly tags?: readonly string[];
  readonly input?: unknown;
  readonly output?: unknown;
  readonly attributes?: Fields;
  readonly metadata?: Fields;
  readonly errorInfo?: Fields;
}

interface State {
  /** Ids of the steps and model calls of the generation that contains the span. */
  readonly members: string[];
  /** The nearest run above. */
  readonly owner: Run | undefined;
  /** Whether the agent goes on after an approval: the span above it is not open. */
  readonly isResumed: boolean;
  hasToken?: true;
}

type OpenSpan = OpenStep<string, State>;

/**
 * Records the spans of Mastra as runs: agents, workflows, tools and model calls. Pass it as the `bridge` of an
 * `Observability` configuration, so that runs that start inside a span become its children. If the configuration has
 * another bridge, pass it in `exporters`: then only Mastra's own spans form a tree.
 *
 * One bridge can serve all configurations of an `Observability`. Mastra calls its methods, which never throw.
 */
export class RunspanBridge {
  readonly name: string = 'runspan';
  /** Undefined if the bridge must record nothing. */
  readonly #options: ReturnType<typeof wrapOptions>;
  readonly #spans = new OpenRuns<string, State>(PLACE);
  /** What Mastra was asked to hide in the trace of the span that starts next. */
  #hiding: StartOptions['hiding'];

  constructor(options?: WrapOptions) {
    this.#options = wrapOptions(PLACE, options);
  }

  /** Called before a span starts. Leaves the ids of spans to Mastra. */
  createSpan(options?: object): undefined {
    guard(PLACE, () => {
      const { hideInput, hideOutput } = fieldsOf(fieldsOf(options).traceState);
      this.#hiding = hidingIf(hideInput === true, hideOutput === true);
    });
    return undefined;
  }

  executeInContext<Result>(id: string, fn: () => Promise<Result>): Promise<Result> {
    return this.executeInContextSync(id, fn);
  }

  executeInContextSync<Result>(id: string, fn: () => Result): Result {
    const inside = this.#spans.below(id);
    return inside === undefined ? fn() : enterContext(inside, fn);
  }

  async exportTracingEvent({ type, exportedSpan }: { type: string; exportedSpan: object }): Promise<void> {
    const span = exportedSpan as Span;
    guard(PLACE, () => {
      if (span.type === 'model_chunk') this.#token(span.parentSpanId);
      else if (type === 'span_started') this.#start(span);
      else if (type === 'span_updated') this.#update(span);
      // Some spans have only an end, for example those that record an event.
      else this.#end(this.#spans.find(span.id) ?? this.#start(span, timestampUs(span.startTime)), span);
    });
  }

  /** Ends the run of a span whose end is filtered out. */
  releaseSpan(id: string): void {
    this.#end(this.#spans.find(id), {});
  }

  async flush(): Promise<void> {
    await (this.#options?.exporter ?? currentSink())?.flush();
  }

  /** Interrupts the runs of open spans, and flushes. */
  async shutdown(): Promise<void> {
    this.#spans.interrupt('Mastra was shut down');
    await this.flush();
  }

  /** Returns undefined if the span is known, or tracing is off. */
  #start(span: Span, startUs?: number): OpenSpan | undefined {
    const { id, type, parentSpanId = '', name: title, attributes = {}, metadata = {}, tags = [], input } = span;
    // A bridge that is also in Mastra's `exporters` gets each event twice.
    const shared = this.#options;
    if (shared === undefined || this.#spans.has(id)) return undefined;
    const parent = this.#spans.find(parentSpanId);
    const { members: above, isResumed: isResumedAbove = false } = parent?.state ?? {};
    const isResumed = type === 'agent_run' ? parentSpanId !== '' && parent === undefined : isResumedAbove;
    if (type === 'model_step' || type === 'model_inference') above?.push(id);
    const runType = runTypeOf(type);
    // A title contains the name of the component: `tool: 'weather'`.
    const own = textOf(attributes.model) ?? /'(.+)'/.exec(title)?.[1] ?? title;
    const owner = parent?.run ?? parent?.state.owner;
    const isOutermost = owner === undefined && (parent !== undefined || !this.#spans.has(parentSpanId));
    const name = (isOutermost && shared.name) || own;
    const hiding = hiddenByEither(shared.hiding, this.#hiding);
    const options: StartOptions = { ...shared, name, runType, hiding, ...defined({ startUs }) };
    if (tags.length > 0) options.tags = [...(options.tags ?? []), ...tags];
    if (isCallType(runType)) options.source = SOURCE;
    const { threadId, sessionId = threadId, userId, resourceId = userId } = metadata;
    const ids = defined({ thread_id: threadId ?? sessionId, user_id: userId ?? resourceId });
    const inputs = input === undefined ? undefined : () => payloadOf('input', input);
    // Mastra may tell the request of a call only later, with the step.
    let begun: Run | undefined;
    const asked = (): Fields => withoutPreviews(inputs?.() ?? begun?.inputs ?? {});
    const started = (run: Run): void => {
      begun = run;
    };
    return this.#spans.start(id, parentSpanId, options, () => ({
      state: { members: (type === 'model_step' && above) || [], owner, isResumed },
      isGroup: GROUPS.includes(type) || (isResumed && isRepeated(span)),
      inputs,
      call: { inputs: asked },
      description: { ids, metadata: MODEL_TYPES.includes(runType) ? modelMetadata(attributes) : metadata, started },
    }));
  }

  /** Records the first chunk of an answer. Chunks have no runs. */
  #token(id = ''): void {
    const call = this.#spans.find(id);
    if (call === undefined || call.state.hasToken) return;
    call.state.hasToken = true;
    call.run?.event('new_token');
  }

  #update({ id, type, input }: Span): void {
    if (type !== 'model_step' || input === undefined) return;
    // The open model call of the step.
    const member = this.#spans.find(id)?.state.members.at(-1);
    const run = this.#spans.find(member)?.run;
    if (run?.inputs === undefined) run?.set({ inputs: payloadOf('input', input) });
  }

  #end(ended: OpenSpan | undefined, span: Partial<Span>, isTooEarly = false): void {
    const { type, attributes = {}, errorInfo, output } = span;
    const { finishReason, availableTools, toolCallId, status, responseModel, responseId } = attributes;
    this.#spans.end(ended, ({ run, state }) => {
      // Model calls are open at the end of their generation if, for example, the request was aborted.
      const rest = { attributes: { finishReason }, output: output && { text: fieldsOf(output).text } };
      for (const member of state.members) this.#end(this.#spans.find(member), rest, true);
      if (run === undefined) return;
      const usage = run.metadata.usage_metadata === undefined ? aiSdkUsage(attributes.usage, undefined) : undefined;
      const known = { tools: availableTools, tool_call_id: toolCallId, status };
      const answered = { response_model: responseModel, [RESPONSE_ID]: responseId, ...metadataOfUsage(usage) };
      run.set({ metadata: defined(run.runType === 'llm' ? answered : known) });
      if (run.outputs === undefined && output !== undefined) {
        run.keepResult({ ...payloadOf('output', output), ...(usage && { usage_metadata: usage }) });
      }
      // The output of other spans is the application's.
      const isAgentAborted = type === 'agent_run' && fieldsOf(output).status === 'aborted';
      const isAborted = isAgentAborted || (isTooEarly && finishReason === 'aborted');
      if (errorInfo !== undefined) run.fail(errorOf(errorInfo));
      else if (status === 'canceled') run.cancel();
      else if (isAborted) {
        run.isAborted = true;
        run.stoppedBy ??= state.owner?.stoppedBy;
        run.cancel();
      } else if (isTooEarly && finishReason !== 'suspended') run.interrupt('the generation ended first');
      else if (finishReason === 'error') run.fail('the model call failed');
    });
  }
}

/** Whether a span repeats the model call before an approval: Mastra passes on its chunks again, without a request. */
function isRepeated({ type, attributes: { parameters, availableTools, toolChoice } = {} }: Span): boolean {
  return type === 'model_inference' && (parameters ?? availableTools ?? toolChoice) === undefined;
}

function runTypeOf(type: string): RunType {
  if (type === 'model_inference') return 'llm';
  if (type === 'rag_embedding') return 'embedding';
  return type.endsWith('tool_call') ? 'tool' : 'chain';
}

function payloadOf(key: 'input' | 'output', value: unknown): Fields {
  return isPlainObject(value) ? value : { [Array.isArray(value) ? 'messages' : key]: value };
}

/** Matches what Mastra writes instead of a part of a message that is no text. */
const PREVIEW = / ?\[(?:tool(?:-result)?: [^\]]*|image|file|reasoning|object)\]/g;

/** Returns a request without the previews in its messages, so that it can be compared with what is sent. */
function withoutPreviews({ messages, ...others }: Fields): Fields {
  if (!Array.isArray(messages)) return { messages, ...others };
  const texts = messages.map((message) => {
    const { content, ...rest } = fieldsOf(message);
    return { ...rest, content: typeof content === 'string' ? content.replace(PREVIEW, '') : content };
  });
  return { ...others, messages: texts };
}

/** The parameters of a call may contain headers with credentials, and a signal. */
function modelMetadata({ provider, model, parameters, availableTools, toolChoice }: Fields): Fields {
  const { headers: _, abortSignal: __, ...given } = fieldsOf(parameters);
  return {
    ls_provider: textOf(provider)?.split('.', 1)[0],
    ls_model_name: model,
    ls_temperature: given.temperature,
    ls_max_tokens: given.maxOutputTokens,
    ls_invocation_params: defined({ ...given, tools: availableTools, tool_choice: toolChoice }),
  };
}

function errorOf({ name, message, stack }: Fields): Error {
  return Object.assign(new Error(textOf(message) ?? ''), { name: textOf(name) ?? 'Error', stack: textOf(stack) ?? '' });
}
