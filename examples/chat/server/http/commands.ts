import { Command } from '@langchain/langgraph';
import type { z } from 'zod';
import { type COMMAND, INPUT_RESPOND, problems, RUN_START } from '../http/requests.ts';
import { isUnavailable, reasonOf } from '../storage/database.ts';
import { ThreadBusyError } from '../storage/store.ts';
import type { Agent } from './agent.ts';
import { answerProblem } from './approval.ts';
import { branchTitle, messagesProblem, titleOf } from './messages.ts';
import type { Runs, StartedRun, StartOptions } from './runs.ts';

export const STORE_UNAVAILABLE = 'The store does not respond. Try again later.';

export type CommandResponse =
  | {
      readonly type: 'success';
      readonly id: number;
      readonly result: { readonly run_id: string };
      readonly meta: { readonly thread_id: string; readonly trace_id: string; readonly applied_through_seq: number };
    }
  | { readonly type: 'error'; readonly id: number | null; readonly error: string; readonly message: string };

/** A command that cannot be executed. `code` is one of the protocol, or `no_such_thread`. */
class CommandError extends Error {
  override readonly name: string = 'CommandError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Executes commands. As the protocol requires, a failure is a response as well. */
export class Commands {
  readonly #agent: Agent;
  readonly #runs: Runs;
  readonly #log: (line: string) => void;

  constructor(agent: Agent, runs: Runs, log: (line: string) => void) {
    this.#agent = agent;
    this.#runs = runs;
    this.#log = log;
  }

  async execute(threadId: string, command: z.infer<typeof COMMAND>, headers: Headers): Promise<CommandResponse> {
    const { id, method, params } = command;
    try {
      const { runId, traceId, afterSeq } = await this.#execute(threadId, method, params ?? {}, headers);
      const meta = { thread_id: threadId, trace_id: traceId, applied_through_seq: afterSeq };
      return { type: 'success', id, result: { run_id: runId }, meta };
    } catch (error) {
      if (error instanceof CommandError) return { type: 'error', id, error: error.code, message: error.message };
      if (error instanceof ThreadBusyError)
        return { type: 'error', id, error: 'invalid_argument', message: error.message };
      if (isUnavailable(error)) {
        this.#log(`${method} in thread ${threadId}: the store does not respond: ${reasonOf(error)}`);
        return { type: 'error', id, error: 'unavailable', message: STORE_UNAVAILABLE };
      }
      this.#log(`${method} in thread ${threadId}: ${(error as Error).stack}`);
      return { type: 'error', id, error: 'unknown_error', message: 'The command failed. See the log of the server.' };
    }
  }

  #execute(threadId: string, method: string, params: object, headers: Headers): Promise<StartedRun> {
    if (method === 'run.start') return this.#start(threadId, parse(method, RUN_START, params), headers);
    if (method === 'input.respond') return this.#respond(threadId, parse(method, INPUT_RESPOND, params), headers);
    const name = JSON.stringify(method.slice(0, 100));
    throw new CommandError('unknown_command', `Unknown command ${name}. The commands are run.start and input.respond.`);
  }

  async #start(threadId: string, params: z.infer<typeof RUN_START>, headers: Headers): Promise<StartedRun> {
    const { input = null, metadata } = params;
    const strategy = params.multitaskStrategy ?? params.multitask_strategy ?? 'enqueue';
    const checkpointId = params.config?.configurable?.checkpoint_id ?? params.checkpoint_id ?? undefined;
    if (strategy === 'rollback')
      throw new CommandError('not_supported', 'Use the strategy "interrupt", "enqueue" or "reject", not "rollback".');
    const problem = messagesProblem(input);
    if (problem !== undefined) throw new CommandError('invalid_argument', `run.start: params.input.${problem}`);
    const place = checkpointId === undefined ? {} : { checkpoint_id: checkpointId };
    const { createdAt, tasks, values } = await this.#agent.getState({
      configurable: { thread_id: threadId, ...place },
    });
    if (checkpointId !== undefined && createdAt === undefined)
      throw new CommandError('no_such_checkpoint', `Thread ${threadId} has no checkpoint ${checkpointId}.`);
    if ((params.ifNotExists ?? params.if_not_exists) === 'reject' && createdAt === undefined)
      throw new CommandError('no_such_thread', `Thread ${threadId} has no state. It may have been deleted.`);
    const isAsking = tasks.some(({ interrupts }) => interrupts.length > 0);
    // A thread that waits accepts any answer, and a thread with a state can continue without an input.
    if (!isObject(input) && !(input === null ? createdAt !== undefined : isAsking))
      throw new CommandError(
        'invalid_argument',
        'run.start: params.input: Expected an object such as {"messages": [{"role": "user", "content": "Hello"}]}',
      );
    return this.#runs.start(threadId, {
      ...{ input, checkpointId, metadata: metadata ?? undefined, strategy, headers },
      title: checkpointId === undefined ? titleOf(input) : branchTitle(values, input),
      isRenamed: checkpointId !== undefined,
    });
  }

  async #respond(threadId: string, params: z.infer<typeof INPUT_RESPOND>, headers: Headers): Promise<StartedRun> {
    const { responses, interrupt_id, response, update, goto, metadata } = params;
    if (goto !== undefined && goto !== null)
      throw new CommandError('not_supported', 'input.respond: "goto" is not supported.');
    for (const values of Array.isArray(update) ? update.map(([name, value]) => ({ [name]: value })) : [update]) {
      const problem = messagesProblem(values, true);
      if (problem !== undefined) throw new CommandError('invalid_argument', `input.respond: params.update.${problem}`);
    }
    const answers = responses ?? (interrupt_id === undefined ? [] : [{ interrupt_id, response }]);
    if (answers.length === 0)
      throw new CommandError('invalid_argument', 'input.respond: Expected an interrupt_id, or responses.');
    const { tasks } = await this.#agent.getState({ configurable: { thread_id: threadId } });
    const interrupts = tasks.flatMap((task) => task.interrupts);
    for (const answer of answers) {
      const interrupt = interrupts.find(({ id }) => id === answer.interrupt_id);
      if (interrupt === undefined) {
        const name = JSON.stringify(answer.interrupt_id.slice(0, 100));
        throw new CommandError('no_such_interrupt', `Thread ${threadId} does not wait for an answer to ${name}.`);
      }
      const problem = answerProblem(interrupt.value, answer.response);
      if (problem !== undefined) throw new CommandError('invalid_argument', `input.respond: ${problem}`);
    }
    const resume = Object.fromEntries(answers.map((answer) => [answer.interrupt_id, answer.response]));
    const input = new Command({ resume, ...(update ? { update: update as Record<string, unknown> } : {}) });
    // Another run would change the thread, so that it no longer waits for the answer.
    const start: StartOptions = { input, title: '', isRenamed: false, strategy: 'reject', headers };
    return this.#runs.start(threadId, { ...start, metadata: metadata ?? undefined });
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parse<Params>(method: string, schema: z.ZodType<Params>, params: object): Params {
  const result = schema.safeParse(params);
  if (result.success) return result.data;
  const texts = problems(result.error, 'params').map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
  throw new CommandError('invalid_argument', `${method}: ${texts.join('; ')}`);
}
