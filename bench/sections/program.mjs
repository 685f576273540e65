import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '../processes.mjs';

/** Runs a program of this folder in a process of its own and gives back the one message that it sends. */
export async function runProgram(name, args, { env = {}, execArgv = [] } = {}) {
  const child = fork(fileURLToPath(new URL(name, import.meta.url)), args, {
    env: { ...bareEnvironment(), ...env },
    execArgv,
  });
  const [[message], [code]] = await Promise.all([
    Promise.race([once(child, 'message'), once(child, 'exit').then(() => [undefined])]),
    once(child, 'exit'),
  ]);
  if (code !== 0 || message === undefined) throw new Error(`${name} ended with ${code}`);
  return message;
}
