import { Command } from '@langchain/langgraph';
import { z } from 'zod';
import { isAway, reasonOf, STORE_AWAY } from '../storage/store-error.ts';
import type { Agent } from './agent.ts';
import { CHECKPOINT_ID } from './checkpoint-id.ts';
import { CommandError } from './command-error.ts';
import { fieldsOf } from './fields.ts';
import { messagesFault } from './given-messages.ts';
import type { Runs, StartedRun } from './runs.ts';

/** A command as clients of the protocol send it. */
export interface CommandRequest {
  readonly id: number;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>> | null | undefined;
}

export type CommandAnswer =
  | {
      readonly type: 'success';
      readonly id: number;
      readonly result: { readonly run_id: string };
      readonly meta: {
        readonly thread_id: string;
        /** Of the run, as the metadata of its states has it. */
        readonly trace_id: string;
        /** The number of the last event before those of the run. */
        readonly applied_through_seq: number;
      };
    }
  | { readonly type: 'error'; readonly id: number | null; readonly error: string; readonly message: string };

const record = z.record(z.string(), z.unknown());
const config = z
  .looseObject({ configurable: z.looseObject({ checkpoint_id: CHECKPOINT_ID.nullish() }).nullish() })
  .nullish();

const strategy = z.enum(['reject', 'interrupt', 'enqueue', 'rollback']).nullish();
const existence = z.enum(['create', 'reject']).nullish();

/** The state's fields, or pairs of them of which one may come twice. */
const UPDATE = z.union([record, z.array(z.tuple([z.string(), z.unknown()]))]);

const RUN_START = z.looseObject({
  input: z.unknown().optional(),
  config,
  metadata: record.nullish(),
  multitaskStrategy: strategy,
  ifNotExists: existence,
  // As other servers have them.
  if_not_exists: existence,
  multitask_strategy: strategy,
  checkpoint_id: CHECKPOINT_ID.nullish(),
});

const ANSWER = z.looseObject({ interrupt_id: z.string().min(1), response: z.unknown().optional() });
const INPUT_RESPOND = z.looseObject({
  responses: z.array(ANSWER).min(1).optional(),
  interrupt_id: z.string().min(1).optional(),
  response: z.unknown().optional(),
  update: UPDATE.nullish(),
  goto: z.unknown().optional(),
  metadata: record.nullish(),
});

/** Does what commands ask for. What fails is an answer as well, as the protocol has it. */
export class Commands {
  readonly #agent: Agent;
  readonly #runs: Runs;
  readonly #log: (line: string) => void;

  constructor(agent: Agent, runs: Runs, log: (line: string) => void) {
    this.#agent = agent;
    this.#runs = runs;
    this.#log = log;
  }

  async answer(threadId: string, command: CommandRequest, headers: Headers): Promise<CommandAnswer> {
    const { id } = command;
    try {
      const { runId, traceId, afterSeq } = await this.#do(threadId, command, headers);
      const meta = { thread_id: threadId, trace_id: traceId, applied_through_seq: afterSeq };
      return { type: 'success', id, result: { run_id: runId }, meta };
    } catch (error) {
      if (error instanceof CommandError) return { type: 'error', id, error: error.code, message: error.message };
      const what = `${command.method} in thread ${threadId}`;
      if (isAway(error)) {
        this.#log(`${what}: the store does not answer: ${reasonOf(error)}`);
        return { type: 'error', id, error: 'unavailable', message: STORE_AWAY };
      }
      this.#log(`${what}: ${(error as Error).stack}`);
      return {
        type: 'error',
        id,
        error: 'unknown_error',
        message: 'The command failed; the log of the server says why.',
      };
    }
  }

