import { guard } from '../../base/guard.ts';
import { isAbort, leavesGraph } from '../../payload/errors.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../payload/fields.ts';
import type { StepStart } from '../../run/calls/open-runs.ts';
import { isCallType, SOURCES } from '../../run/calls/same-call.ts';
import type { RunType } from '../../run/record.ts';
import type { Run } from '../../run/run.ts';
import { requestSignal } from '../fetch/request.ts';
import { modelMetadata } from './model.ts';
import { plainInterrupts, plainOutputs } from './payload.ts';
import { newState, type Step, type StepState } from './steps.ts';

const SOURCE = 'langchain';

export interface StepBegin {
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

/** Returns what a step records. `given` is the metadata of the handler. Called only for a step that is recorded. */
export function describeStep(step: StepBegin, handler: object, given: Fields | undefined): StepStart<StepState> {
  const { runType, tags, metadata, extra, isChat, serialized } = step;
  const own = runType === 'llm' ? modelMetadata(metadata, extra?.invocation_params) : { ...metadata };
  const isCall = isCallType(runType);
  const sources = isCall ? { [SOURCES]: [SOURCE] } : {};
  const readInputs = () => guard('RunspanCallbackHandler', () => step.inputs?.());
  const call = stepCall(isCall ? readInputs() : undefined);
  const state = newState({
    handler,
    model: runType === 'llm' ? textOf(own.ls_model_name) : undefined,
    tags: tags && new WeakRef(tags),
    isChat: isChat === true,
    isGraph: listOf(fieldsOf(serialized).id)[0] === 'langgraph',
  });
  const description = {
    signal: requestSignal(undefined, extra?.options),
    // Tags and metadata are set after the start, so that nested runs do not inherit them. LangChain already passes
    // inherited tags and metadata to each step.
    started: (begun: Run) => begun.set({ tags: tags ?? [], metadata: { ...own, ...sources, ...given } }),
  };
  return { state, inputs: isCall ? call.inputs : readInputs, call, description };
}

/** The open record of a call must not keep the step, whose list of tags is collected when its stream is abandoned. */
function stepCall(inputs: Readonly<Fields> | undefined) {
  return { source: SOURCE, inputs: () => inputs };
}

/** Returns a component's class name, which is the last part of its path. */
export function componentName(serialized: unknown): string | undefined {
  const name = listOf(fieldsOf(serialized).id).at(-1);
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/**
 * Ends a step's run with the value that the step threw. If LangGraph threw it to pause or to leave a graph, interrupts or
 * a command are recorded as outputs.
 */
export function failStep(run: Run, state: StepState, thrown: unknown, parent: Step | undefined): void {
  const { interrupts, command } = fieldsOf(thrown);
  if (leavesGraph(thrown)) {
    if (Array.isArray(interrupts)) run.keepResult(plainInterrupts(interrupts));
    else if (command !== undefined) run.keepResult(plainOutputs({ command }));
  } else if (parent !== undefined) parent.state.thrown = thrown;
  run.isAborted = isPlainAbort(run, state, thrown);
  run.fail(thrown);
}

/**
 * Returns whether LangChain threw a plain error because of an abort. For every aborted signal, a LangGraph graph throws
 * `Error: Abort`, and its node throws the signal's reason, which may be a timeout.
 */
function isPlainAbort({ traceId }: Run, { isGraph, thrown: nested }: StepState, thrown: unknown): boolean {
  const { name, message } = fieldsOf(thrown);
  if (name !== 'Error') return false;
  if (message !== 'Abort') return message === 'AbortError' || message === 'Aborted';
  return isGraph && (nested === undefined || isAbort(nested, traceId));
}
