/** What the protocol calls the ways in which a command can fail, and `no_such_thread`, which it has no word for. */
export type CommandErrorCode =
  | 'invalid_argument'
  | 'unknown_command'
  | 'unknown_error'
  | 'no_such_run'
  | 'no_such_interrupt'
  | 'no_such_checkpoint'
  | 'no_such_thread'
  | 'not_supported';

/** A command that was understood and cannot be done. Clients are told its message. */
export class CommandError extends Error {
  override readonly name: string = 'CommandError';
  readonly code: CommandErrorCode;

  constructor(code: CommandErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
