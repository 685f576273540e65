import { type Command, Option } from '@commander-js/extra-typings';
import { visible, visibleJson } from '../base/text.ts';
import { AgentServer } from '../clients/agent-server/agent-server.ts';
import { STREAM_MODES } from '../clients/agent-server/run-request.ts';
import type { AgentEvent, AgentMessage } from '../clients/agent-server/streams/agent-event.ts';
import type { Interrupt } from '../clients/agent-server/thread.ts';
import { isObject } from '../config/checker.ts';
import { env } from '../config/environment.ts';
import { DELAY_MAX_MS } from '../platform/timers.ts';
import {
  type CommandContext,
  CommandFailure,
  collect,
  collectFrom,
  duration,
  type OptionsOf,
  readJson,
  readJsonObject,
  UsageError,
  webAddress,
  withCommandNames,
} from './command-line.ts';
import { cut, visibleLines } from './terminal-text.ts';

const HELP = `
The agent server and its API key are read from RUNSPAN_AGENT_URL and RUNSPAN_AGENT_KEY.

Exit code:
  0, even if the run waits for an answer; 1 if the run fails or cannot be started; 2 for invalid
  arguments; 4 after --timeout`;

export function define(command: Command, context: CommandContext): void {
  withOptions(command)
    .description('Runs an agent of a deployment, and prints the events that it streams.')
    .argument('<assistant>', 'id of an assistant, or name of its graph')
    .addHelpText('after', HELP)
    .action((assistant, options) => runAgent(assistant, options, context));
}

type RunOptions = OptionsOf<typeof withOptions>;

function withOptions(command: Command) {
  return command
    .addOption(
      new Option('--input <json>', 'input of the run: JSON, @file, or - for standard input').conflicts([
        'message',
        'resume',
      ]),
    )
    .addOption(
      new Option(
        '--message <text>',
        'shorthand for --input \'{"messages":[{"role":"user","content":<text>}]}\'',
      ).conflicts('resume'),
    )
    .option('--resume <json>', "answer to the interrupt of the thread's last run, instead of an input")
    .option('--thread <id>', 'thread of the run, created if it does not exist; without a thread, no state is stored')
    .addOption(
      new Option('--mode <mode>', 'stream mode; can be repeated (default: messages-tuple, the text of the model)')
        .choices(STREAM_MODES)
        .argParser(collectFrom(STREAM_MODES)),
    )
    .option('--feedback <key>', 'request a feedback URL for this feedback key; can be repeated', collect)
    .option('--timeout <time>', 'cancel the run after this time, e.g. 90s or 15m', duration)
    .option('--url <url>', 'URL of the agent server (default: RUNSPAN_AGENT_URL)', webAddress)
    .option('--json', 'print each event as one line of JSON');
}

const OPTION_NAMES = {
  url: '--url or RUNSPAN_AGENT_URL',
  apiKey: 'RUNSPAN_AGENT_KEY',
  allowInsecure: 'RUNSPAN_ALLOW_INSECURE=true',
};

async function runAgent(assistant: string, options: RunOptions, context: CommandContext): Promise<void> {
  const { timeout } = options;
  const payload = await payloadOf(options);
  const signal = timeout === undefined ? undefined : AbortSignal.timeout(Math.min(timeout, DELAY_MAX_MS));
  let server: AgentServer | undefined;
  try {
    server = openServer(options);
    await streamRun(server, assistant, payload, options, signal, context);
  } catch (error) {
    if (signal?.aborted && error === signal.reason) {
      const seconds = (timeout ?? 0) / 1_000;
      throw new CommandFailure(`the run did not end within ${seconds} s (--timeout) and was cancelled`, 4);
    }
    throw withCommandNames(error, OPTION_NAMES);
  } finally {
    await server?.close();
  }
}

type Payload = { readonly input: Record<string, unknown> } | { readonly command: { readonly resume: unknown } };

async function payloadOf({ input, message, resume, thread }: RunOptions): Promise<Payload> {
  if (input !== undefined) return { input: await readJsonObject(input, '--input') };
  if (message !== undefined) return { input: { messages: [{ role: 'user', content: message }] } };
  if (resume === undefined) throw new UsageError('expected --input, --message or --resume');
  if (thread === undefined) throw new UsageError('--resume requires --thread');
  return { command: { resume: await readJson(resume, '--resume') } };
}

function openServer(options: RunOptions): AgentServer {
  const url = options.url ?? env('RUNSPAN_AGENT_URL');
  if (url === undefined) throw new UsageError('no agent server: set RUNSPAN_AGENT_URL or --url');
  const apiKey = env('RUNSPAN_AGENT_KEY');
  return new AgentServer({ url, allowInsecure: env('RUNSPAN_ALLOW_INSECURE') === 'true', ...(apiKey && { apiKey }) });
}