  async #do(threadId: string, { method, params }: CommandRequest, headers: Headers): Promise<StartedRun> {
    switch (method) {
      case 'run.start':
        return this.#start(threadId, read(method, RUN_START, params), headers);
      case 'input.respond':
        return this.#respond(threadId, read(method, INPUT_RESPOND, params), headers);
      default:
        throw new CommandError(
          'unknown_command',
          `There is no command ${JSON.stringify(method.slice(0, 100))}; there are run.start and input.respond.`,
        );
    }
  }

  async #start(threadId: string, params: z.infer<typeof RUN_START>, headers: Headers): Promise<StartedRun> {
    const { input = null, metadata } = params;
    const multitaskStrategy = params.multitaskStrategy ?? params.multitask_strategy;
    if (multitaskStrategy === 'rollback') {
      throw new CommandError(
        'not_supported',
        'The strategy "rollback" is not supported; use "interrupt", "enqueue" or "reject".',
      );
    }
    const fault = messagesFault(input);
    if (fault !== undefined) throw new CommandError('invalid_argument', `run.start: params.input.${fault}`);
    if ((params.ifNotExists ?? params.if_not_exists) === 'reject') await this.#checkThread(threadId);
    const checkpointId = params.config?.configurable?.checkpoint_id ?? params.checkpoint_id ?? undefined;
    if (checkpointId !== undefined) await this.#checkCheckpoint(threadId, checkpointId);
    if (!isObject(input)) await this.#checkInput(threadId, input);
    return this.#runs.start(threadId, {
      input,
      checkpointId,
      metadata: metadata ?? undefined,
      multitaskStrategy: multitaskStrategy ?? undefined,
      headers,
    });
  }

  async #respond(threadId: string, params: z.infer<typeof INPUT_RESPOND>, headers: Headers): Promise<StartedRun> {
    const { responses, interrupt_id, response, update, goto, metadata } = params;
    if (goto !== undefined && goto !== null)
      throw new CommandError('not_supported', 'An answer cannot name the next nodes: "goto" is not supported.');
    for (const values of valuesOf(update)) {
      const fault = messagesFault(values, true);
      if (fault !== undefined) throw new CommandError('invalid_argument', `input.respond: params.update.${fault}`);
    }
    const answers = responses ?? (interrupt_id === undefined ? [] : [{ interrupt_id, response }]);
    if (answers.length === 0)
      throw new CommandError('invalid_argument', 'input.respond needs an interrupt_id, or responses.');
    const { tasks } = await this.#agent.getState({ configurable: { thread_id: threadId } });
    const asked = tasks.flatMap(({ interrupts }) => interrupts ?? []);
    for (const answer of answers) {
      const interrupt = asked.find(({ id }) => id === answer.interrupt_id);
      if (interrupt === undefined) {
        throw new CommandError(
          'no_such_interrupt',
          `Thread ${threadId} does not wait for an answer to ${JSON.stringify(answer.interrupt_id.slice(0, 100))}.`,
        );
      }
      const fault = answerFault(interrupt.value, answer.response);
      if (fault !== undefined) throw new CommandError('invalid_argument', `input.respond: ${fault}`);
    }
    const resume = Object.fromEntries(answers.map((answer) => [answer.interrupt_id, answer.response]));
    const input = new Command({ resume, ...(update ? { update } : {}) });
    // What waits for the answer is gone when another run has changed the thread.
    return this.#runs.start(threadId, {
      input,
      metadata: metadata ?? undefined,
      multitaskStrategy: 'reject',
      headers,
    });
  }

  async #checkThread(threadId: string): Promise<void> {
    const { createdAt } = await this.#agent.getState({ configurable: { thread_id: threadId } });
    if (createdAt === undefined)
      throw new CommandError('no_such_thread', `Thread ${threadId} has no state; it was deleted, or has never been.`);
  }

  /** An input is the state's fields. What waits for an answer may take any, and what has stopped goes on without one. */
  async #checkInput(threadId: string, input: unknown): Promise<void> {
    const { tasks, createdAt } = await this.#agent.getState({ configurable: { thread_id: threadId } });
    const isAsking = tasks.some(({ interrupts }) => (interrupts ?? []).length > 0);
    if (input === null ? createdAt !== undefined : isAsking) return;
    throw new CommandError(
      'invalid_argument',
      'run.start: params.input: Expected an object such as {"messages": [{"role": "user", "content": "Hello"}]}',
    );
  }

  async #checkCheckpoint(threadId: string, checkpointId: string): Promise<void> {
    const { createdAt } = await this.#agent.getState({
      configurable: { thread_id: threadId, checkpoint_id: checkpointId },
    });
    if (createdAt === undefined)
      throw new CommandError('no_such_checkpoint', `Thread ${threadId} has no checkpoint ${checkpointId}.`);
  }
}

/** What is asked may name the `decisions` that answer it. Nobody is to find out later that something else was taken for one of them. */
function answerFault(asked: unknown, response: unknown): string | undefined {
  if (response === undefined) return 'Expected a response';
  const { decisions } = fieldsOf(asked);
  if (!Array.isArray(decisions) || decisions.includes(fieldsOf(response).decision)) return undefined;
  return `Expected a response with a decision that is one of ${JSON.stringify(decisions)}`;
}

function valuesOf(update: z.infer<typeof UPDATE> | null | undefined): unknown[] {
  return Array.isArray(update) ? update.map(([name, value]) => ({ [name]: value })) : [update];
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function read<Params>(method: string, schema: z.ZodType<Params>, params: unknown): Params {
  const result = schema.safeParse(params ?? {});
  if (result.success) return result.data;
  const mistakes = result.error.issues.map(
    ({ path, message }) => `params${path.map((part) => `.${String(part)}`).join('')}: ${message}`,
  );
  throw new CommandError('invalid_argument', `${method}: ${mistakes.join('; ')}`);
}
