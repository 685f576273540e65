#!/usr/bin/env node
import { constants } from 'node:os';
import { messageOf } from '../base/text.ts';
import type { Ending } from './command-line.ts';
import { main } from './program.ts';

let hasLostOutput = false;

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // In `runspan dev | head`, `head` exits first, and its user needs no more output.
  if (error.code === 'EPIPE' || hasLostOutput) return;
  hasLostOutput = true;
  process.exitCode ||= 1;
  process.stderr.write(`runspan: cannot write the output: ${messageOf(error)}\n`);
});
// Without a listener, the next write would crash the CLI.
process.stderr.on('error', () => {});

void main(process.argv.slice(2), process).then(endAs);

async function endAs(ending: Ending): Promise<void> {
  if (typeof ending === 'number') {
    process.exitCode = ending || Number(hasLostOutput);
    return;
  }
  // If the signal does not end the process, it exits with the code that a shell would report.
  process.exitCode = 128 + (constants.signals[ending] ?? 0);
  // An empty write completes after all earlier writes, even if a pipe's reader has exited.
  await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
  process.kill(process.pid, ending);
}
