import type { Checks } from '../base/checked-options.ts';
import { guard } from '../base/guard.ts';
import { currentContext, insideStep } from '../run/context.ts';
import { isRunId } from '../run/ids.ts';
import { encodePayload } from '../run/payload.ts';
import type { RunType } from '../run/record.ts';
import { Run, sinkOf, verdictOn } from '../run/run.ts';
import { commonChecks, type RunOptions, usableOptions } from '../run/run-options.ts';
import type { RunSink } from '../run/sink.ts';
import { isToken, modelMetadata, modelResult } from './langchain-model.ts';
import { addStep, followSteps, isRecorded, ownStep, runOfStep, takeRun } from './langchain-steps.ts';
import { hasTracerBeside } from './langchain-tracer.ts';
import { plainInputs, plainOutputs, plainPayload, toolInputs } from './langchain-values.ts';

/** What `RunspanCallbackHandler` takes. Everything is optional. */
export interface RunspanCallbackHandlerOptions {
  /** Added to every run of the handler, beside those that LangChain gives. */
  tags?: readonly string[];
  /** The same for metadata; LangChain's come before it. */
  metadata?: Readonly<Record<string, unknown>>;
  /** The project to trace into. @default that of the run around it, else of the exporter */
  project?: string;
  /** Where the runs go. @default where the run around it goes, else the configured one */
  exporter?: RunSink;
}

const optionChecks: Checks<RunspanCallbackHandlerOptions> = {
  tags: commonChecks.tags,
  metadata: commonChecks.metadata,
  project: commonChecks.project,
  exporter: commonChecks.exporter,
};

const PLACE = 'RunspanCallbackHandler';

/** What LangChain tells of a step that starts. */
interface StepStart {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly runType: RunType;
  readonly name: string | undefined;
  readonly tags: string[] | undefined;
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  readonly inputs: (() => Readonly<Record<string, unknown>>) | undefined;
  /** Of a call of a model: what it was called with. */
  readonly parameters?: unknown;
}

