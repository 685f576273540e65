import { isObject } from '../base/options.ts';
import type { AgentService } from './agent-service.ts';
import { InvalidAnswerError } from './api-error.ts';
import type { AgentConfig } from './assistants.ts';
import {
  ANYTHING,
  type BodyRule,
  type BodyRules,
  bodyErrors,
  checkedBody,
  OBJECT,
  oneOf,
  required,
  TEXT,
  TEXTS,
} from './body-rules.ts';
import type { Call } from './call.ts';
import { CommandError } from './command-error.ts';
import type { RunRequest } from './run-request.ts';
import { InvalidRequestError } from './validation-error.ts';

/** What a run of a thread is started with. */
export interface ThreadRunRequest {
  /** What the agent is given; null goes on from the state of the thread. */
  input: unknown;
  /** @default '_', the agent of an application that has one */
  assistant_id?: string;
  config?: AgentConfig;
  metadata?: Readonly<Record<string, unknown>>;
  /** The state that it goes on from, which makes a branch of the thread; by default the latest. */
  checkpoint_id?: string;
  /** What is done while another run is on the thread; the default is the server's. */
  multitask_strategy?: RunRequest['multitask_strategy'];
}

/** The answer to one interrupt. */
export interface InterruptResponse {
  /** Of the event `input.requested`, or of a task of the state. */
  interrupt_id: string;
  /** What the agent goes on with. */
  response: unknown;
  /** Of the same event. @default [] */
  namespace?: readonly string[];
}

/** Optional fields that accompany the responses to interrupts. */
export interface ResponseFields {
  /** Changes to the state, applied before the agent continues. */
  update?: unknown;
  /** The nodes to run next. */
  goto?: unknown;
  config?: AgentConfig;
  metadata?: Readonly<Record<string, unknown>>;
}

/** Answers to interrupts: to one, or to several that wait at the same time, which have to be answered at once. */
export type ThreadResponse =
  | (InterruptResponse & ResponseFields & { responses?: undefined })
  | (ResponseFields & { responses: readonly InterruptResponse[] });

/** A run of a thread, as the answer to a command tells of it. */
export interface CommandedRun {
  /** Undefined where the server does not tell, as some do not when they go on with a run. */
  readonly run_id?: string;
  /** The place of the last event ahead of what the command has set in motion, where the server tells. */
  readonly applied_through_seq?: number;
}

export interface StartedRun extends CommandedRun {
  readonly run_id: string;
}

const GOTO: BodyRule = [
  'the name of a node, an object, or a list of these',
  (value) => [value].flat().every((one) => TEXT[1](one) || OBJECT[1](one)),
];
const UPDATE: BodyRule = ['an object, or a list of pairs', (value) => OBJECT[1](value) || Array.isArray(value)];

const RUN_RULES: BodyRules<ThreadRunRequest> = {
  input: required(['anything but undefined', (value) => value !== undefined]),
  assistant_id: TEXT,
  config: OBJECT,
  metadata: OBJECT,
  checkpoint_id: TEXT,
  multitask_strategy: oneOf('reject', 'rollback', 'interrupt', 'enqueue'),
};

const WITH_RULES: BodyRules<ResponseFields> = { update: UPDATE, goto: GOTO, config: OBJECT, metadata: OBJECT };

const ONE_RULES: BodyRules<InterruptResponse> = {
  interrupt_id: required(TEXT),
  response: ANYTHING,
  namespace: TEXTS,
};

/** The parameters of `run.start`, checked. */
export function startParams(call: string, run: ThreadRunRequest): Record<string, unknown> {
  const { checkpoint_id, multitask_strategy, config, ...body } = checkedBody(call, run, RUN_RULES);
  const { configurable } = (config ?? {}) as AgentConfig;
  const from = checkpoint_id === undefined ? {} : { configurable: { ...(configurable as object), checkpoint_id } };
  return {
    assistant_id: '_',
    ...body,
    ...((config ?? checkpoint_id) !== undefined && { config: { ...(config as object), ...from } }),
    // The one parameter that is not written as the others are.
    ...(multitask_strategy !== undefined && { multitaskStrategy: multitask_strategy }),
  };
}

/** The parameters of `input.respond`, checked. */
export function respondParams(call: string, answer: ThreadResponse): Record<string, unknown> {
  if (!isObject(answer) || answer.responses === undefined) {
    const one = checkedBody(call, answer as InterruptResponse & ResponseFields, { ...ONE_RULES, ...WITH_RULES });
    return { namespace: [], response: null, ...one };
  }
  const { responses, ...others } = answer;
  const isList = Array.isArray(responses) && responses.length > 0;
  const errors = [
    ...(isList ? responses.flatMap((one, at) => bodyErrors(['body', 'responses', at], one, ONE_RULES)) : []),
    ...(isList ? [] : [{ loc: ['body', 'responses'], msg: 'Expected a list that is not empty', type: 'value_error' }]),
    ...bodyErrors(['body'], others as ResponseFields, WITH_RULES),
  ];
  if (errors.length > 0) throw new InvalidRequestError(call, errors);
  return { ...others, responses: responses.map((one) => ({ namespace: [], ...one, response: one.response ?? null })) };
}

/** Sends a command, once: it makes a run. Rejects with a CommandError where the server refuses it. */
export async function sendCommand(
  service: AgentService,
  call: Omit<Call, 'method' | 'body'>,
  command: { readonly id: number; readonly method: string; readonly params: Record<string, unknown> },
): Promise<CommandedRun> {
  const { method } = command;
  const sent: Call = { ...call, method: 'POST', body: command };
  const answer = await service.api.answer<unknown>(sent).catch((thrown: unknown) => {
    throw CommandError.ofStatus(method, thrown);
  });
  const { data } = answer;
  const request = service.api.factsOf(sent);
  const refused = CommandError.of(method, { body: data, request, masked: (text) => service.api.masked(text, sent) });
  if (refused !== undefined) throw refused;
  // Nothing to tell is an answer as well (202, 204).
  if (data !== undefined && !isObject(data)) throw new InvalidAnswerError(request, answer, 'is no object');
  const run = runOf(data ?? {});
  if (method === 'run.start' && run.run_id === undefined) throw new InvalidAnswerError(request, answer, 'names no run');
  return run;
}

function runOf({ result, meta }: Record<string, unknown>): CommandedRun {
  const { run_id } = isObject(result) ? result : {};
  const { applied_through_seq } = isObject(meta) ? meta : {};
  return {
    ...(typeof run_id === 'string' && { run_id }),
    ...(typeof applied_through_seq === 'number' && { applied_through_seq }),
  };
}