async function streamRun(
  server: AgentServer,
  assistant: string,
  payload: Payload,
  { mode: modes = ['messages-tuple'], feedback, thread, json }: RunOptions,
  signal: AbortSignal | undefined,
  { stdout, stderr }: CommandContext,
): Promise<void> {
  const request = {
    assistant_id: assistant,
    ...payload,
    // The server reports interrupts only in the modes `values` and `updates`.
    stream_mode: modes.includes('values') || modes.includes('updates') ? [...modes] : [...modes, 'updates' as const],
    // Makes the server cancel the run on Ctrl-C.
    on_disconnect: 'cancel',
    ...(feedback && { feedback_keys: feedback }),
  } as const;
  const options = signal && { signal };
  const stream = await (thread === undefined
    ? server.statelessRuns.stream(request, options)
    : server.runs.stream(thread, { ...request, if_not_exists: 'create' }, options));
  const printer = new EventPrinter((text) => stdout.write(text));
  let isWaiting = false;
  try {
    for await (const event of stream) {
      const interrupts = interruptsOf(event);
      isWaiting ||= interrupts.length > 0;
      if (event.event === 'updates' && !modes.includes('updates') && interrupts.length === 0) continue;
      if (json) stdout.write(`${visibleJson(JSON.stringify(event))}\n`);
      else if (event.event === 'metadata') stderr.write(`run ${visible(String(event.data.run_id))}\n`);
      else if (interrupts.length > 0) for (const { value } of interrupts) printer.line('interrupt', value);
      else printer.print(event);
    }
  } finally {
    printer.endText();
  }
  if (isWaiting && thread !== undefined) {
    stderr.write(`the run waits for an answer: --thread ${thread} --resume <json>\n`);
  }
}

function interruptsOf({ event, data }: AgentEvent): readonly Interrupt[] {
  if (event !== 'updates' && event !== 'values') return [];
  const { __interrupt__: interrupts } = (data ?? {}) as { __interrupt__?: unknown };
  return Array.isArray(interrupts) ? interrupts.filter(isObject) : [];
}

/** Maximum width of an output line, in columns. The limit is wide, because the output may go to a log. */
const LINE_COLUMNS = 200;

/** Prints model messages as they arrive. Every other event is printed on a separate line. */
class EventPrinter {
  readonly #write: (text: string) => void;
  /** Id of the message whose text is on the current, unfinished line. */
  #openMessage: string | undefined;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  /** Prints an event. Data with an unknown structure, for example from a newer server, is printed as JSON. */
  print(event: AgentEvent): void {
    if (event.event === 'messages' && Array.isArray(event.data) && isObject(event.data[0])) {
      this.#message(event.data[0]);
    } else if (event.event === 'updates' && isObject(event.data)) {
      const graph = event.namespace.map((step) => `${step.split(':')[0]} > `).join('');
      for (const [node, update] of Object.entries(event.data)) this.line(graph + node, update);
    } else if (event.event === 'feedback') {
      this.endText();
      // Feedback URLs are never shortened, so that users can open them.
      for (const [key, address] of Object.entries(event.data)) {
        this.#write(`${visible(`feedback ${key}: ${address}`)}\n`);
      }
    }
    // `error` events are not printed, because the stream throws the error when it ends.
    else if (event.event !== 'error' && event.event !== 'end') this.line(event.name, event.data);
  }

  line(name: string, data: unknown): void {
    const text = typeof data === 'string' ? data : JSON.stringify(data ?? null);
    this.endText();
    this.#write(`${visible(name)}: ${cut(visible(text), LINE_COLUMNS)}\n`);
  }

  endText(): void {
    if (this.#openMessage !== undefined) this.#write('\n');
    this.#openMessage = undefined;
  }

  #message({ type, id, content }: AgentMessage): void {
    const text = textOf(content);
    if (text === '') return;
    if (type !== 'ai' && type !== 'AIMessageChunk') {
      this.line(String(type), text);
      return;
    }
    if (this.#openMessage !== String(id)) this.endText();
    this.#openMessage = String(id);
    this.#write(visibleLines(text));
  }
}

/** Returns the text of a message. `content` is a string or a list of blocks. */
function textOf(content: AgentMessage['content']): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const texts = content.map((block) => (block as { text?: unknown } | null)?.text);
  return texts.filter((text) => typeof text === 'string').join('');
}
