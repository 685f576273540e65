#!/usr/bin/env node
import { constants } from 'node:os';
import { RunspanError } from '../base/errors.ts';
import { messageOf } from '../base/text.ts';
import { version } from '../base/version.ts';
import { parseArguments, usage } from './arguments.ts';
import type { Ending } from './child.ts';
import { dev } from './dev.ts';
import { spool } from './spool.ts';
import { drained } from './terminal.ts';

void main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<void> {
  // Without a listener a reader that goes away (`runspan dev | head`) would be a stack trace.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const invocation = parseArguments(argv);
  switch (invocation.kind) {
    case 'help':
      process.stdout.write(usage[invocation.topic]);
      return;
    case 'version':
      process.stdout.write(`${version}\n`);
      return;
    case 'mistake': {
      const [hint] = usage[invocation.topic].split('\n', 1);
      complain(`${invocation.message}\n${hint}`, 2);
      return;
    }
    case 'spool':
      try {
        process.exitCode = spool(invocation, (text) => process.stdout.write(text));
      } catch (error) {
        complain(messageOf(error), 1);
      }
      return;
    case 'dev':
      try {
        await endAs(await dev(invocation));
      } catch (error) {
        complain(explained(error, invocation.port), 1);
      }
  }
}

function complain(message: string, exitCode: number): void {
  process.stderr.write(`runspan: ${message}\n`);
  process.exitCode = exitCode;
}

/** Errors of the receiver, in words of the command line. */
function explained(error: unknown, port: number): string {
  if (error instanceof RunspanError && error.code === 'RUNSPAN_ADDRESS_IN_USE') {
    return `port ${port} is in use; end the program that holds it, or choose another with --port (0 takes any free one)`;
  }
  if (error instanceof RunspanError && error.code === 'RUNSPAN_LISTEN_FAILED') {
    return `cannot listen on port ${port}: ${messageOf(error.cause)}; choose another with --port`;
  }
  return messageOf(error);
}

async function endAs(ending: Ending): Promise<void> {
  if (ending.kind === 'not started') {
    complain(ending.message, ending.code);
  } else if (ending.kind === 'exit') {
    process.exitCode = ending.code;
  } else {
    // Should the signal not end us, the code is that of shells.
    process.exitCode = 128 + (constants.signals[ending.signal] ?? 0);
    await drained(process.stdout);
    process.kill(process.pid, ending.signal);
  }
}
