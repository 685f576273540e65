import { guard } from '../../base/guard.ts';
import { abortReason, isAbort } from '../../payload/errors.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../payload/fields.ts';
import { prepareRun } from '../../run/begin.ts';
import { currentContext, insideStep, sinkOf } from '../../run/context.ts';
import { isRunId } from '../../run/ids.ts';
import type { RunType } from '../../run/record.ts';
import { beginRun } from '../../run/run.ts';
import type { ContextFields, Hiding, RunOptions, StartOptions } from '../../run/run-options.ts';
import { isCallType, SOURCES } from '../../run/same-call.ts';
import { requestSignal } from '../fetch/request.ts';
import { hasTokens, modelMetadata } from './model.ts';
import { plainInputs, plainInterrupts, plainOutputs, plainPayload } from './payload.ts';
import { addStep, isRecorded, keepText, runOfStep, type Step, stepOf, takeStep } from './steps.ts';
import { warnIfTracedTwice } from './tracer.ts';

const OPERATION = 'RunspanCallbackHandler';
/** The name of this integration among the sources of a run. */
const SOURCE = 'langchain';

export type RecorderOptions = Pick<RunOptions, keyof ContextFields | 'project' | 'projectId' | 'exporter'> & Hiding;

interface StepStart {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly runType: RunType;
  readonly serialized: unknown;
  /** The step name that the application has set. */
  readonly runName: string | undefined;
  readonly tags: readonly string[] | undefined;
  readonly metadata: Readonly<Fields> | undefined;
  /** Returns the inputs of the step. Undefined if LangChain passes the inputs only when the step ends. */
  readonly inputs: (() => Readonly<Fields>) | undefined;
  /** For model calls, `invocation_params` contains the parameters. */
  readonly extra?: Readonly<Fields> | undefined;
  readonly isChat?: true;
}

/** Records the LangChain steps of one handler as runs. The methods never throw. */
export class StepRecorder {
  readonly #options: RecorderOptions;
  readonly #isRecordedTwice: boolean;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#isRecordedTwice = options.exporter === undefined && warnIfTracedTwice();
  }

  start(step: StepStart): void {
    guard(OPERATION, () => {
      const { exporter } = this.#options;
      const around = insideStep(currentContext(exporter), runOfStep(step.parentId, exporter)?.context);
      const sink = sinkOf(around, exporter);
      if (sink === undefined || isRecorded(step.id, sink)) return;
      const { id, runType, tags = [], metadata, extra } = step;
      const name = step.runName ?? componentName(step.serialized) ?? runType;
      const options: StartOptions = { ...this.#options, name, runType };
      // Applications may set an id that is not a UUID.
      if (!this.#isRecordedTwice && isRunId(id.toLowerCase())) options.id = id;
      const own = runType === 'llm' ? modelMetadata(metadata, extra?.invocation_params) : { ...metadata };
      const isCall = isCallType(runType);
      const sources = isCall ? { [SOURCES]: [SOURCE] } : {};
      const model = runType === 'llm' ? textOf(own.ls_model_name) : undefined;
      const readInputs = () => guard(OPERATION, () => step.inputs?.());
      const call = stepCall(isCall ? readInputs() : undefined);
      // Tags and metadata are set after the start, so that nested runs do not inherit them. LangChain already passes
      // inherited tags and metadata to each step.
      const run = beginRun(prepareRun(options, around, isCall ? call.inputs : readInputs, call), {
        signal: requestSignal(undefined, extra?.options),
        started: (begun) => begun.set({ tags, metadata: { ...own, ...sources } }),
      });
      const isGraph = listOf(fieldsOf(step.serialized).id)[0] === 'langgraph';
      addStep(id, run, this, step.tags, { isChat: step.isChat === true, isGraph, model });
    });
  }

  /** Calls `finish`, then ends the run of the step. The run ends even if `finish` throws. */
  end(id: string, tags: readonly string[] | undefined, finish: (step: Step) => void): void {
    guard(OPERATION, () => {
      const step = takeStep(id, this, tags);
      if (step === undefined) return;
      guard(OPERATION, () => finish(step));
      step.run.end();
    });
  }

  fail(id: string, parentId: string | undefined, tags: readonly string[] | undefined, error: unknown): void {
    this.end(id, tags, (step) => {
      keepText(step);
      failStep(step, error, parentId === undefined ? undefined : stepOf(parentId, this));
    });
  }

  /** Records the first token of a model call as an event. Keeps the text of the first completion. */
  token(token: unknown, indices: unknown, chunk: unknown, id: string): void {
    this.#update(id, (step) => {
      const { hideOutputs, payload } = step.run.capture;
      const isKept = !hideOutputs && step.text.length < payload.bytes && (fieldsOf(indices).completion ?? 0) === 0;
      if (isKept && typeof token === 'string') step.text += token;
      if (step.hasTokens || !hasTokens(token, chunk)) return;
      step.hasTokens = true;
      step.run.event('new_token');
    });
  }

  /** Records that a graph is waiting for input. Called just before the graph ends. */
  interrupt(id: string, interrupts: readonly unknown[]): void {
    this.#update(id, (step) => {
      step.interrupts = interrupts;
      step.run.event('GraphInterrupt');
    });
  }

  event(name: string, data: unknown, id: string): void {
    this.#update(id, ({ run }) => run.event(name, plainPayload('data', data)));
  }

  setInputs(id: string, inputs: unknown): void {
    this.#update(id, ({ run }) => run.set({ inputs: plainInputs(inputs) }));
  }

  #update(id: string, update: (step: Step) => void): void {
    guard(OPERATION, () => {
      const step = stepOf(id, this);
      if (step !== undefined) update(step);
    });
  }
}

/** The open record of a call must not keep the step, whose list of tags is collected when its stream is abandoned. */
function stepCall(inputs: Readonly<Fields> | undefined) {
  return { source: SOURCE, inputs: () => inputs };
}

/** Returns a component's class name, which is the last part of its path. */
function componentName(serialized: unknown): string | undefined {
  const name = listOf(fieldsOf(serialized).id).at(-1);
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/**
 * Ends a step's run with the value that the step threw. LangGraph also throws to interrupt a graph or to hand over to
 * another graph. In these cases, the run does not fail. The name of the thrown value is recorded as an event.
 * Interrupts or a command are recorded as outputs.
 */
function failStep(step: Step, thrown: unknown, parent: Step | undefined): void {
  const { run } = step;
  const { is_bubble_up, name, interrupts, command } = fieldsOf(thrown);
  if (is_bubble_up !== true) {
    if (parent !== undefined) parent.thrown = thrown;
    if (isPlainAbort(step, thrown)) run.abortReason ??= abortReason(run.signal?.deref()) ?? thrown;
    run.fail(thrown);
    return;
  }
  run.event(String(name));
  if (Array.isArray(interrupts)) run.keepResult(plainInterrupts(interrupts));
  else if (command !== undefined) run.keepResult(plainOutputs({ command }));
}

/**
 * Returns whether LangChain threw a plain error because of an abort. For every aborted signal, a LangGraph graph throws
 * `Error: Abort`, and its node throws the signal's reason, which may be a timeout.
 */
function isPlainAbort({ isGraph, thrown: nested, run }: Step, thrown: unknown): boolean {
  const { name, message } = fieldsOf(thrown);
  if (name !== 'Error') return false;
  if (message !== 'Abort') return message === 'AbortError' || message === 'Aborted';
  return isGraph === true && (nested === undefined || isAbort(nested, run.traceId));
}
