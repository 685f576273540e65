import type { Command } from '@commander-js/extra-typings';
import { visible, visibleJson } from '../../base/text.ts';
import { createPlatform } from '../../testing/create-platform.ts';
import { type CommandContext, type Ending, untilStopped } from '../command-line.ts';
import { createScriptedChat, type ScriptedChat } from './chat.ts';
import type { DemoContext } from './context.ts';
import { throughput } from './ingestion.ts';
import { TEAM_KEY } from './interface.ts';
import { type Row, runDemo } from './run-demo.ts';
import { tracerIn } from './tracing.ts';

const HELP = `
Exit code:
  0 if the platform and the clients do what the interface says; 1 at a difference; 2 for invalid
  arguments`;

export function define(command: Command, context: CommandContext): void {
  command
    .description(
      'Starts a platform in this process, works with it through the clients and the tracer of this package, and sends it the mistakes that the interface forbids. Needs no key and no network.',
    )
    .option('--json', 'print the results as one JSON object')
    .option('--keep', 'serve the page with the traces until Ctrl-C')
    .option('--tracer <file>', 'module that exports createTracer, instead of the tracer of the demo')
    .addHelpText('after', HELP)
    .action(async (options) => context.endAs(await demo(options, context)));
}

interface DemoOptions {
  readonly json?: true | undefined;
  readonly keep?: true | undefined;
  readonly tracer?: string | undefined;
}

const KEY = 'demo-key';
const LOAD_MS = 5_000;

async function demo({ json, keep, tracer }: DemoOptions, { stdout, stderr }: CommandContext): Promise<Ending> {
  const keys = { [KEY]: ['shop'], [TEAM_KEY]: ['shop', 'other'] };
  const platform = await createPlatform({ keys, statusMs: 0 });
  const selfHosted = await createPlatform({ keys, statusMs: 0, hosting: 'self-hosted' });
  const conversation = await createScriptedChat({ answer: (question) => `You asked: ${question}` });
  // These options take precedence over the user's environment.
  const exporting = { protocol: 'runs', durability: 'memory', tracing: true, sampleRate: 1, log: 'silent' } as const;
  const service = { endpoint: platform.url, apiKey: KEY, workspaceId: 'shop', ...exporting };
  const print = (line: string): unknown => json || stdout.write(`${line}\n`);
  try {
    const createTracer = await tracerIn(tracer);
    const context = { platform, selfHosted, service, createTracer, ids: {}, ...recorded(conversation) };
    const rows: Row[] = [];
    print(lineOf(['part', 'endpoints', 'rules', 'checks', 'ms']));
    for await (const row of runDemo(context)) {
      rows.push(row);
      print(lineOf([row.part, share(row.endpoints), share(row.rules), share(row.checks), `${row.ms}`]));
    }
    const load = await throughput(service, LOAD_MS);
    const { created, sent, dropped, received, runsPerSecond } = load;
    print(`\n${created} created = ${sent} sent + ${dropped} dropped = ${received} received, ${runsPerSecond} runs/s`);
    if (createTracer === undefined) print('The span processor was not checked: install @opentelemetry/api');
    const isWhole = created === sent + dropped && created === received;
    const differences = [...rows.flatMap((row) => row.differences), ...(isWhole ? [] : ['runs are missing'])];
    const [first] = differences;
    const page = `${platform.url}/?project=demo`;
    const result = { ok: first === undefined, parts: rows, load, page, differences };
    if (json) stdout.write(`${visibleJson(JSON.stringify(result, undefined, 2))}\n`);
    if (first !== undefined) stderr.write(`demo: ${visible(first)}\n`);
    print(keep ? `The traces, until Ctrl-C: ${page} (key ${KEY})` : 'To look at the traces, add --keep');
    if (keep) await untilStopped();
    return first === undefined ? 0 : 1;
  } finally {
    await Promise.all([platform.close(), selfHosted.close(), conversation.close()]);
  }
}

function recorded({ fetch }: ScriptedChat): Pick<DemoContext, 'chat' | 'responses'> {
  const responses: DemoContext['responses'][number][] = [];
  const chat = async (request: Request): Promise<Response> => {
    const response = await fetch(request);
    responses.push({ method: request.method, path: new URL(request.url).pathname, status: response.status });
    return response;
  };
  return { chat, responses };
}

function share([some, all]: readonly [number, number]): string {
  return all === 0 ? '–' : `${some}/${all}`;
}

function lineOf([part = '', ...cells]: readonly string[]): string {
  return part.padEnd(14) + cells.map((cell) => cell.padStart(10)).join('');
}
