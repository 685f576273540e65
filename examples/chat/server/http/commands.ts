import { Command, START } from '@langchain/langgraph';
import type { z } from 'zod';
import { RequestError } from '../errors.ts';
import { answerOf, answerProblem } from '../runs/approval.ts';
import { fieldsOf, hasContent, titleOf, withMessages } from '../runs/messages.ts';
import type { Agent } from '../runs/run.ts';
import type { Runs, StartedRun } from '../runs/runs.ts';
import { INPUT_RESPOND, parsed, RUN_START } from './requests.ts';

/** Executes the protocol's two commands, which both start a run. */
export class Commands {
  readonly #agent: Agent;
  readonly #runs: Runs;

  constructor(agent: Agent, runs: Runs) {
    this.#agent = agent;
    this.#runs = runs;
  }

  /** Rejects with a RequestError if the command cannot be executed. */
  execute(threadId: string, method: string, params: object, headers: Headers): Promise<StartedRun> {
    if (method === 'run.start') return this.#start(threadId, parsed(RUN_START, params, 'params'), headers);
    if (method === 'input.respond') return this.#respond(threadId, parsed(INPUT_RESPOND, params, 'params'), headers);
    const name = JSON.stringify(method.slice(0, 100));
    throw new RequestError('unknown_command', `Unknown command ${name}. The commands are run.start and input.respond.`);
  }

  async #start(threadId: string, params: z.infer<typeof RUN_START>, headers: Headers): Promise<StartedRun> {
    const { metadata } = params;
    const input = withMessages(params.input ?? null, 'params.input');
    const strategy = params.multitaskStrategy ?? params.multitask_strategy ?? 'enqueue';
    const checkpointId = params.config?.configurable?.checkpoint_id ?? params.checkpoint_id ?? undefined;
    if (strategy === 'rollback')
      throw new RequestError('not_supported', 'Use the strategy "interrupt", "enqueue" or "reject", not "rollback".');
    const place = checkpointId === undefined ? {} : { checkpoint_id: checkpointId };
    const { createdAt, tasks, values, next } = await this.#agent.getState({
      configurable: { thread_id: threadId, ...place },
    });
    if (checkpointId !== undefined && createdAt === undefined)
      throw new RequestError('no_such_checkpoint', `Thread ${threadId} has no checkpoint ${checkpointId}.`);
    if ((params.ifNotExists ?? params.if_not_exists) === 'reject' && createdAt === undefined)
      throw new RequestError('no_such_thread', `Thread ${threadId} has no state. It may have been deleted.`);
    const isAsking = tasks.some(({ interrupts }) => interrupts.length > 0);
    // A run can continue without an input if the state has content, or if no run has read the thread's last input yet.
    const canContinue = hasContent(values) || next.includes(START);
    // If the thread has an open interrupt, any input is accepted as the response.
    const isValid = isObject(input) ? hasContent(input) || canContinue : input === null ? canContinue : isAsking;
    if (!isValid)
      throw new RequestError(
        'invalid_argument',
        'params.input: Expected a message with content, such as {"messages": [{"role": "user", "content": "Hello"}]}',
      );
    const title = titleOf(input);
    return this.#runs.start({ threadId, input, checkpointId, metadata, strategy, title }, headers);
  }

  async #respond(threadId: string, params: z.infer<typeof INPUT_RESPOND>, headers: Headers): Promise<StartedRun> {
    const { responses, interrupt_id, response, update, goto, metadata } = params;
    if (goto !== undefined && goto !== null) throw new RequestError('not_supported', '"goto" is not supported.');
    const answers = responses ?? (interrupt_id === undefined ? [] : [{ interrupt_id, response }]);
    if (answers.length === 0)
      throw new RequestError('invalid_argument', 'params: Expected an interrupt_id, or responses.');
    const { tasks } = await this.#agent.getState({ configurable: { thread_id: threadId } });
    const interrupts = tasks.flatMap((task) => task.interrupts);
    const resume: Record<string, unknown> = {};
    for (const answer of answers) {
      const interrupt = interrupts.find(({ id }) => id === answer.interrupt_id);
      if (interrupt === undefined) {
        const name = JSON.stringify(answer.interrupt_id.slice(0, 100));
        throw new RequestError('no_such_interrupt', `Thread ${threadId} has no open request ${name}.`);
      }
      const problem = answerProblem(interrupt.value, answer.response);
      if (problem !== undefined) throw new RequestError('invalid_argument', `params.response: ${problem}`);
      resume[answer.interrupt_id] = answerOf(interrupt.value, answer.response);
    }
    const pairs = (Array.isArray(update) ? update : Object.entries(update ?? {})).map(([name, value]) => {
      const checked = withMessages({ [name]: value }, 'params.update', true);
      return [name, fieldsOf(checked)[name]] as [string, unknown];
    });
    const input = new Command({ resume, ...(pairs.length > 0 && { update: pairs }) });
    // The strategy is `reject`: a run in progress changes the thread, so the request that is answered may no longer
    // exist afterwards.
    return this.#runs.start({ threadId, input, metadata, strategy: 'reject', title: '' }, headers);
  }
}

function isObject(value: unknown): boolean {
  return value === fieldsOf(value) && !Array.isArray(value);
}
