import type { Checks } from '../base/options.ts';
import type { Run } from '../run/run.ts';
import { commonChecks, usableOptions } from '../run/run-options.ts';
import { preloadDelivery, type RunSink } from '../run/sink.ts';
import type { Fields } from './fields.ts';
import { modelResult } from './langchain-model.ts';
import { failStep, StepRecorder } from './langchain-recorder.ts';
import { followSteps } from './langchain-steps.ts';
import { plainInputs, plainInterrupts, plainOutputs, toolInputs } from './langchain-values.ts';

/** What `RunspanCallbackHandler` takes. Everything is optional. */
export interface RunspanCallbackHandlerOptions {
  /** Added to every run of the handler, beside those that LangChain gives: at most 1 000; a longer list is left out. */
  tags?: readonly string[];
  /** The same for metadata; LangChain's come before it. */
  metadata?: Readonly<Record<string, unknown>>;
  /** The project to trace into. @default that of the run around it, else of the exporter */
  project?: string;
  /** The id of the project, as an alternative to its name. */
  projectId?: string;
  /** The exporter that receives the runs. @default the exporter of the enclosing run, else the configured one */
  exporter?: RunSink;
}

const optionChecks: Checks<RunspanCallbackHandlerOptions> = {
  tags: commonChecks.tags,
  metadata: commonChecks.metadata,
  project: commonChecks.project,
  projectId: commonChecks.projectId,
  exporter: commonChecks.exporter,
};

/** What only the end of a step tells: inputs that it has read from a stream. */
export interface StepEnd {
  readonly inputs?: unknown;
}

/** What LangGraph tells of a graph that waits for somebody. */
export interface GraphInterrupt {
  /** LangChain's id of the graph's run. */
  readonly runId: string | undefined;
  /** What is asked; nothing where the graph stops by itself before or after a node. */
  readonly interrupts: readonly unknown[];
}

/** By this LangGraph knows whom it tells of graphs that wait. */
const TOLD_OF_GRAPHS = Symbol.for('langgraph.graph_callback_handler');

/**
 * Records what LangChain and LangGraph do: pass it in `callbacks`, of one call or of a component. Each step becomes a
 * run below the step that called it; the outermost below the run that is current when it starts. A run has the id that
 * LangChain gives the step, so that a `runId` of yours finds it again; not so where LangChain's own tracer sends the step
 * to the same place, of which a line tells.
 *
 * One handler serves any number of calls, at the same time too. No method throws; you call none of them yourself.
 */
export class RunspanCallbackHandler {
  /** By this LangChain knows a handler; a handler of the same name is not added twice by a configure hook. */
  readonly name: string = 'runspan_callback_handler';
  /** LangChain calls at once and in order, and not from its queue, where parents and times would be lost. */
  readonly awaitHandlers: boolean = true;
  readonly raiseError: boolean = false;
  readonly #recorder: StepRecorder;

  constructor(options?: RunspanCallbackHandlerOptions) {
    const usable = usableOptions<RunspanCallbackHandlerOptions>('RunspanCallbackHandler', options, optionChecks);
    this.#recorder = new StepRecorder(usable);
    Object.defineProperty(this, TOLD_OF_GRAPHS, { value: true });
    followSteps();
    preloadDelivery();
  }

  /** Asked by LangChain where handlers are handed on; one serves all. */
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
    // A step that reads a stream has no inputs before it has read it; they come with its end.
    const isDeferred = extra?.lc_defers_inputs === true;
    this.#recorder.begin({
      id,
      parentId,
      runType: runType ?? 'chain',
      serialized,
      runName,
      tags,
      metadata,
      inputs: isDeferred ? undefined : () => plainInputs(inputs),
    });
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
    const inputs = (): Fields => plainInputs({ messages: firstOf(messages) });
    this.#recorder.begin({ id, parentId, runType: 'llm', serialized, runName, tags, metadata, inputs, extra });
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
    const inputs = (): Fields => ({ prompt: firstOf(prompts) });
    this.#recorder.begin({ id, parentId, runType: 'llm', serialized, runName, tags, metadata, inputs, extra });
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
    const about = toolCallId === undefined ? metadata : { ...metadata, tool_call_id: toolCallId };
    const inputs = (): Fields => toolInputs(input);
    this.#recorder.begin({ id, parentId, runType: 'tool', serialized, runName, tags, metadata: about, inputs });
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
    const inputs = (): Fields => ({ query });
    this.#recorder.begin({ id, parentId, runType: 'retriever', serialized, runName, tags, metadata, inputs });
  }

  handleLLMNewToken(
    token: unknown,
    _place: unknown,
    id: string,
    _parentId?: string,
    _tags?: string[],
    fields?: { chunk?: unknown },
  ): void {
    this.#recorder.token(token, fields?.chunk, id);
  }

  handleChainEnd(outputs: unknown, id: string, _parentId?: string, tags?: string[], end?: StepEnd): void {
    this.#recorder.end(id, tags, (run, interrupts) => {
      takeInputs(run, end);
      run.keepResult({ ...plainOutputs(outputs), ...(interrupts && plainInterrupts(interrupts)) });
    });
  }

  handleLLMEnd(result: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#recorder.end(id, tags, (run) => {
      const { outputs, usage, metadata } = modelResult(result);
      run.set(usage === undefined ? { metadata } : { metadata, usage });
      run.keepResult(outputs);
    });
  }

  handleToolEnd(output: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#recorder.end(id, tags, (run) => run.keepResult(plainOutputs({ output })));
  }

  handleRetrieverEnd(documents: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#recorder.end(id, tags, (run) => run.keepResult(plainOutputs({ documents })));
  }

  handleChainError(error: unknown, id: string, _parentId?: string, tags?: string[], end?: StepEnd): void {
    this.#recorder.end(id, tags, (run) => {
      takeInputs(run, end);
      failStep(run, error);
    });
  }

  handleLLMError(error: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#recorder.end(id, tags, (run) => failStep(run, error));
  }

  handleToolError(error: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#recorder.end(id, tags, (run) => failStep(run, error));
  }

  handleRetrieverError(error: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#recorder.end(id, tags, (run) => failStep(run, error));
  }

  /** Of the outermost graph, before it ends: what it has told of the end of a run that waits is its state alone. */
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

/** LangChain tells of one question at a time, in a list. */
function firstOf(list: unknown): unknown {
  return Array.isArray(list) ? list[0] : list;
}

function takeInputs(run: Run, end: StepEnd | undefined): void {
  if (end?.inputs !== undefined) run.set({ inputs: plainInputs(end.inputs) });
}
