import { RunspanError } from '../base/errors.ts';
import { isObject } from '../base/options.ts';
import { cut } from '../base/text.ts';
import { ApiError, type CallFacts } from './api-error.ts';

/** Characters of what the server says that are in a message. */
const MESSAGE_MAX = 500;

/** Why a command was not done. */
export type CommandErrorReason =
  | 'invalid_argument'
  | 'unknown_command'
  | 'unknown_error'
  | 'no_such_run'
  | 'no_such_subscription'
  | 'no_such_namespace'
  | 'no_such_interrupt'
  | 'no_such_checkpoint'
  | 'permission_denied'
  | 'not_supported'
  | (string & {});

/** A server has answered a command with an error of the agent streaming protocol. It has done nothing of it. */
export class CommandError extends RunspanError {
  override readonly name: string = 'CommandError';
  readonly reason: CommandErrorReason;
  /** What the server says; undefined where it says nothing. */
  readonly detail: string | undefined;
  /** The command: `run.start`. */
  readonly command: string;
  readonly request: CallFacts;

  private constructor(command: string, { request, ...told }: CommandRefusal, options: ErrorOptions) {
    const reason = cut(told.reason, MESSAGE_MAX);
    const said = told.detail === undefined ? '' : `: ${cut(told.detail, MESSAGE_MAX)}`;
    const what = `[${request.method}] "${request.url}": the command ${command} was refused (${reason})${said}`;
    super('RUNSPAN_COMMAND_REFUSED', what, options);
    this.reason = told.reason;
    this.detail = told.detail;
    this.command = command;
    this.request = request;
  }

  /** @internal Undefined where the body of an answer is no error of the protocol. */
  static of(command: string, answer: CommandAnswer, options: ErrorOptions = {}): CommandError | undefined {
    const { body, request, masked } = answer;
    if (!isObject(body) || body.type !== 'error' || typeof body.error !== 'string') return undefined;
    const detail = typeof body.message === 'string' && body.message !== '' ? masked(body.message) : undefined;
    return new CommandError(command, { request, reason: masked(body.error), detail }, options);
  }

  /** @internal The same of an answer with a status that is no success; the answer itself where it says nothing of the command. */
  static ofStatus(command: string, thrown: unknown): unknown {
    if (!(thrown instanceof ApiError)) return thrown;
    const { body, request, status } = thrown;
    if (status >= 500 || status === 429) return thrown;
    return CommandError.of(command, { body, request, masked: (text) => text }, { cause: thrown }) ?? thrown;
  }
}

/** An answer to a command. */
interface CommandAnswer {
  readonly body: unknown;
  readonly request: CallFacts;
  readonly masked: (text: string) => string;
}

interface CommandRefusal {
  readonly request: CallFacts;
  readonly reason: string;
  readonly detail: string | undefined;
}
