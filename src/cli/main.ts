#!/usr/bin/env node
import { constants } from 'node:os';
import type { Ending } from './command-line.ts';
import { main } from './program.ts';

// In `runspan dev | head`, `head` exits first. Without these listeners, the next write would crash the CLI.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

void main(process.argv.slice(2), process).then(endAs);

async function endAs(ending: Ending): Promise<void> {
  if (typeof ending === 'number') {
    process.exitCode = ending;
    return;
  }
  // If the signal does not end the process, it exits with the code that a shell would report.
  process.exitCode = 128 + (constants.signals[ending] ?? 0);
  // An empty write completes after all earlier writes, even if a pipe's reader has exited.
  await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
  process.kill(process.pid, ending);
}
