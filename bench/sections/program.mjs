import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '../processes.mjs';

/** Runs one of this folder's programs in its own process and returns the one message that it sends. */
export async function runProgram(name, args, env = {}) {
  const child = fork(fileURLToPath(new URL(name, import.meta.url)), args, {
    env: { ...bareEnvironment(), ...env },
    execArgv: ['--expose-gc'],
  });
  const [[message], [code]] = await Promise.all([
    Promise.race([once(child, 'message'), once(child, 'exit').then(() => [undefined])]),
    once(child, 'exit'),
  ]);
  if (code !== 0 || message === undefined) throw new Error(`${name} ended with ${code}`);
  return message;
}
