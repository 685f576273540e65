import * as v from 'valibot';
import { isObject } from '../../../config/checker.ts';
import type { Api } from '../../api.ts';
import type { BodySchema } from '../../body.ts';
import type { Call } from '../../endpoint.ts';
import { ANY, listOf, required, type Schema, TEXT } from '../../schema.ts';
import type { AgentConfig } from '../assistants.ts';
import { CommandError } from '../errors.ts';
import type { RunRequest } from '../run-request.ts';

/** A run to start on a thread. */
export interface ThreadRunRequest {
  /** The agent's input. Pass `null` to continue from the thread's state. */
  input: unknown;
  /** @default '_', the application's only agent */
  assistant_id?: string;
  config?: AgentConfig;
  metadata?: Readonly<Record<string, unknown>>;
  /**
   * Id of the checkpoint to continue from. An earlier checkpoint creates a branch in the thread.
   * @default the latest checkpoint
   */
  checkpoint_id?: string;
  /** What to do if another run is active on the thread. The default depends on the server. */
  multitask_strategy?: RunRequest['multitask_strategy'];
  /** Whether to create a thread that does not exist, or to reject the run. The default depends on the server. */
  if_not_exists?: RunRequest['if_not_exists'];
}

/** A response to one interrupt. */
export interface InterruptResponse {
  /** Id of the interrupt, from an `input.requested` event or from a task in the thread's state. */
  interrupt_id: string;
  /** Value to return to the agent. */
  response: unknown;
  /** Namespace of the interrupt. @default [] */
  namespace?: readonly string[];
}

/** Optional fields to send with a response to interrupts. */
export interface ResponseFields {
  /** State changes to apply before the agent continues. */
  update?: unknown;
  /** The node or nodes to run next. */
  goto?: unknown;
  config?: AgentConfig;
  metadata?: Readonly<Record<string, unknown>>;
}

/** A response to one interrupt, or a list of responses to all pending interrupts. */
export type ThreadResponse =
  | (InterruptResponse & ResponseFields & { responses?: undefined })
  | (ResponseFields & { responses: readonly InterruptResponse[] });

/** A run that a command started or continued. */
export interface CommandedRun {
  /** Id of the run. Some servers omit the id when a run continues. */
  readonly run_id?: string;
  /** Sequence number of the last event before the command took effect. */
  readonly applied_through_seq?: number;
}

/** A newly started run, whose id is known. */
export interface StartedRun extends CommandedRun {
  readonly run_id: string;
}

/** Body of a command without the command's id. */
export interface Command {
  readonly method: 'run.start' | 'input.respond';
  readonly params: Readonly<Record<string, unknown>>;
}

export const START: BodySchema = v.pipe(
  required<ThreadRunRequest>({ input: ANY }),
  v.transform(({ checkpoint_id, multitask_strategy, if_not_exists, config, ...run }): Command => {
    const isBranch = checkpoint_id !== undefined;
    const branch = isBranch && { configurable: { ...config?.configurable, checkpoint_id } };
    const params = {
      assistant_id: '_',
      ...run,
      ...((config !== undefined || isBranch) && { config: { ...config, ...branch } }),
      // The protocol uses camel case for these parameters.
      ...(multitask_strategy !== undefined && { multitaskStrategy: multitask_strategy }),
      ...(if_not_exists !== undefined && { ifNotExists: if_not_exists }),
    };
    return { method: 'run.start', params };
  }),
);

const RESPONSE = v.pipe(
  required<Omit<InterruptResponse, 'response'> & { response?: unknown }>({ interrupt_id: TEXT }),
  // An omitted response is sent as `null`.
  v.transform((one) => ({ namespace: [], ...one, response: one.response ?? null })),
);
const RESPONSES = required<{ responses: object[] }>({ responses: listOf<object>(RESPONSE, 1) });

export const RESPOND: BodySchema = v.pipe(
  v.lazy((given) => (isObject(given) && given.responses !== undefined ? RESPONSES : RESPONSE) as Schema<object>),
  v.transform((params): Command => ({ method: 'input.respond', params: params as Command['params'] })),
);

/** Sends a command. Rejects with a CommandError if the server refuses the command. */
export async function sendCommand(api: Api, call: Call): Promise<CommandedRun> {
  const { method } = call.body as Command;
  const answer = await api.send<unknown>({ ...call, response: 'any' }).catch((thrown: unknown) => {
    throw CommandError.ofStatus(method, thrown);
  });
  const { data } = answer;
  const refused = CommandError.of(method, data, api.factsOf(call), (text) => api.masked(text, call));
  if (refused !== undefined) throw refused;
  // A server may respond with status 202 or 204 and an empty body.
  if (data !== undefined && !isObject(data)) throw api.invalidAnswer(call, answer, 'is not an object');
  const run = runOf(data ?? {});
  if (method === 'run.start' && run.run_id === undefined) throw api.invalidAnswer(call, answer, 'has no run id');
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
