import { guard } from '../../base/guard.ts';
import {
  defined,
  type Fields,
  fieldsOf,
  isPlainObject,
  listOf,
  parsedJson,
  textOf,
  without,
} from '../../payload/fields.ts';
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
import type { CallOptions } from '../sdk-client.ts';
import { readUsage, type UsagePaths } from '../usage.ts';

const PLACE = 'RunspanBridge';
/** The name of this integration among the sources of a run. */
const SOURCE = 'mastra';
/** Maximum number of open spans. Above this number, the run of the oldest open span is interrupted. */
const OPEN_MAX = 10_000;

/** Options of `RunspanBridge`. Every option is optional. */
export type RunspanBridgeOptions = CallOptions;

/** An event of Mastra's tracing. */
export interface MastraTracingEvent {
  readonly type: string;
  readonly exportedSpan: object;
}

interface Span {
  readonly id: string;
  readonly parentSpanId?: string;
  readonly type: string;
  readonly name: string;
  readonly isEvent?: boolean;
  readonly tags?: readonly string[];
  readonly input?: unknown;
  readonly output?: unknown;
  readonly attributes?: Fields;
  readonly metadata?: Fields;
  readonly errorInfo?: Fields;
}

/** An open span. */
interface OpenSpan {
  /** The run of the span. The run of a model's step is that of its model call. Undefined if the span has none. */
  run: Run | undefined;
  /** The context of nested spans. */
  readonly below: RunContext | undefined;
  /** The context in which Mastra executes the span. */
  inside: RunContext | undefined;
}

/** Spans that have no run. A generation groups the steps of a model, and a step the model call and its tools. */
const GROUPS: ReadonlySet<string> = new Set(['model_generation', 'model_step']);

/** Types of runs that are not `chain`. */
const RUN_TYPES: ReadonlyMap<string, RunType> = new Map([
  ['model_inference', 'llm'],
  ['tool_call', 'tool'],
  ['mcp_tool_call', 'tool'],
  ['client_tool_call', 'tool'],
  ['provider_tool_call', 'tool'],
  ['rag_embedding', 'embedding'],
]);

/**
 * Records the spans of Mastra as runs: agents, workflows, tools and model calls. Pass it to Mastra as the `bridge` of an
 * `Observability` configuration. Runs that start inside a span become its children. If the configuration has another
 * bridge, pass it in `exporters` instead: then only Mastra's own spans form a tree.
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

  /** Leaves the ids of a span to Mastra. */
  createSpan(): undefined {
    return undefined;
  }

  /** Ends the run of a span that Mastra does not export. */
  releaseSpan(id: string): void {
    this.#take(id)?.run?.end();
  }

  executeInContext<Result>(id: string, fn: () => Promise<Result>): Promise<Result> {
    return this.executeInContextSync(id, fn);
  }

  executeInContextSync<Result>(id: string, fn: () => Result): Result {
    const inside = this.#open.get(id)?.inside;
    return inside === undefined ? fn() : enterContext(inside, fn);
  }

  async exportTracingEvent({ type, exportedSpan }: MastraTracingEvent): Promise<void> {
    const span = exportedSpan as Span;
    guard(PLACE, () => {
      if (span.type === 'model_chunk') this.#open.get(span.parentSpanId ?? '')?.run?.event('new_token');
      else if (type === 'span_started') this.#start(span);
      else if (type === 'span_updated') this.#update(span);
      else this.#end(span);
    });
  }

  async flush(): Promise<void> {
    await (this.#options.exporter ?? currentSink())?.flush();
  }

  /** Interrupts the runs of spans that have not ended, and flushes. */
  async shutdown(): Promise<void> {
    for (const { run } of this.#open.values()) run?.interrupt('Mastra was shut down');
    this.#open.clear();
    await this.flush();
  }

  #start(span: Span): void {
    // A bridge that is also passed in `exporters` gets each event twice.
    if (this.#open.has(span.id)) return;
    const parent = this.#open.get(span.parentSpanId ?? '');
    const above = parent?.below;
    if (GROUPS.has(span.type)) {
      this.#add(span.id, { run: undefined, below: above, inside: above });
      return;
    }
    const run = this.#begin(span, above);
    const { context } = run;
    this.#add(span.id, { run, below: context, inside: context });
    if (span.type !== 'model_inference' || parent === undefined) return;
    parent.run = run;
    parent.inside = Object.freeze({ ...context, owner: ownerOf(run) });
  }

  #begin(span: Span, above: RunContext | undefined): Run {
    const { attributes = {}, metadata = {}, tags = [], input } = span;
    const runType = RUN_TYPES.get(span.type) ?? 'chain';
    const isCall = CALL_TYPES.includes(runType);
    // A name contains the type and the name of the component: `tool: 'weather'`.
    const name = textOf(attributes.model) ?? /'(.+)'/.exec(span.name)?.[1] ?? span.name;
    const options: StartOptions = { ...this.#options, name, runType, tags: [...(this.#options.tags ?? []), ...tags] };
    if (isCall) options.source = SOURCE;
    const current = currentContext(options.exporter);
    const isInside = above?.dottedOrder === undefined || current?.dottedOrder?.startsWith(`${above.dottedOrder}.`);
    const { threadId, sessionId = threadId, userId, resourceId = userId } = metadata;
    return beginRun(
      prepareRun(
        options,
        isInside ? current : above,
        input === undefined ? undefined : () => payloadOf('input', input),
      ),
      {
        ids: defined({ thread_id: threadId ?? sessionId, user_id: userId ?? resourceId }),
        metadata: isCall && runType !== 'tool' ? modelMetadata(attributes) : metadata,
      },
      isCall ? { type: runType, name, source: SOURCE } : undefined,
    );
  }

  #update({ id, type, input }: Span): void {
    const run = this.#open.get(id)?.run;
    if (type === 'model_step' && input !== undefined && run?.inputs === undefined) {
      run?.set({ inputs: payloadOf('input', input) });
    }
  }

  #end(span: Span): void {
    const { attributes = {}, errorInfo, output } = span;
    if (span.isEvent === true) {
      this.#open.get(span.parentSpanId ?? '')?.run?.event(span.name, defined({ input: span.input, output }));
      return;
    }
    const run = this.#take(span.id)?.run;
    if (run === undefined || GROUPS.has(span.type)) return;
    if (span.type === 'agent_run') this.#interruptBelow(run);
    const usage = run.metadata.usage_metadata === undefined ? readUsage(attributes.usage, USAGE) : undefined;
    const { availableTools, toolCallId, status, responseModel, responseId } = attributes;
    const known = { tools: availableTools, tool_call_id: toolCallId, status };
    const answered = { response_model: responseModel, [RESPONSE_ID]: responseId, usage_metadata: usage };
    run.set({ metadata: defined(CALL_TYPES.includes(run.runType) ? answered : known) });
    if (run.outputs === undefined && output !== undefined) {
      run.keepResult({ ...payloadOf('output', output), ...(usage && { usage_metadata: usage }) });
    }
    if (errorInfo === undefined) run.end();
    else run.fail(errorOf(errorInfo));
  }

  /** Interrupts the model calls of an agent. Mastra does not end their spans if the request is aborted. */
  #interruptBelow({ dottedOrder }: Run): void {
    for (const [id, { run }] of this.#open) {
      if (run?.runType !== 'llm' || !run.dottedOrder.startsWith(`${dottedOrder}.`)) continue;
      this.#open.delete(id);
      run.interrupt('the agent ended first');
    }
  }

  #add(id: string, span: OpenSpan): void {
    this.#open.set(id, span);
    if (this.#open.size <= OPEN_MAX) return;
    const [[oldest, other] = []] = this.#open;
    this.#open.delete(oldest as string);
    other?.run?.interrupt(`${OPEN_MAX} other spans are open`);
  }

  #take(id: string): OpenSpan | undefined {
    const span = this.#open.get(id);
    this.#open.delete(id);
    return span;
  }
}

