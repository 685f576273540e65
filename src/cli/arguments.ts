import { clock } from '../base/clock.ts';
import { type AgentRunInvocation, agentRunUsage, parseAgentRun } from './agent-run-arguments.ts';
import { type BackupInvocation, backupUsage, parseBackup } from './backup.ts';
import type { Command } from './child.ts';
import { type DeploymentsInvocation, deploymentsUsage, parseDeployments } from './deployments-arguments.ts';
import { DEFAULT_PORT, type DevInvocation, devUsage, parseDev } from './dev-arguments.ts';
import {
  parseShow,
  parseTraces,
  type ShowInvocation,
  showUsage,
  type TracesInvocation,
  tracesUsage,
} from './query-arguments.ts';
import { parseSpool, type SpoolInvocation, spoolUsage } from './spool-arguments.ts';
import { quoted } from './terminal-text.ts';
import { lastOf, readWords, splitCommand } from './words.ts';

/** What the command line asks for. */
export type Invocation =
  | { readonly kind: 'help'; readonly topic: Topic }
  | { readonly kind: 'version' }
  | DevInvocation
  | {
      readonly kind: 'audit';
      readonly isJson: boolean;
      /** The file that is written instead of standard error. */
      readonly output: string | undefined;
      readonly command: Command;
    }
  | { readonly kind: 'doctor'; readonly isJson: boolean }
  | TracesInvocation
  | ShowInvocation
  | BackupInvocation
  | SpoolInvocation
  | DeploymentsInvocation
  | AgentRunInvocation
  | { readonly kind: 'mistake'; readonly message: string; readonly topic: Topic };

/** What there is help on: all of it, or one command. */
export type Topic =
  | 'runspan'
  | 'dev'
  | 'traces'
  | 'show'
  | 'backup'
  | 'audit'
  | 'doctor'
  | 'spool'
  | 'deployments'
  | 'run';

/** What `--help` prints. */
export const usage: Readonly<Record<Topic, string>> = {
  runspan: `Usage: runspan <command> [options]

Commands:
  dev [--port ${DEFAULT_PORT}] [-- command args]
                 start a receiver on this machine and draw the traces that arrive
  traces [--status error] [--text words] [--since 2h]
                 list the traces that have arrived
  show [id]      show a trace, or one run of it
  backup <file>  copy the store file, even while a receiver is running
  audit [--json] [--output file] -- command args
                 run a command and show what would be sent, without sending it anywhere
  doctor [--json]
                 check settings, service and installation, and send a test run
  spool list | send | purge
                 show, deliver or delete the runs that wait on disk
  deployments list | get | create | update | redeploy | wait | upload | delete |
              integrations | listeners
                 deploy agents, and wait until they are up
  run <assistant> --input json
                 run an agent of a deployment, and print what it streams

Options:
  -h, --help     print this; with a command, what there is to say of it
  -v, --version  print the version
`,
  dev: devUsage,
  audit: `Usage: runspan audit [--json] [--output file] -- command args

Runs a command with an environment that sends its runs to a receiver within this process, which
forwards nothing, and shows each record as it arrives: what would have left the process, after
sampling and redaction. The streams of the command are its own; records go to standard error.

Options:
  --json           one object of JSON on a line for each record, complete
  --output <file>  write the records there instead, in full; the file is replaced
  -h, --help       print this

Runs that the command sends to an endpoint in its own code are neither stopped nor shown.

Exit code:
  that of the command, or its signal; 1 when the file cannot be written; 2 for a mistake in the
  arguments; 126 and 127 when the command cannot be started
`,
  doctor: `Usage: runspan doctor [--json]

Checks what tracing needs, with the environment that it is started in: Node, each setting and where
it comes from, the service and the way to it, the key, the clocks, and the packages that the working
directory has. Then it sends one run, named "runspan doctor", and reads it back where the service
can be asked. It shows no key, and no other secret.

Options:
  --json      print one object of JSON instead
  -h, --help  print this

Exit code:
  0 when nothing fails, 1 when something does, 2 for a mistake in the arguments
`,
  traces: tracesUsage,
  show: showUsage,
  backup: backupUsage,
  spool: spoolUsage,
  deployments: deploymentsUsage,
  run: agentRunUsage,
};

/** Reads the arguments after the name of the program. Never throws: what is wrong is an invocation of its own. */
export function parseArguments(argv: readonly string[]): Invocation {
  const [first, ...rest] = argv;
  switch (first) {
    case undefined:
      return mistake('expected a command');
    case '-h':
    case '--help':
      return { kind: 'help', topic: 'runspan' };
    case '-v':
    case '--version':
      return { kind: 'version' };
    case 'dev':
      return parseDev(rest);
    case 'traces':
      return parseTraces(rest, clock.nowUs());
    case 'show':
      return parseShow(rest);
    case 'backup':
      return parseBackup(rest);
    case 'audit':
      return parseAudit(rest);
    case 'doctor':
      return parseDoctor(rest);
    case 'spool':
      return parseSpool(rest);
    case 'deployments':
      return parseDeployments(rest);
    case 'run':
      return parseAgentRun(rest);
    default:
      return mistake(`unknown ${first.startsWith('-') ? 'option' : 'command'} ${quoted(first)}`);
  }
}

function parseAudit(argv: readonly string[]): Invocation {
  const { words: given, command } = splitCommand(argv);
  const words = readWords(given, {
    texts: ['output'],
    flags: ['json'],
    missing: { output: 'expected a file after --output' },
    stray: (word) => `expected -- before the command ${word}`,
  });
  if ('wrong' in words) return mistake(words.wrong, 'audit');
  if (words.flags.has('help')) return { kind: 'help', topic: 'audit' };
  if (command === undefined || command === 'none') return mistake('expected -- and a command', 'audit');
  return { kind: 'audit', isJson: words.flags.has('json'), output: lastOf(words, 'output'), command };
}

function parseDoctor(argv: readonly string[]): Invocation {
  const { words: given, command } = splitCommand(argv);
  const words = readWords(given, { flags: ['json'], stray: (word) => `expected no argument ${word}` });
  if ('wrong' in words) return mistake(words.wrong, 'doctor');
  if (words.flags.has('help')) return { kind: 'help', topic: 'doctor' };
  if (command !== undefined) return mistake('expected no command', 'doctor');
  return { kind: 'doctor', isJson: words.flags.has('json') };
}

function mistake(message: string, topic: Topic = 'runspan'): Invocation {
  return { kind: 'mistake', message, topic };
}
