import { STREAM_MODES, type StreamMode } from '../clients/run-request.ts';
import { durationMs } from './deployments-arguments.ts';
import { quoted } from './terminal-text.ts';
import { lastOf, readWords, webAddress } from './words.ts';

/** `runspan run …` */
export interface AgentRunInvocation {
  readonly kind: 'run';
  readonly url: URL | undefined;
  /** An assistant's id, or the name of its graph. */
  readonly assistant: string;
  /** JSON text, `@` and a file, or `-` for standard input. */
  readonly input: string | undefined;
  /** A message of the user, in the place of an input. */
  readonly message: string | undefined;
  /** What goes on with a run that waits: JSON as for `input`. */
  readonly resume: string | undefined;
  /** The thread that the run is on; without one it is on none. */
  readonly thread: string | undefined;
  /** What is streamed. */
  readonly modes: readonly StreamMode[];
  /** Keys for which addresses for feedback are asked. */
  readonly feedbackKeys: readonly string[];
  /** The run is given up after it. */
  readonly timeoutMs: number | undefined;
  /** Each event as JSON on a line. */
  readonly isJson: boolean;
}

type Parsed =
  | AgentRunInvocation
  | { readonly kind: 'help'; readonly topic: 'run' }
  | { readonly kind: 'mistake'; readonly message: string; readonly topic: 'run' };

export const agentRunUsage = `Usage: runspan run <assistant> --input <json> [options]

Runs an agent of a deployment, and prints what it streams as it comes. The assistant is named by its
id or its graph. The agent server and the key for it are taken from RUNSPAN_AGENT_URL and
RUNSPAN_AGENT_KEY.

Options:
  --input <json>     what the run gets: JSON, @file, or - for standard input
  --message <text>   the same as --input '{"messages":[{"role":"user","content":<text>}]}'
  --resume <json>    the answer to what the last run on the thread waits for, instead of an input
  --thread <id>      run on this thread, which is made where there is none; without it the run
                     leaves no state
  --mode <mode>      what is streamed: messages-tuple, updates, values, custom and so on; more than
                     once (default messages-tuple, the text of the model as it comes)
  --feedback <key>   ask for an address where feedback under this key can be given; more than once
  --timeout <time>   give up after so long, as 90s or 15m
  --url <address>    the agent server, in the place of RUNSPAN_AGENT_URL
  --json             print each event as JSON on a line
  -h, --help         print this

Exit code:
  0, also when the run waits for an answer; 1 when it fails or cannot be made; 2 for a mistake in
  the arguments; 4 after --timeout, which cancels it
`;

/** Reads the arguments after `runspan run`. Never throws. */
export function parseAgentRun(argv: readonly string[]): Parsed {
  const words = readWords(argv, {
    texts: ['input', 'message', 'resume', 'thread', 'mode', 'feedback', 'timeout', 'url'],
    flags: ['json'],
  });
  if ('wrong' in words) return mistake(words.wrong);
  if (words.flags.has('help')) return { kind: 'help', topic: 'run' };
  const [assistant, extra] = words.positionals;
  if (assistant === undefined) return mistake('expected an assistant after run');
  if (extra !== undefined) return mistake(`unexpected ${quoted(extra)}`);
  const [input, message, resume] = [lastOf(words, 'input'), lastOf(words, 'message'), lastOf(words, 'resume')];
  const given = [input, message, resume].filter((one) => one !== undefined);
  if (given.length === 0) return mistake('expected --input, --message or --resume');
  if (given.length > 1) return mistake('of --input, --message and --resume one can be given');
  if (resume !== undefined && lastOf(words, 'thread') === undefined) return mistake('--resume goes with --thread');
  const modes = words.values.get('mode') ?? ['messages-tuple'];
  const strange = modes.find((mode) => !STREAM_MODES.includes(mode as StreamMode));
  if (strange !== undefined) {
    return mistake(`expected --mode to be one of ${STREAM_MODES.join(', ')}, got ${quoted(strange)}`);
  }
  const timeoutMs = durationMs(lastOf(words, 'timeout'));
  if (timeoutMs === 'none') return mistake('expected --timeout to be like 90s, 15m or 1h');
  const address = lastOf(words, 'url');
  const url = webAddress(address);
  if (address !== undefined && url === undefined) return mistake('expected --url to be an http or https address');
  return {
    kind: 'run',
    url,
    assistant,
    input,
    message,
    resume,
    thread: lastOf(words, 'thread'),
    modes: modes as StreamMode[],
    feedbackKeys: words.values.get('feedback') ?? [],
    timeoutMs,
    isJson: words.flags.has('json'),
  };
}

function mistake(message: string): Parsed {
  return { kind: 'mistake', message, topic: 'run' };
}
