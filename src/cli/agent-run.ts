import { env } from '../base/env.ts';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { visible, visibleJson } from '../base/text.ts';
import type { AgentEvent, AgentMessage } from '../clients/agent-event.ts';
import { AgentServer } from '../clients/agent-server.ts';
import type { Interrupt } from '../clients/thread.ts';
import type { AgentRunInvocation } from './agent-run-arguments.ts';
import { readGiven, readGivenObject } from './given-json.ts';
import { cut } from './terminal-text.ts';

/** A log keeps longer lines than a screen. */
const LINE_COLUMNS = 200;

/** Where a run's events go. */
export interface AgentRunOutput {
  /** Standard output: what the run streams. */
  readonly write: (text: string) => void;
  /** Standard error: what is known of the run beside it. */
  readonly note: (line: string) => void;
}

/** The time for a run is over. */
export class RunTimeIsOver extends Error {}

/** Runs an agent, and prints what it streams as it comes. Rejects with what went wrong, also of the run itself. */
export async function runAgent(invocation: AgentRunInvocation, output: AgentRunOutput): Promise<void> {
  const { timeoutMs } = invocation;
  const given = await inputOf(invocation);
  const server = openServer(invocation);
  const options = timeoutMs === undefined ? {} : { signal: AbortSignal.timeout(Math.min(timeoutMs, DELAY_MAX_MS)) };
  try {
    await streamRun(server, invocation, given, options, output);
  } catch (thrown) {
    if (options.signal?.aborted && thrown === options.signal.reason) {
      throw new RunTimeIsOver(
        `the run has not ended within ${(timeoutMs ?? 0) / 1_000} s (--timeout); it is cancelled`,
      );
    }
    throw thrown;
  } finally {
    await server.close();
  }
}

type Given = { readonly input: Record<string, unknown> } | { readonly command: { readonly resume: unknown } };

async function streamRun(
  server: AgentServer,
  { assistant, modes, feedbackKeys, thread, isJson }: AgentRunInvocation,
  given: Given,
  options: { readonly signal?: AbortSignal },
  output: AgentRunOutput,
): Promise<void> {
  const request = {
    assistant_id: assistant,
    ...given,
    // Without these nothing would tell that a run waits.
    stream_mode: modes.includes('values') || modes.includes('updates') ? [...modes] : [...modes, 'updates' as const],
    // Whoever presses Ctrl-C wants no more of it.
    on_disconnect: 'cancel',
    ...(feedbackKeys.length === 0 ? {} : { feedback_keys: [...feedbackKeys] }),
  } as const;
  const stream = await (thread === undefined
    ? server.statelessRuns.stream(request, options)
    : server.runs.stream(thread, { ...request, if_not_exists: 'create' }, options));
  const printer = new EventPrinter(output);
  let isWaiting = false;
  try {
    for await (const event of stream) {
      const interrupts = interruptsOf(event);
      isWaiting ||= interrupts.length > 0;
      if (event.event === 'updates' && !modes.includes('updates') && interrupts.length === 0) continue;
      if (isJson) output.write(`${visibleJson(JSON.stringify(event))}\n`);
      else if (interrupts.length > 0) printer.interrupts(interrupts);
      else printer.print(event);
    }
  } finally {
    printer.endText();
  }
  if (isWaiting && thread !== undefined) output.note(`the run waits for an answer: --thread ${thread} --resume <json>`);
}

function interruptsOf({ event, data }: AgentEvent): readonly Interrupt[] {
  if (event !== 'updates' && event !== 'values') return [];
  const { __interrupt__: interrupts } = (data ?? {}) as { __interrupt__?: unknown };
  return Array.isArray(interrupts) ? interrupts : [];
}

function openServer(invocation: AgentRunInvocation): AgentServer {
  const url = invocation.url ?? env('RUNSPAN_AGENT_URL');
  if (url === undefined) throw new Error('no agent server: set RUNSPAN_AGENT_URL, or give --url');
  const apiKey = env('RUNSPAN_AGENT_KEY');
  const allowInsecure = env('RUNSPAN_ALLOW_INSECURE') === 'true';
  return new AgentServer({ url, allowInsecure, ...(apiKey === undefined ? {} : { apiKey }) });
}

async function inputOf({ input, message, resume }: AgentRunInvocation): Promise<Given> {
  if (resume !== undefined) return { command: { resume: await readGiven(resume, '--resume') } };
  if (input !== undefined) return { input: await readGivenObject(input, '--input') };
  return { input: { messages: [{ role: 'user', content: message }] } };
}

/** Text of a model as it comes, everything else on a line of its own. */
class EventPrinter {
  readonly #output: AgentRunOutput;
  /** The message whose text was written last, without a line break behind it. */
  #open: string | undefined;

  constructor(output: AgentRunOutput) {
    this.#output = output;
  }

  /** What has another form than its name says is printed as it is: a server may be of any version. */
  print(event: AgentEvent): void {
    if (event.event === 'messages' && isObject(event.data) && isObject(event.data[0])) this.#text(event.data[0]);
    else if (event.event === 'updates' && isObject(event.data)) {
      for (const [node, update] of Object.entries(event.data)) this.#line(placeOf(event, node), jsonOf(update));
    } else this.#other(event);
  }

  #other(event: AgentEvent): void {
    switch (event.event) {
      case 'metadata':
        this.#output.note(`run ${visible(String(event.data.run_id))}`);
        break;
      case 'feedback':
        for (const [key, address] of Object.entries(event.data)) this.#line(`feedback ${key}`, jsonOf(address));
        break;
      // It is thrown when the stream ends.
      case 'error':
      case 'end':
        break;
      default:
        this.#line(event.name, jsonOf(event.data));
    }
  }

  interrupts(interrupts: readonly Interrupt[]): void {
    for (const { value } of interrupts) this.#line('interrupt', jsonOf(value));
  }

  endText(): void {
    if (this.#open !== undefined) this.#output.write('\n');
    this.#open = undefined;
  }

  #text({ type, id, content }: AgentMessage): void {
    const text = textOf(content);
    if (text === '') return;
    if (type !== 'ai' && type !== 'AIMessageChunk') this.#line(String(type), text);
    else {
      const message = String(id);
      if (this.#open !== undefined && this.#open !== message) this.endText();
      this.#open = message;
      this.#output.write(text.split('\n').map(visible).join('\n'));
    }
  }

  #line(name: string, text: string): void {
    this.endText();
    // An address has to stay whole to be of use.
    const shown = URL.canParse(text) ? visible(text) : cut(visible(text), LINE_COLUMNS);
    this.#output.write(`${visible(name)}: ${shown}\n`);
  }
}

/** A node, with the subgraphs that it is in. */
function placeOf({ namespace }: AgentEvent, node: string): string {
  return [...namespace.map((step) => step.split(':')[0]), node].join(' > ');
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function jsonOf(data: unknown): string {
  return typeof data === 'string' ? data : JSON.stringify(data);
}

/** Content is text, or a list of pieces of which some are. */
function textOf(content: AgentMessage['content']): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const texts = content.map((piece) => (piece as { text?: unknown } | null)?.text);
  return texts.filter((text) => typeof text === 'string').join('');
}
