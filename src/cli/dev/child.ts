import { type ChildProcess, spawn } from 'node:child_process';
import { messageOf } from '../../base/text.ts';
import { type CommandContext, CommandFailure, type Ending, STOP_SIGNALS, UsageError } from '../command-line.ts';
import { inShellQuotes } from '../terminal-text.ts';

export type ChildCommand = readonly [string, ...string[]];

/** Number of stop signals after which a command is killed. */
const SIGNALS_MAX = 3;

/**
 * Returns the command after `--`, or undefined if there is none. `words` contains all arguments that are not options.
 */
export function childCommand(words: readonly string[], { argv }: CommandContext): ChildCommand | undefined {
  const end = argv.indexOf('--');
  const own = end === -1 ? words : words.slice(0, words.length - (argv.length - end - 1));
  if (own[0] !== undefined) throw new UsageError(`expected -- before the command ${inShellQuotes(own[0])}`);
  if (end === -1) return undefined;
  const [program, ...args] = argv.slice(end + 1);
  if (!program) throw new UsageError('expected a command after --');
  return [program, ...args];
}

/**
 * Runs a command without a shell. The command shares the standard streams of the CLI and receives its signals. If
 * `stderr` is given, the command's standard output goes to `stderr`. Rejects if the command cannot be started.
 */
export async function runChild(
  [program, ...args]: ChildCommand,
  env: NodeJS.ProcessEnv,
  output: 'stdout' | 'stderr' = 'stdout',
): Promise<Ending> {
  let stopForwarding = (): void => {};
  try {
    return await new Promise((resolve, reject) => {
      const child = spawn(program, args, { env, stdio: ['inherit', process[output].fd, 'inherit'] });
      stopForwarding = forwardSignals(child);
      child.on('exit', (code, signal) => resolve(signal ?? code ?? 1));
      child.on('error', (error) => {
        // After the command has started, an `error` event only means that a signal could not be sent.
        if (child.pid === undefined) reject(error);
      });
    });
  } catch (error) {
    throw notStarted(program, error);
  } finally {
    stopForwarding();
  }
}

/** Forwards signals to the child process until the returned function is called. */
function forwardSignals(child: ChildProcess): () => void {
  const isInTerminal = [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);
  let count = 0;
  const forward = (signal: NodeJS.Signals): void => {
    count += 1;
    const forwarded = forwardedSignal(signal, count, isInTerminal);
    if (forwarded !== undefined) child.kill(forwarded);
  };
  for (const signal of STOP_SIGNALS) process.on(signal, forward);
  return () => {
    for (const signal of STOP_SIGNALS) process.off(signal, forward);
  };
}

/** Returns the signal to send to the command when the CLI receives its `count`th signal. */
export function forwardedSignal(
  signal: NodeJS.Signals,
  count: number,
  isInTerminal: boolean,
): NodeJS.Signals | undefined {
  if (count >= SIGNALS_MAX) return 'SIGKILL';
  // A terminal sends SIGINT and SIGHUP to all foreground processes, so the command has already received the first
  // signal. The second signal is forwarded in case the first reached only the CLI.
  const isFromTerminal = isInTerminal && (signal === 'SIGINT' || signal === 'SIGHUP');
  return isFromTerminal && count === 1 ? undefined : signal;
}

function notStarted(program: string, error: unknown): Error {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return new CommandFailure(`command not found: ${inShellQuotes(program)}`, 127);
  const reason = code === 'EACCES' ? 'the file is not executable' : messageOf(error);
  return new CommandFailure(`cannot start ${inShellQuotes(program)}: ${reason}`, 126);
}
