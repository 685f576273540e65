import { guard } from '../../base/guard.ts';
import { defined, type Fields, fieldsOf, isPlainObject, listOf, parsedJson, textOf } from '../../payload/fields.ts';
import { prepareRun } from '../../run/begin.ts';
import {
  type Completion,
  currentContext,
  enterContext,
  PACKAGE_COPY,
  type RunContext,
  type RunOwner,
} from '../../run/context.ts';
import type { RunType } from '../../run/record.ts';
import { beginRun, type Run } from '../../run/run.ts';
import { type StartOptions, sharedChecks, usableOptions } from '../../run/run-options.ts';
import { CALL_TYPES, RESPONSE_ID, SOURCES } from '../../run/same-call.ts';
import { currentSink, preloadDelivery } from '../../run/sink.ts';
import type { TracedClientOptions } from '../sdk-client.ts';
import { readUsage, type UsagePaths } from '../usage.ts';

const PLACE = 'RunspanBridge';
/** The name of this integration among the sources of a run. */
const SOURCE = 'mastra';
/** Maximum number of open spans. Above this number, the run of the oldest open span is interrupted. */
const OPEN_MAX = 10_000;

/** Options of `RunspanBridge`. Every option is optional. */
export type RunspanBridgeOptions = Omit<TracedClientOptions, 'enabled'>;

interface Span {
  readonly id: string;
  readonly parentSpanId?: string;
  readonly type: string;
  readonly name: string;
  readonly tags?: readonly string[];
  readonly input?: unknown;
  readonly output?: unknown;
  readonly attributes?: Fields;
  readonly metadata?: Fields;
  readonly errorInfo?: Fields;
}

interface OpenSpan {
  /** The run of the span. A model's step has the run of its model call. */
  run?: Run;
  /** The context of nested spans. */
  readonly below: RunContext | undefined;
  /** The context in which Mastra executes the span. */
  inside: RunContext | undefined;
  /** The model calls of the generation that contains the span. */
  readonly calls?: Run[];
  hasToken?: true;
  /** The error of the model call, if another source records it. */
  failure?: string | undefined;
}

/** Spans without a run of their own. A generation consists of steps, and a step of a model call and its tools. */
const GROUPS: ReadonlySet<string> = new Set(['model_generation', 'model_step']);

/**
 * Records the spans of Mastra as runs: agents, workflows, tools and model calls. Pass it as the `bridge` of an
 * `Observability` configuration, so that runs that start inside a span become its children. If the configuration has
 * another bridge, pass it in `exporters`: then only Mastra's own spans form a tree.
 *
 * One bridge can serve several configurations. Mastra calls the methods. They never throw.
 */
export class RunspanBridge {
  readonly name: string = 'runspan';
  readonly #options: RunspanBridgeOptions;
  readonly #open = new Map<string, OpenSpan>();

  constructor(options?: RunspanBridgeOptions) {
    this.#options = usableOptions<RunspanBridgeOptions>(PLACE, options, sharedChecks);
    preloadDelivery();
  }

  /** Leaves the ids of spans to Mastra. */
  createSpan(): undefined {
    return undefined;
  }

  executeInContext<Result>(id: string, fn: () => Promise<Result>): Promise<Result> {
    return this.executeInContextSync(id, fn);
  }

  executeInContextSync<Result>(id: string, fn: () => Result): Result {
    const inside = this.#open.get(id)?.inside;
    return inside === undefined ? fn() : enterContext(inside, fn);
  }

  async exportTracingEvent({ type, exportedSpan }: { type: string; exportedSpan: object }): Promise<void> {
    const span = exportedSpan as Span;
    guard(PLACE, () => {
      if (span.type === 'model_chunk') this.#token(span.parentSpanId);
      else if (type === 'span_started') this.#start(span);
      else if (type === 'span_updated') this.#update(span);
      else this.#end(span);
    });
  }

  async flush(): Promise<void> {
    await (this.#options.exporter ?? currentSink())?.flush();
  }

  /** Interrupts the runs of open spans, and flushes. */
  async shutdown(): Promise<void> {
    for (const { run } of this.#open.values()) run?.interrupt('Mastra was shut down');
    this.#open.clear();
    await this.flush();
  }

  #start(span: Span): void {
    // A bridge that is also an exporter gets each event twice.
    if (this.#open.has(span.id)) return;
    const parent = this.#open.get(span.parentSpanId ?? '');
    const above = parent?.below;
    if (GROUPS.has(span.type)) {
      this.#add(span.id, { below: above, inside: above, calls: parent?.calls ?? [] });
      return;
    }
    const run = this.#begin(span, above);
    const open: OpenSpan = { run, below: run.context, inside: run.context };
    this.#add(span.id, open);
    if (span.type !== 'model_inference' || parent === undefined) return;
    parent.run = run;
    parent.calls?.push(run);
    parent.inside = Object.freeze({ ...run.context, owner: ownerOf(run, open) });
  }

  #begin({ type, name: title, attributes = {}, metadata = {}, tags = [], input }: Span, above?: RunContext): Run {
    const runType = runTypeOf(type);
    const isModel = runType === 'llm' || runType === 'embedding';
    // A title contains the name of the component: `tool: 'weather'`.
    const name = textOf(attributes.model) ?? /'(.+)'/.exec(title)?.[1] ?? title;
    const options: StartOptions = { ...this.#options, name, runType };
    if (tags.length > 0) options.tags = [...(options.tags ?? []), ...tags];
    const call = CALL_TYPES.includes(runType) ? { type: runType, name, source: SOURCE } : undefined;
    if (call !== undefined) options.source = SOURCE;
    const current = currentContext(options.exporter);
    const isInside = above?.dottedOrder === undefined || current?.dottedOrder?.startsWith(`${above.dottedOrder}.`);
    const inputs = input === undefined ? undefined : () => payloadOf('input', input);
    const { threadId, sessionId = threadId, userId, resourceId = userId } = metadata;
    const ids = defined({ thread_id: threadId ?? sessionId, user_id: userId ?? resourceId });
    const details = { ids, metadata: isModel ? modelMetadata(attributes) : metadata };
    return beginRun(prepareRun(options, isInside ? current : above, inputs), details, call);
  }

  /** Records the first chunk of an answer. Chunks have no runs. */
  #token(id = ''): void {
    const call = this.#open.get(id);
    if (call === undefined || call.hasToken) return;
    call.hasToken = true;
    call.run?.event('new_token');
  }

  #update({ id, type, input }: Span): void {
    const run = this.#open.get(id)?.run;
    if (type !== 'model_step' || input === undefined || run?.inputs !== undefined) return;
    run?.set({ inputs: payloadOf('input', input) });
  }

