#!/usr/bin/env node
import { constants } from 'node:os';
import { version } from '../base/env.ts';
import { RunspanError } from '../base/errors.ts';
import { messageOf, visible } from '../base/text.ts';
import { RevisionError } from '../clients/revision-error.ts';
import { RunTimeIsOver, runAgent } from './agent-run.ts';
import { type Invocation, parseArguments, type Topic, usage } from './arguments.ts';
import { audit } from './audit.ts';
import { backUp } from './backup.ts';
import type { Ending } from './child.ts';
import { deployments } from './deployments.ts';
import { dev } from './dev.ts';
import { doctor } from './doctor.ts';
import { WordsMistake } from './given-json.ts';
import { openSource, type RunSource } from './run-source.ts';
import { showRun } from './show.ts';
import { spool } from './spool.ts';
import { sendSpool } from './spool-send.ts';
import { drained, treeOptionsFor } from './terminal.ts';
import { listTraces } from './traces.ts';
import { WaitProgress } from './wait-progress.ts';

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
      complain(`${invocation.message}\n${usageLine(invocation.topic, argv)}`, 2);
      return;
    }
    case 'doctor':
      process.exitCode = await doctor(invocation);
      return;
    case 'spool':
      try {
        const run = invocation.action === 'send' ? sendSpool : spool;
        process.exitCode = await run(invocation, (text) => process.stdout.write(text));
      } catch (error) {
        complain(messageOf(error), 1);
      }
      return;
    case 'traces':
    case 'show':
      await read(invocation);
      return;
    case 'backup':
      try {
        process.stdout.write(await backUp(invocation));
      } catch (error) {
        complain(messageOf(error), 1);
      }
      return;
    case 'deployments':
    case 'run':
      await call(invocation);
      return;
    case 'dev':
    case 'audit':
      try {
        await endAs(await (invocation.kind === 'dev' ? dev(invocation) : audit(invocation)));
      } catch (error) {
        complain(explained(error, invocation), 1);
      }
  }
}

async function read(invocation: Extract<Invocation, { kind: 'traces' | 'show' }>): Promise<void> {
  const options = treeOptionsFor(process.stdout);
  let source: RunSource | undefined;
  try {
    source = await openSource(invocation.place);
    const text = await (invocation.kind === 'traces'
      ? listTraces(source, invocation, options)
      : showRun(source, invocation, options));
    process.stdout.write(text);
  } catch (error) {
    complain(messageOf(error), 1);
  } finally {
    await source?.close();
  }
}

async function call(invocation: Extract<Invocation, { kind: 'deployments' | 'run' }>): Promise<void> {
  const write = (text: string): boolean => process.stdout.write(text);
  const note = (line: string): boolean => process.stderr.write(`${line}\n`);
  try {
    if (invocation.kind === 'run') await runAgent(invocation, { write, note });
    else await deployments(invocation, { write, progress: new WaitProgress(process.stderr) });
  } catch (error) {
    const message =
      error instanceof RunspanError ? inWordsOf(invocation.kind, visible(error.message)) : messageOf(error);
    complain(message, exitCodeOf(error));
  }
}

/** What options of clients are called on the command line. */
const OPTION_WORDS: Readonly<Record<'deployments' | 'run', Readonly<Record<string, string>>>> = {
  deployments: {
    baseUrl: '--url or RUNSPAN_CONTROL_PLANE_URL',
    apiKey: 'RUNSPAN_CONTROL_PLANE_KEY',
    tenantId: 'RUNSPAN_WORKSPACE_ID',
    spelling: '--spelling or RUNSPAN_CONTROL_PLANE_SPELLING',
    allowInsecure: 'RUNSPAN_ALLOW_INSECURE=true',
  },
  run: { url: '--url or RUNSPAN_AGENT_URL', apiKey: 'RUNSPAN_AGENT_KEY', allowInsecure: 'RUNSPAN_ALLOW_INSECURE=true' },
};

function inWordsOf(kind: 'deployments' | 'run', message: string): string {
  return message.replace(/`(\w+)`/g, (all, option: string) => OPTION_WORDS[kind][option] ?? all);
}

/** CI tells a deployment that has failed from a call that has. */
function exitCodeOf(error: unknown): number {
  if (error instanceof WordsMistake) return 2;
  if (error instanceof RunTimeIsOver) return 4;
  if (!(error instanceof RevisionError)) return 1;
  return error.code === 'RUNSPAN_TIMEOUT' ? 4 : 3;
}

/** How to call what was meant: the line of the action, where a command has several, else the first. */
function usageLine(topic: Topic, argv: readonly string[]): string {
  const [first = '', ...others] = usage[topic].split('\n\n', 1).join('').split('\n');
  const action = others.find((line) => argv.some((word) => line.trim().startsWith(`runspan ${topic} ${word} `)));
  return action === undefined ? first : `Usage: ${action.trim()}`;
}

function complain(message: string, exitCode: number): void {
  const words = message.replace(/^Expected/, 'expected');
  process.stderr.write(`runspan: ${words.split('\n').map(visible).join('\n')}\n`);
  process.exitCode = exitCode;
}

/** Errors of the receiver, in words of the command line. */
function explained(error: unknown, invocation: Extract<Invocation, { kind: 'dev' | 'audit' }>): string {
  if (invocation.kind === 'audit') return messageOf(error);
  const { port } = invocation;
  if (error instanceof RunspanError && error.code === 'RUNSPAN_ADDRESS_IN_USE') {
    return `port ${port} is in use; end the program that holds it, or choose another with --port (0 takes any free one)`;
  }
  if (error instanceof RunspanError && error.code === 'RUNSPAN_INVALID_OPTION' && error.message.includes('`host`')) {
    return `--host ${invocation.host} needs RUNSPAN_RECEIVER_KEY, with at least 16 characters`;
  }
  if (error instanceof RunspanError && error.code === 'RUNSPAN_LISTEN_FAILED') {
    const { host } = invocation;
    const place = host === undefined ? `port ${port}` : `${host}, port ${port}`;
    return `cannot listen on ${place}: ${messageOf(error.cause)}; choose another with ${host === undefined ? '' : '--host or '}--port`;
  }
  return messageOf(error)
    .replace('`apiKey`', 'RUNSPAN_RECEIVER_KEY')
    .replace('`writeKey`', 'RUNSPAN_RECEIVER_WRITE_KEY')
    .replace('`allowedHosts`', '--allow-host');
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