/** What only the end of a step tells: inputs that it has read from a stream. */
export interface StepEnd {
  readonly inputs?: unknown;
}

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
  readonly #options: Partial<RunspanCallbackHandlerOptions>;
  readonly #isRecordedTwice: boolean;

  constructor(options?: RunspanCallbackHandlerOptions) {
    this.#options = usableOptions<RunspanCallbackHandlerOptions>(PLACE, options, optionChecks);
    this.#isRecordedTwice = this.#options.exporter === undefined && hasTracerBeside();
    followSteps();
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
    this.#begin({
      id,
      parentId,
      runType: runType ?? 'chain',
      name: runName ?? nameOf(serialized),
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
    const name = runName ?? nameOf(serialized);
    const inputs = (): Record<string, unknown> =>
      plainInputs({ messages: Array.isArray(messages) ? messages[0] : messages });
    this.#begin({ id, parentId, runType: 'llm', name, tags, metadata, inputs, parameters: extra?.invocation_params });
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
    const name = runName ?? nameOf(serialized);
    const inputs = (): Record<string, unknown> => ({ prompt: Array.isArray(prompts) ? prompts[0] : prompts });
    this.#begin({ id, parentId, runType: 'llm', name, tags, metadata, inputs, parameters: extra?.invocation_params });
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
    const name = runName ?? nameOf(serialized);
    const about = toolCallId === undefined ? metadata : { ...metadata, tool_call_id: toolCallId };
    this.#begin({ id, parentId, runType: 'tool', name, tags, metadata: about, inputs: () => toolInputs(input) });
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
    const name = runName ?? nameOf(serialized);
    this.#begin({ id, parentId, runType: 'retriever', name, tags, metadata, inputs: () => ({ query }) });
  }

  handleLLMNewToken(
    token: unknown,
    _place: unknown,
    id: string,
    _parentId?: string,
    _tags?: string[],
    fields?: { chunk?: unknown },
  ): void {
    guard(PLACE, () => {
      const step = ownStep(id, this);
      if (step === undefined || step.hasAnswered || !isToken(token, fields?.chunk)) return;
      step.hasAnswered = true;
      step.run.event('new_token');
    });
  }

  handleChainEnd(outputs: unknown, id: string, _parentId?: string, tags?: string[], end?: StepEnd): void {
    this.#end(id, tags, (run) => {
      takeInputs(run, end);
      run.end(plainOutputs(outputs));
    });
  }

  handleLLMEnd(result: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#end(id, tags, (run) => {
      const { outputs, usage, metadata } = modelResult(result);
      run.set(usage === undefined ? { metadata } : { metadata, usage });
      run.end(outputs);
    });
  }

  handleToolEnd(output: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#end(id, tags, (run) => run.end(plainOutputs({ output })));
  }

  handleRetrieverEnd(documents: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#end(id, tags, (run) => run.end(plainOutputs({ documents })));
  }

  handleChainError(error: unknown, id: string, _parentId?: string, tags?: string[], end?: StepEnd): void {
    this.#end(id, tags, (run) => {
      takeInputs(run, end);
      fail(run, error);
    });
  }

  handleLLMError(error: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#end(id, tags, (run) => fail(run, error));
  }

  handleToolError(error: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#end(id, tags, (run) => fail(run, error));
  }

  handleRetrieverError(error: unknown, id: string, _parentId?: string, tags?: string[]): void {
    this.#end(id, tags, (run) => fail(run, error));
  }

  handleCustomEvent(name: string, data: unknown, id: string): void {
    this.#event(name, data, id);
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

  #begin(start: StepStart): void {
    guard(PLACE, () => {
      const parentStep = runOfStep(start.parentId, this.#options.exporter);
      const parent = insideStep(currentContext(), parentStep?.context);
      const sink = this.#options.exporter ?? sinkOf(parent);
      if (sink === undefined || isRecorded(start.id, sink)) return;
      const options = this.#optionsOf(start);
      const verdict = verdictOn(options, parent, sink);
      const isCaptured = verdict.isKept && !sink.capture.hideInputs && parent?.refused !== true;
      const inputs = isCaptured ? guard(PLACE, () => start.inputs?.()) : undefined;
      const encoded = inputs && encodePayload('inputs', inputs, sink.capture);
      const run = new Run(options, parent, sink, encoded, verdict);
      // LangChain hands down what is to be handed down; the rest, a place in a sequence for example, is this step's own.
      const { runType, tags, metadata, parameters } = start;
      run.set({
        tags: tags ?? [],
        metadata: runType === 'llm' ? modelMetadata(metadata, parameters) : { ...metadata },
      });
      addStep(start.id, run, this, tags);
    });
  }

  #optionsOf({ id, name, runType }: StepStart): Omit<RunOptions, 'inputs'> {
    const { tags, metadata, project } = this.#options;
    const options: Omit<RunOptions, 'inputs'> = { name: name ?? runType, runType };
    // An application may give any text.
    if (!this.#isRecordedTwice && isRunId(id.toLowerCase())) options.id = id;
    if (tags !== undefined) options.tags = tags;
    if (metadata !== undefined) options.metadata = metadata;
    if (project !== undefined) options.project = project;
    return options;
  }

  /** Whatever becomes of the outputs, the run ends. */
  #end(id: string, tags: string[] | undefined, finish: (run: Run) => void): void {
    guard(PLACE, () => {
      const run = takeRun(id, this, tags);
      if (run === undefined) return;
      guard(PLACE, () => finish(run));
      run.end();
    });
  }

  #event(name: string, data: unknown, id: string): void {
    guard(PLACE, () => ownStep(id, this)?.run.event(name, plainPayload('data', data)));
  }
}

/** The class of a component, which is the last part of the path it is serialized under. */
function nameOf(serialized: unknown): string | undefined {
  const { id } = (serialized ?? {}) as { id?: unknown };
  const name: unknown = Array.isArray(id) ? id.at(-1) : undefined;
  return typeof name === 'string' && name !== '' ? name : undefined;
}

function takeInputs(run: Run, end: StepEnd | undefined): void {
  if (end?.inputs !== undefined) run.set({ inputs: plainInputs(end.inputs) });
}

/**
 * Ends a run with what was thrown. LangGraph throws also to pause a graph or to hand over to another, which is no error:
 * that is an event, and the outputs tell what for.
 */
function fail(run: Run, thrown: unknown): void {
  const { is_bubble_up, name, interrupts, command } = (thrown ?? {}) as Record<string, unknown>;
  if (is_bubble_up !== true) {
    run.fail(thrown);
    return;
  }
  run.event(String(name));
  if (Array.isArray(interrupts)) run.set({ outputs: plainOutputs({ __interrupt__: interrupts }) });
  else if (command !== undefined) run.set({ outputs: plainOutputs({ command }) });
  run.end();
}
