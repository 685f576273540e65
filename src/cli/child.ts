import { type ChildProcess, spawn } from 'node:child_process';
import { messageOf } from '../base/text.ts';
import { quoted } from './terminal-text.ts';

/** A program to start and its arguments. */
export type Command = readonly [string, ...string[]];

/** How a command ended. */
export type Ending =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'not started'; readonly code: 126 | 127; readonly message: string };

const FORWARDED: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
/** So many signals in, the command is killed: it does not listen. */
const SIGNALS_MAX = 3;

/**
 * Runs a command, without a shell, on our own standard streams until it ends. Signals that come meanwhile are the
 * command's: how it ends is how we end. What it prints goes to our standard error where our standard output is for others.
 */
export function runChild(
  [program, ...args]: Command,
  env: NodeJS.ProcessEnv,
  output: 'stdout' | 'stderr' = 'stdout',
): Promise<Ending> {
  return new Promise((resolve) => {
    let child: ChildProcess;
    try {
      child = spawn(program, args, { env, stdio: ['inherit', process[output].fd, 'inherit'] });
    } catch (error) {
      resolve(notStarted(program, error));
      return;
    }
    const stopForwarding = forwardSignals(child);
    child.on('error', (error) => {
      // Later ones are of signals that could not be sent.
      if (child.pid !== undefined) return;
      stopForwarding();
      resolve(notStarted(program, error));
    });
    child.on('exit', (code, signal) => {
      stopForwarding();
      resolve(signal === null ? { kind: 'exit', code: code ?? 1 } : { kind: 'signal', signal });
    });
  });
}

/** The function given back ends it, and signals do again what they did before. */
function forwardSignals(child: ChildProcess): () => void {
  const isInTerminal = [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);
  let count = 0;
  const forward = (signal: NodeJS.Signals): void => {
    count += 1;
    const handed = handedOn(signal, count, isInTerminal);
    if (handed !== undefined) child.kill(handed);
  };
  for (const signal of FORWARDED) process.on(signal, forward);
  return () => {
    for (const signal of FORWARDED) process.off(signal, forward);
  };
}

/** What the command is sent when we are sent a signal, the `count`th in all. */
export function handedOn(signal: NodeJS.Signals, count: number, isInTerminal: boolean): NodeJS.Signals | undefined {
  if (count >= SIGNALS_MAX) return 'SIGKILL';
  // A terminal sends these to every process of the foreground, the command among them; a second one makes many programs
  // give up at once. That one is handed on nevertheless: the first may have been sent to us alone.
  const isFromTerminal = isInTerminal && (signal === 'SIGINT' || signal === 'SIGHUP');
  return isFromTerminal && count === 1 ? undefined : signal;
}

function notStarted(program: string, error: unknown): Ending {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return { kind: 'not started', code: 127, message: `command not found: ${quoted(program)}` };
  const reason = code === 'EACCES' ? 'it is not executable' : messageOf(error);
  return { kind: 'not started', code: 126, message: `cannot start ${quoted(program)}: ${reason}` };
}
