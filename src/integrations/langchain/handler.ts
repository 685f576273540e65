import { fieldsOf, textOf } from '../../payload/fields.ts';
import { sharedChecks, usableOptions } from '../../run/run-options.ts';
import { preloadDelivery } from '../../run/sink.ts';
import type { TracedClientOptions } from '../sdk-client.ts';
import { modelResult } from './model.ts';
import { plainInputs, plainInterrupts, plainOutputs, toolInputs } from './payload.ts';
import { type RecorderOptions, StepRecorder } from './recorder.ts';
import { installStepSource } from './steps.ts';

/** Options of `RunspanCallbackHandler`. Every option is optional. */
export interface RunspanCallbackHandlerOptions extends Omit<TracedClientOptions, 'enabled' | 'metadata'> {
  /** Metadata to add to every run. Metadata from LangChain takes precedence. */
  metadata?: Readonly<Record<string, unknown>>;
}

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
  readonly #recorder: StepRecorder;

  constructor(options?: RunspanCallbackHandlerOptions) {
    const place = 'RunspanCallbackHandler';
    const usable: RecorderOptions = usableOptions<RunspanCallbackHandlerOptions>(place, options, sharedChecks);
    this.#recorder = new StepRecorder(usable);
    Object.defineProperty(this, GRAPH_CALLBACK_HANDLER, { value: true });
    installStepSource();
    preloadDelivery();
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
    this.#recorder.start({ id, parentId, runType: type, serialized, runName, tags, metadata, inputs: given });
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
    this.#recorder.start({ ...step, isChat: true });
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
    this.#recorder.start({ id, parentId, runType: 'llm', serialized, runName, tags, metadata, inputs, extra });
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
    this.#recorder.start({ id, parentId, runType: 'tool', serialized, runName, tags, metadata: own, inputs });
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
    this.#recorder.start({ id, parentId, runType: 'retriever', serialized, runName, tags, metadata, inputs });
  }

  handleLLMNewToken(
    token: unknown,
    _place: unknown,
    id: string,
    _parentId?: string,
    _tags?: string[],
    fields?: { chunk?: unknown },
  ): void {
    this.#recorder.token(token, _place, fields?.chunk, id);
  }

  /** LangChain calls this method in place of `handleLLMNewToken` if a graph is streamed with `streamEvents` version 3. */
  handleChatModelStreamEvent(event: unknown, id: string): void {
    const text = textOf(fieldsOf(fieldsOf(event).delta).text);
    if (text) this.#recorder.token(text, undefined, undefined, id);
  }

  handleChainEnd(outputs: unknown, id: string, _parentId?: string, tags?: string[], end?: StepEnd): void {
    if (end?.inputs !== undefined) this.#recorder.setInputs(id, end.inputs);
    this.#recorder.end(id, tags, (run, { interrupts }) => {
      run.keepResult({ ...plainOutputs(outputs), ...(interrupts && plainInterrupts(interrupts)) });
    });
  }

  handleLLMEnd(result: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#recorder.end(id, tags, (run) => {
      const { outputs, metadata } = modelResult(result);
      run.set({ metadata });
      run.keepResult(outputs);
    });
  }

  handleToolEnd(output: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#recorder.end(id, tags, (run) => run.keepResult(plainOutputs({ output })));
  }

  handleRetrieverEnd(documents: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#recorder.end(id, tags, (run) => run.keepResult(plainOutputs({ documents })));
  }

  handleChainError(error: unknown, id: string, parentId?: string, tags?: string[], end?: StepEnd): void {
    if (end?.inputs !== undefined) this.#recorder.setInputs(id, end.inputs);
    this.#recorder.fail(id, parentId, tags, error);
  }

  handleLLMError(error: unknown, id: string, parentId?: string, tags?: string[]): void {
    this.#recorder.fail(id, parentId, tags, error);
  }

  handleToolError(error: unknown, id: string, parentId?: string, tags?: string[]): void {
    this.#recorder.fail(id, parentId, tags, error);
  }

  handleRetrieverError(error: unknown, id: string, parentId?: string, tags?: string[]): void {
    this.#recorder.fail(id, parentId, tags, error);
  }

  /** LangGraph calls `handleInterrupt` before the outermost graph ends. */
  handleInterrupt({ runId, interrupts }: GraphInterrupt): void {
    if (runId !== undefined) this.#recorder.interrupt(runId, interrupts);
  }

  handleCustomEvent(name: string, data: unknown, id: string): void {
    this.#recorder.event(name, data, id);
  }

  handleText(text: unknown, id: string): void {
    this.#recorder.event('text', { text }, id);
  }

  handleAgentAction(action: unknown, id: string): void {
    this.#recorder.event('agent_action', action, id);
  }

  handleAgentEnd(action: unknown, id: string): void {
    this.#recorder.event('agent_end', action, id);
  }
}

/** LangChain passes a list that contains one prompt. */
function firstOf(list: unknown): unknown {
  return Array.isArray(list) ? list[0] : list;
}