/** Returns the owner of a context in which another source, such as the recorder of `fetch`, completes a model call. */
function ownerOf(run: Run): RunOwner {
  const { context, parentRunId, capture, call, sink } = run;
  const completion: Completion = {
    context,
    parentRunId,
    capture: { ...capture, hooks: undefined },
    start: () => true,
    end({ inputs, outputs, attachments = [], metadata = [], error }) {
      if (error !== undefined || !run.isOpen) return;
      // Mastra shortens messages, for example the results of tools.
      if (inputs !== undefined) run.set({ inputs: fieldsOf(parsedJson(inputs)) });
      if (outputs !== undefined) run.set({ outputs: fieldsOf(parsedJson(outputs)) });
      for (const { name, bytes, mimeType } of attachments) run.attach(name, bytes, mimeType);
      const given = Object.fromEntries(Array.from(metadata, ([key, json]) => [key, parsedJson(json)]));
      run.set({ metadata: { ...given, [SOURCES]: [SOURCE, ...listOf(given[SOURCES])] } });
    },
  };
  return { packageCopy: PACKAGE_COPY, sink, call, completion };
}

function payloadOf(key: 'input' | 'output', value: unknown): Fields {
  if (isPlainObject(value)) return value;
  return { [Array.isArray(value) ? 'messages' : key]: value };
}

/** Parameters of a model call that may contain credentials, or are not data. */
const HIDDEN: ReadonlySet<string> = new Set(['headers', 'abortSignal']);

function modelMetadata({ provider, model, parameters, availableTools, toolChoice }: Fields): Fields {
  const given = without(fieldsOf(parameters), HIDDEN);
  return {
    ls_provider: textOf(provider)?.split('.', 1)[0],
    ls_model_name: model,
    ls_temperature: given.temperature,
    ls_max_tokens: given.maxOutputTokens,
    ls_stop: given.stopSequences,
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
    audio: ['inputDetails.audio'],
    image: ['inputDetails.image'],
  },
  output_token_details: { reasoning: ['outputDetails.reasoning'], audio: ['outputDetails.audio'] },
};

function errorOf({ name, message, stack }: Fields): Error {
  return Object.assign(new Error(textOf(message) ?? ''), { name: textOf(name) ?? 'Error', stack: textOf(stack) ?? '' });
}