  #end({ id, type, attributes = {}, errorInfo, output }: Span): void {
    const span = this.#open.get(id);
    this.#open.delete(id);
    const { finishReason, availableTools, toolCallId, status, responseModel, responseId } = attributes;
    if (type === 'model_generation') endCalls(span?.calls ?? [], finishReason, output);
    const run = span?.run;
    if (run === undefined || GROUPS.has(type)) return;
    const usage = run.metadata.usage_metadata === undefined ? readUsage(attributes.usage, USAGE) : undefined;
    const known = { tools: availableTools, tool_call_id: toolCallId, status };
    const answered = { response_model: responseModel, [RESPONSE_ID]: responseId, usage_metadata: usage };
    run.set({ metadata: defined(run.runType === 'llm' ? answered : known) });
    if (run.outputs === undefined && output !== undefined) {
      run.keepResult({ ...payloadOf('output', output), ...(usage && { usage_metadata: usage }) });
    }
    if (errorInfo !== undefined) run.fail(errorOf(errorInfo));
    else if (finishReason === 'error') run.fail(span?.failure ?? 'the model call failed');
    else if (fieldsOf(output).status === 'aborted') run.cancel();
    else run.end();
  }

  #add(id: string, span: OpenSpan): void {
    this.#open.set(id, span);
    if (this.#open.size <= OPEN_MAX) return;
    const [[oldest, other] = []] = this.#open;
    this.#open.delete(oldest as string);
    other?.run?.interrupt(`${OPEN_MAX} other spans are open`);
  }
}

/** Ends the model calls that are open when their generation ends, for example because the request was aborted. */
function endCalls(calls: readonly Run[], finishReason: unknown, output: unknown): void {
  for (const run of calls.filter(({ isOpen }) => isOpen)) {
    run.keepResult({ text: fieldsOf(output).text });
    if (finishReason === 'aborted') run.cancel();
    else run.interrupt('the generation ended first');
  }
}

/**
 * Returns the owner of a context in which another source, such as the recorder of `fetch`, completes a model call. Mastra
 * shortens messages, for example the results of tools.
 */
function ownerOf(run: Run, span: OpenSpan): RunOwner {
  const { context, parentRunId, capture, call, sink } = run;
  const completion: Completion = {
    ...{ context, parentRunId, capture: { ...capture, hooks: undefined } },
    start: () => true,
    end({ inputs, outputs, attachments = [], metadata = [], error }) {
      span.failure = error;
      if (error !== undefined || !run.isOpen) return;
      if (inputs !== undefined) run.set({ inputs: fieldsOf(parsedJson(inputs)) });
      if (outputs !== undefined) run.set({ outputs: fieldsOf(parsedJson(outputs)) });
      for (const { name, bytes, mimeType } of attachments) run.attach(name, bytes, mimeType);
      const given = Object.fromEntries(Array.from(metadata, ([key, json]) => [key, parsedJson(json)]));
      run.set({ metadata: { ...given, [SOURCES]: [SOURCE, ...listOf(given[SOURCES])] } });
    },
  };
  return { packageCopy: PACKAGE_COPY, sink, call, completion };
}

function runTypeOf(type: string): RunType {
  if (type === 'model_inference') return 'llm';
  if (type === 'rag_embedding') return 'embedding';
  return type.endsWith('tool_call') ? 'tool' : 'chain';
}

function payloadOf(key: 'input' | 'output', value: unknown): Fields {
  return isPlainObject(value) ? value : { [Array.isArray(value) ? 'messages' : key]: value };
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

const USAGE: UsagePaths = {
  input_tokens: ['inputTokens'],
  output_tokens: ['outputTokens'],
  input_token_details: {
    cache_read: ['inputDetails.cacheRead'],
    cache_creation: ['inputDetails.cacheWrite'],
    ephemeral_5m_input_tokens: ['inputDetails.cacheWrite5m'],
    ephemeral_1hr_input_tokens: ['inputDetails.cacheWrite1h'],
  },
  output_token_details: { reasoning: ['outputDetails.reasoning'] },
};

function errorOf({ name, message, stack }: Fields): Error {
  return Object.assign(new Error(textOf(message) ?? ''), { name: textOf(name) ?? 'Error', stack: textOf(stack) ?? '' });
}
