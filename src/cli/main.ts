#!/usr/bin/env node
import { constants } from 'node:os';
import type { Ending } from './command-line.ts';
import { main } from './program.ts';

// When the reader of a pipe exits, as in `runspan dev | head`, a stream without an error listener throws.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

void main(process.argv.slice(2), process).then(endAs);

async function endAs(ending: Ending): Promise<void> {
  if (typeof ending === 'number') {
    process.exitCode = ending;
    return;
  }
  // Exit code if the signal does not end this process. Shells use the same code.
  process.exitCode = 128 + (constants.signals[ending] ?? 0);
  // Resolves after all earlier writes, even if the reader has exited.
  await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
  process.kill(process.pid, ending);
}
