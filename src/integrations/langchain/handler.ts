import { guard } from '../../base/guard.ts';
import { fieldsOf, textOf } from '../../payload/fields.ts';
import { isRunId } from '../../run/ids.ts';
import type { Run } from '../../run/run.ts';
import { type CallOptions, type StartOptions, type WrapOptions, wrapOptions } from '../../run/run-options.ts';
import { hasTokens, modelResult } from './model.ts';
import { plainInputs, plainInterrupts, plainOutputs, plainPayload, toolInputs } from './payload.ts';
import { componentName, describeStep, failStep, type StepBegin } from './step-start.ts';
import { installStepSource, keepText, type Step, type StepState, steps, unwatchTags, watchTags } from './steps.ts';
import { warnIfTracedTwice } from './tracer.ts';

/** Data that LangChain passes when a step ends. Contains the inputs if the step read them from a stream. */
export interface StepEnd {
  readonly inputs?: unknown;
}

/** LangGraph's message that a graph is waiting for input. */
export interface GraphInterrupt {
  /** The run id that LangChain assigned to the graph. */
  readonly runId: string | undefined;
  /** The graph's requests for input. Empty if the graph was configured to stop before or after a node. */
  readonly interrupts: readonly unknown[];
}

const PLACE = 'RunspanCallbackHandler';

/** LangGraph reports interrupts only to handlers with this property. */
const GRAPH_CALLBACK_HANDLER = Symbol.for('langgraph.graph_callback_handler');

/**
 * Records LangChain and LangGraph steps as runs. Pass the handler in the `callbacks` of a call or a component. Each
 * step becomes a child run of the step that called it. The outermost step becomes a child of the current run. Runs keep
 * LangChain's ids, so you can find a run by the `runId` that you passed to LangChain. If LangChain's own tracer sends
 * the same steps to the same endpoint, the runs get new ids. A warning is then logged.
 *
 * One handler can serve any number of concurrent calls. LangChain calls the methods. They never throw.
 */
export class RunspanCallbackHandler {
  /** LangChain's configure hooks check this name, so that they do not add a second handler. */
  readonly name: string = 'runspan_callback_handler';
  /** Makes LangChain call the handler immediately. Queued calls would lose their parents and exact times. */
  readonly awaitHandlers: boolean = true;
  readonly raiseError: boolean = false;
  /** Undefined if the handler must record nothing. */
  readonly #options: CallOptions | undefined;
  readonly #isRecordedTwice: boolean;

  constructor(options?: WrapOptions) {
    this.#options = wrapOptions(PLACE, options);
    this.#isRecordedTwice = this.#options !== undefined && !this.#options.exporter && warnIfTracedTwice();
    Object.defineProperty(this, GRAPH_CALLBACK_HANDLER, { value: true });
    installStepSource();
  }

  /** Returns the handler itself, because one handler serves all calls. */
  copy(): RunspanCallbackHandler {
    return this;
  }

  handleChainStart(
    serialized: unknown,
    inputs: unknown,
    id: string,
    parentId?: string,
    tags?: string[],
    metadata?: Record<string, unknown>,
    runType?: string,
    runName?: string,
    extra?: Record<string, unknown>,
  ): void {
    // If a step reads its inputs from a stream, LangChain passes the inputs only when the step ends.
    const given = extra?.lc_defers_inputs === true ? undefined : () => plainInputs(inputs);
    const type = runType ?? 'chain';
    this.#start({ id, parentId, runType: type, serialized, runName, tags, metadata, inputs: given });
  }

  handleChatModelStart(
    serialized: unknown,
    messages: unknown,
    id: string,
    parentId?: string,
    extra?: Record<string, unknown>,
    tags?: string[],
    metadata?: Record<string, unknown>,
    runName?: string,
  ): void {
    const inputs = () => plainInputs({ messages: firstOf(messages) });
    const step = { id, parentId, runType: 'llm', serialized, runName, tags, metadata, inputs, extra } as const;
    this.#start({ ...step, isChat: true });
  }

  handleLLMStart(
    serialized: unknown,
    prompts: unknown,
    id: string,
    parentId?: string,
    extra?: Record<string, unknown>,
    tags?: string[],
    metadata?: Record<string, unknown>,
    runName?: string,
  ): void {
    const inputs = () => ({ prompt: firstOf(prompts) });
    this.#start({ id, parentId, runType: 'llm', serialized, runName, tags, metadata, inputs, extra });
  }

  handleToolStart(
    serialized: unknown,
    input: unknown,
    id: string,
    parentId?: string,
    tags?: string[],
    metadata?: Record<string, unknown>,
    runName?: string,
    toolCallId?: string,
  ): void {
    const own = toolCallId === undefined ? metadata : { ...metadata, tool_call_id: toolCallId };
    const inputs = () => toolInputs(input);
    this.#start({ id, parentId, runType: 'tool', serialized, runName, tags, metadata: own, inputs });
  }

  handleRetrieverStart(
    serialized: unknown,
    query: unknown,
    id: string,
    parentId?: string,
    tags?: string[],
    metadata?: Record<string, unknown>,
    runName?: string,
  ): void {
    const inputs = () => ({ query });
    this.#start({ id, parentId, runType: 'retriever', serialized, runName, tags, metadata, inputs });
  }

  handleLLMNewToken(
    token: unknown,
    place: unknown,
    id: string,
    _parentId?: string,
    _tags?: string[],
    fields?: { chunk?: unknown },
  ): void {
    this.#token(token, fieldsOf(place).completion, fields?.chunk, id);
  }

