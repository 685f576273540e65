// What `runspan demo` and `npm run demo` do: the whole interface of the platform, through the public entries of runspan.
import { createPlatform } from 'runspan/testing';
import type { DemoContext, ScriptedChat } from './context.ts';
import { throughput } from './ingestion.ts';
import { proveParts, type Row } from './parts.ts';
import { TEAM_KEY } from './rule.ts';

export interface DemoOptions extends Pick<DemoContext, 'createTracer' | 'packageUrl'> {
  readonly createScriptedChat: (options: { answer(question: string): string }) => Promise<ScriptedChat>;
  /** Whether to print the results as one JSON object. */
  readonly isJson: boolean;
  readonly print: (text: string) => unknown;
  readonly warn: (text: string) => unknown;
  /** Waits until the user stops the demo. Undefined if the demo ends by itself. */
  readonly untilStopped?: () => Promise<unknown>;
}

const KEY = 'demo-key';
const LOAD_MS = 5_000;

/** Returns whether the platform and the clients do what the interface says. */
export async function demo(options: DemoOptions): Promise<boolean> {
  const { createTracer, createScriptedChat, packageUrl, isJson, warn, untilStopped } = options;
  const keys = { [KEY]: ['shop'], [TEAM_KEY]: ['shop', 'other'] };
  const platform = await createPlatform({ keys, statusMs: 0 });
  const selfHosted = await createPlatform({ keys, statusMs: 0, hosting: 'self-hosted' });
  const conversation = await createScriptedChat({ answer: (question) => `You asked: ${question}` });
  // These options take precedence over the user's environment.
  const exporting = {
    protocol: 'runs',
    durability: 'memory',
    tracing: true,
    sampleRate: 1,
    log: 'silent',
    hideInputs: false,
    hideOutputs: false,
  } as const;
  const service = { endpoint: platform.url, apiKey: KEY, workspaceId: 'shop', ...exporting };
  const print = (line: string): unknown => isJson || options.print(line);
  try {
    const shared = { platform, selfHosted, service, createTracer, packageUrl, ids: {}, ...recorded(conversation) };
    const rows: Row[] = [];
    print(lineOf(['part', 'endpoints', 'rules', 'checks', 'ms']));
    for await (const row of proveParts(shared)) {
      rows.push(row);
      print(lineOf([row.part, share(row.endpoints), share(row.rules), share(row.checks), `${row.ms}`]));
    }
    const load = await throughput(service, LOAD_MS);
    const { created, sent, dropped, received, runsPerSecond } = load;
    print('');
    print(`${created} created = ${sent} sent + ${dropped} dropped = ${received} received, ${runsPerSecond} runs/s`);
    const isWhole = created === sent + dropped && created === received;
    const differences = [...rows.flatMap((row) => row.differences), ...(isWhole ? [] : ['runs are missing'])];
    const [first] = differences;
    const page = `${platform.url}/?project=demo`;
    const address = untilStopped && { page, key: KEY };
    if (isJson)
      options.print(
        JSON.stringify({ ok: first === undefined, parts: rows, load, differences, ...address }, undefined, 2),
      );
    if (first !== undefined) warn(first);
    print(untilStopped ? `The traces, until Ctrl-C: ${page} (key ${KEY})` : 'To look at the traces, add --keep');
    await untilStopped?.();
    return first === undefined;
  } finally {
    await Promise.all([platform.close(), selfHosted.close(), conversation.close()]);
  }
}

/** Keeps the statuses of the chat's responses, as the platform keeps those of its own. */
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
