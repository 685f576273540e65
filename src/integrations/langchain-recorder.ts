import { guard } from '../base/guard.ts';
import { encodePayload } from '../payload/serialize.ts';
import { currentContext, insideStep, modelCall, sinkOf } from '../run/context.ts';
import { isRunId } from '../run/ids.ts';
import type { RunType } from '../run/record.ts';
import { Run } from '../run/run.ts';
import type { Hiding, RunOptions } from '../run/run-options.ts';
import { sample } from '../run/sampling.ts';
import type { Fields } from './fields.ts';
import { isToken, modelMetadata } from './langchain-model.ts';
import { addStep, isRecorded, ownStep, runOfStep, type Step, takeStep } from './langchain-steps.ts';
import { hasTracerBeside } from './langchain-tracer.ts';
import { plainInterrupts, plainOutputs, plainPayload } from './langchain-values.ts';

const PLACE = 'RunspanCallbackHandler';

/** What holds for all the runs of one handler. */
export type RecorderOptions = Pick<RunOptions, 'tags' | 'metadata' | 'project' | 'projectId' | 'exporter'> & Hiding;

/** What LangChain tells of a step that starts. */
export interface StepStart {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly runType: RunType;
  /** The component, as LangChain would store it. */
  readonly serialized: unknown;
  /** The name that the application has given the step. */
  readonly runName: string | undefined;
  readonly tags: readonly string[] | undefined;
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  /** Undefined where they come with the end. */
  readonly inputs: (() => Readonly<Fields>) | undefined;
  /** Of a call of a model: its parameters, among others. */
  readonly extra?: Readonly<Fields> | undefined;
}

/** The runs of one handler: each step of LangChain becomes one. No method throws. */
export class StepRecorder {
  readonly #options: RecorderOptions;
  readonly #isRecordedTwice: boolean;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#isRecordedTwice = options.exporter === undefined && hasTracerBeside();
  }

  begin(start: StepStart): void {
    guard(PLACE, () => {
      const parentStep = runOfStep(start.parentId, this.#options.exporter);
      const parent = insideStep(currentContext(), parentStep?.context);
      const sink = this.#options.exporter ?? sinkOf(parent);
      if (sink === undefined || isRecorded(start.id, sink)) return;
      const options = this.#optionsOf(start);
      const verdict = sample(options, parent, sink);
      const isHidden = sink.capture.hideInputs || options.hideInputs === true;
      const isCaptured = verdict.isKept && !isHidden && parent?.refused !== true;
      const inputs = isCaptured ? guard(PLACE, () => start.inputs?.()) : undefined;
      const encoded = inputs && encodePayload('inputs', inputs, sink.capture);
      const run = new Run(options, parent, sink, encoded, verdict);
      // LangChain hands down what is to be handed down; the rest, a place in a sequence for example, is this step's own.
      const { runType, tags, metadata, extra } = start;
      const about = runType === 'llm' ? modelMetadata(metadata, extra?.invocation_params) : { ...metadata };
      run.set({ tags: tags ?? [], metadata: about });
      if (runType === 'llm') run.modelCall = modelCall(runType, about);
      addStep(start.id, run, this, tags);
    });
  }

  /** Whatever becomes of the outputs, the run ends. */
  end(
    id: string,
    tags: readonly string[] | undefined,
    finish: (run: Run, interrupts: Step['interrupts']) => void,
  ): void {
    guard(PLACE, () => {
      const step = takeStep(id, this, tags);
      if (step === undefined) return;
      guard(PLACE, () => finish(step.run, step.interrupts));
      step.run.end();
    });
  }

  /** A token of a model's answer; the first that says anything is an event. */
  token(token: unknown, chunk: unknown, id: string): void {
    guard(PLACE, () => {
      const step = ownStep(id, this);
      if (step === undefined || step.hasAnswered || !isToken(token, chunk)) return;
      step.hasAnswered = true;
      step.run.event('new_token');
    });
  }

  /** The step is a graph, and waits for somebody when it ends. */
  interrupt(id: string, interrupts: readonly unknown[]): void {
    guard(PLACE, () => {
      const step = ownStep(id, this);
      if (step === undefined) return;
      step.interrupts = interrupts;
      step.run.event('GraphInterrupt');
    });
  }

  event(name: string, data: unknown, id: string): void {
    guard(PLACE, () => ownStep(id, this)?.run.event(name, plainPayload('data', data)));
  }

  #optionsOf({ id, runName, serialized, runType }: StepStart): Omit<RunOptions, 'inputs'> & Hiding {
    const { tags, metadata, project, projectId, hideInputs, hideOutputs } = this.#options;
    const options: Omit<RunOptions, 'inputs'> & Hiding = { name: runName ?? nameOf(serialized) ?? runType, runType };
    if (hideInputs !== undefined) options.hideInputs = hideInputs;
    if (hideOutputs !== undefined) options.hideOutputs = hideOutputs;
    // An application may give any text.
    if (!this.#isRecordedTwice && isRunId(id.toLowerCase())) options.id = id;
    if (tags !== undefined) options.tags = tags;
    if (metadata !== undefined) options.metadata = metadata;
    if (project !== undefined) options.project = project;
    if (projectId !== undefined) options.projectId = projectId;
    return options;
  }
}

/** The class of a component, which is the last part of the path it is serialized under. */
function nameOf(serialized: unknown): string | undefined {
  const { id } = (serialized ?? {}) as { id?: unknown };
  const name: unknown = Array.isArray(id) ? id.at(-1) : undefined;
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/**
 * Ends a run with what was thrown. LangGraph throws also to pause a graph or to hand over to another, which is no error:
 * that is an event, and the outputs tell what for.
 */
export function failStep(run: Run, thrown: unknown): void {
  const { is_bubble_up, name, interrupts, command } = (thrown ?? {}) as Record<string, unknown>;
  if (is_bubble_up !== true) {
    if (tellsOfAbort(thrown)) run.set({ metadata: { end_reason: 'cancelled' } });
    run.fail(thrown);
    return;
  }
  run.event(String(name));
  if (Array.isArray(interrupts)) run.keepResult(plainInterrupts(interrupts));
  else if (command !== undefined) run.keepResult(plainOutputs({ command }));
  run.end();
}

/** What LangChain throws where a signal called a step off, beside the errors of signals: often a plain error that says so. */
function tellsOfAbort(thrown: unknown): boolean {
  const { name, message } = (thrown ?? {}) as Record<string, unknown>;
  return name === 'ModelAbortError' || (name === 'Error' && (message === 'AbortError' || message === 'Aborted'));
}