  /** LangChain calls this method in place of `handleLLMNewToken` if a graph is streamed with `streamEvents` version 3. */
  handleChatModelStreamEvent(event: unknown, id: string): void {
    const text = textOf(fieldsOf(fieldsOf(event).delta).text);
    if (text) this.#token(text, undefined, undefined, id);
  }

  handleChainEnd(outputs: unknown, id: string, _parentId?: string, tags?: string[], end?: StepEnd): void {
    if (end?.inputs !== undefined) this.#setInputs(id, end.inputs);
    this.#end(id, tags, (run, { interrupts }) => {
      run.keepResult({ ...plainOutputs(outputs), ...(interrupts && plainInterrupts(interrupts)) });
    });
  }

  handleLLMEnd(result: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#end(id, tags, (run) => {
      const { outputs, metadata } = modelResult(result);
      run.set({ metadata });
      run.keepResult(outputs);
    });
  }

  handleToolEnd(output: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#end(id, tags, (run) => run.keepResult(plainOutputs({ output })));
  }

  handleRetrieverEnd(documents: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#end(id, tags, (run) => run.keepResult(plainOutputs({ documents })));
  }

  handleChainError(error: unknown, id: string, parentId?: string, tags?: string[], end?: StepEnd): void {
    if (end?.inputs !== undefined) this.#setInputs(id, end.inputs);
    this.#fail(id, parentId, tags, error);
  }

  handleLLMError(error: unknown, id: string, parentId?: string, tags?: string[]): void {
    this.#fail(id, parentId, tags, error);
  }

  handleToolError(error: unknown, id: string, parentId?: string, tags?: string[]): void {
    this.#fail(id, parentId, tags, error);
  }

  handleRetrieverError(error: unknown, id: string, parentId?: string, tags?: string[]): void {
    this.#fail(id, parentId, tags, error);
  }

  /** LangGraph calls `handleInterrupt` before the outermost graph ends. */
  handleInterrupt({ runId, interrupts }: GraphInterrupt): void {
    if (runId === undefined) return;
    this.#update(runId, (run, state) => {
      state.interrupts = interrupts;
      run.event('GraphInterrupt');
    });
  }

  handleCustomEvent(name: string, data: unknown, id: string): void {
    this.#update(id, (run) => run.event(name, plainPayload('data', data)));
  }

  handleText(text: unknown, id: string): void {
    this.#event('text', { text }, id);
  }

  handleAgentAction(action: unknown, id: string): void {
    this.#event('agent_action', action, id);
  }

  handleAgentEnd(action: unknown, id: string): void {
    this.#event('agent_end', action, id);
  }

  #start(step: StepBegin): void {
    const shared = this.#options;
    if (shared === undefined) return;
    guard(PLACE, () => {
      const { id, parentId, runType } = step;
      const isOutermost = parentId === undefined || !steps.has(parentId);
      const own = step.runName ?? componentName(step.serialized) ?? runType;
      const options: StartOptions = { ...shared, name: (isOutermost && shared.name) || own, runType };
      // Applications may set an id that is not a UUID.
      if (!this.#isRecordedTwice && isRunId(id.toLowerCase())) options.id = id;
      const started = steps.start(id, parentId, options, () => describeStep(step, this, shared.metadata));
      if (started !== undefined) watchTags(started);
    });
  }

  /** Calls `finish`, then ends the run of the step. The run ends even if `finish` throws. */
  #end(id: string, tags: readonly string[] | undefined, finish: (run: Run, state: StepState) => void): void {
    guard(PLACE, () => {
      const step = this.#stepOf(id);
      if (step === undefined) return;
      unwatchTags(step, tags);
      steps.end(step, ({ run, state }) => run && finish(run, state));
    });
  }

  #fail(id: string, parentId: string | undefined, tags: readonly string[] | undefined, error: unknown): void {
    this.#end(id, tags, (run, state) => {
      keepText({ run, state });
      failStep(run, state, error, parentId === undefined ? undefined : this.#stepOf(parentId));
    });
  }

  /** Records the first token of a model call as an event. Keeps the text of the first completion. */
  #token(token: unknown, completion: unknown, chunk: unknown, id: string): void {
    this.#update(id, (run, state) => {
      const { hideOutputs, payload } = run.capture;
      const isKept = !hideOutputs && state.text.length < payload.bytes && (completion ?? 0) === 0;
      if (isKept && typeof token === 'string') state.text += token;
      if (state.hasTokens || !hasTokens(token, chunk)) return;
      state.hasTokens = true;
      run.event('new_token');
    });
  }

  /** Records an event of a prompt or an agent. Its data repeats inputs and outputs of the step and of its tools. */
  #event(name: string, data: unknown, id: string): void {
    this.#update(id, (run) => {
      const isHidden = run.capture.hideInputs || run.capture.hideOutputs;
      run.event(name, isHidden ? undefined : plainPayload('data', data));
    });
  }

  #setInputs(id: string, inputs: unknown): void {
    this.#update(id, (run) => run.set({ inputs: plainInputs(inputs) }));
  }

  #update(id: string, update: (run: Run, state: StepState) => void): void {
    guard(PLACE, () => {
      const { run, state } = this.#stepOf(id) ?? {};
      if (run !== undefined && state !== undefined) update(run, state);
    });
  }

  #stepOf(id: string): Step | undefined {
    return steps.all(id).find(({ state }) => state.handler === this);
  }
}

/** LangChain passes a list that contains one prompt. */
function firstOf(list: unknown): unknown {
  return Array.isArray(list) ? list[0] : list;
}
