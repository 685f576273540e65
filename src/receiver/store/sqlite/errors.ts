import { RunspanError } from '../../../base/errors.ts';
import { messageOf } from '../../../base/text.ts';

/** Result codes of SQLite (https://sqlite.org/rescode.html) for problems of the file or the machine, not of a statement. */
const CODES = {
  permission: 3,
  busy: 5,
  locked: 6,
  noMemory: 7,
  readOnly: 8,
  inputOutput: 10,
  damaged: 11,
  full: 13,
  cannotOpen: 14,
  noDatabase: 26,
} as const;
const OF_THE_FILE: readonly number[] = Object.values(CODES);

/** Returns the result code of an error of SQLite. */
function resultCodeOf(error: unknown): number | undefined {
  const { errcode } = (error ?? {}) as { errcode?: unknown };
  // Higher bits refine the code.
  return typeof errcode === 'number' ? errcode & 0xff : undefined;
}

export function isBusy(error: unknown): boolean {
  return resultCodeOf(error) === CODES.busy;
}

/** Whether SQLite reports that the file is not a database. */
export function isNoDatabase(error: unknown): boolean {
  return resultCodeOf(error) === CODES.noDatabase;
}

/** Whether the file cannot be used at present. */
export function isOfTheFile(error: unknown): boolean {
  return OF_THE_FILE.includes(resultCodeOf(error) ?? -1);
}

/** Converts an error of SQLite or the system to a RunspanError that says what to do. Returns other errors unchanged. */
export function toStoreError(error: unknown, path: string): unknown {
  if (!isOfTheFile(error) && !isOfTheSystem(error)) return error;
  const code = resultCodeOf(error);
  const options = { cause: error };
  if (code === CODES.damaged || code === CODES.noDatabase) return damaged(path, messageOf(error), options);
  const remedy =
    code === CODES.full
      ? 'the disk is full: make room'
      : `${messageOf(error)}: see whether the folder and the file may be written`;
  return new RunspanError('RUNSPAN_STORE_FAILED', `The store ${path} cannot be used: ${remedy}`, options);
}

function damaged(path: string, problem: string, options: ErrorOptions): RunspanError {
  const message = `The store ${path} is damaged (${problem}): move it away together with ${path}-wal to begin anew, and rescue from there what can be read with \`sqlite3 ${path} .recover\``;
  return new RunspanError('RUNSPAN_STORE_INVALID', message, options);
}

function isOfTheSystem(error: unknown): boolean {
  return typeof (error as { syscall?: unknown } | null)?.syscall === 'string';
}
