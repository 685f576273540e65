// Receivers with one ClickHouse database, as `runspan serve` starts them, and the programs that send to them.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, onTestFinished } from 'vitest';
import { root, temporaryFolder } from '../../support/folders.ts';
import { listen } from '../../support/listen.ts';
import { moduleText, runRunspan, type Started, startNode } from '../../support/program.ts';

const COMMAND = join(root, 'dist/cli/main.js');
const LIFE_MAX_MS = 600_000;

export interface Receiver extends Started {
  readonly url: string;
  readonly port: number;
}

export interface Receivers {
  readonly key: string;
  start(port?: number): Promise<Receiver>;
  /** Returns the number of runs in statistics. */
  count(url: string): Promise<number>;
}

export async function prepare(store: string): Promise<Receivers> {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  expect(await runRunspan(['store', 'migrate', '--store', store])).toMatchObject({ code: 0 });
  const config = (port: number): string => JSON.stringify({ store, port, tenants: { acme: {} } });
  const created = await runRunspan(['keys', 'create', '--store', store, '--tenant', 'acme', '--scope', 'admin']);
  const key = created.stdout.trim();
  return {
    key,
    start: async (port = 0) => {
      const path = join(folder.path, `${port}.json`);
      writeFileSync(path, config(port));
      const started = startNode([COMMAND, 'serve', '--config', path], {}, folder.path, LIFE_MAX_MS);
      onTestFinished(() => void started.child.kill('SIGKILL'));
      const [, url = ''] = await started.printed(/"url":"(http:[^"]+)"/);
      return { ...started, url, port: Number(new URL(url).port) };
    },
    count: async (url) => {
      const answer = await fetch(`${url}/query/statistics`, { headers: { 'x-api-key': key } });
      const { total } = (await answer.json()) as { total?: { runs: number } };
      return total?.runs ?? Number.NaN;
    },
  };
}

/** Forwards each request to the next receiver that accepts the connection. */
export async function startBalancer(urls: () => readonly string[]): Promise<string> {
  let next = 0;
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { host: _, connection: _c, 'content-length': _l, 'transfer-encoding': _t, ...headers } = incoming.headers;
    const options = { method: incoming.method as 'POST', headers, body: Buffer.concat(chunks) };
    for (let tries = 0; tries < urls().length; tries += 1) {
      const url = urls()[next++ % urls().length] ?? '';
      try {
        const answer = await request(url + incoming.url, options);
        outgoing.writeHead(answer.statusCode).end(await answer.body.text());
        return;
      } catch (error) {
        // A receiver that was killed during the request may have stored the runs, so the client gets an error.
        if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') break;
      }
    }
    outgoing.writeHead(502).end();
  });
  onTestFinished(() => void server.close());
  return await listen(server);
}

export interface Ledger {
  readonly created: number;
  readonly sent: number;
  readonly dropped: number;
}

/** Starts a program that records traces of 4 runs for some seconds. Some runs end long after their start. */
export function startSender(
  endpoint: string,
  key: string,
  { seconds, pauseMs, closeMs }: { seconds: number; pauseMs: number; closeMs: number },
): Promise<Ledger> {
  const program = moduleText(`
    import { configure, shutdown, startRun, stats } from 'runspan';
    configure({ durability: 'memory' });
    const text = 'word '.repeat(200);
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const end = performance.now() + ${seconds * 1_000};
    const later = [];
    for (let turn = 0; performance.now() < end; turn += 1) {
      const root = startRun({ name: 'answer', inputs: { text } });
      for (let n = 1; n < 4; n += 1) root.child({ name: 'search', inputs: { n } }).end({ text });
      if (turn % 10 === 0) later.push(sleep(1_500).then(() => root.end({ text })));
      else root.end({ text });
      await sleep(${pauseMs});
    }
    await Promise.all(later);
    await shutdown({ timeoutMs: ${closeMs} });
    console.log(JSON.stringify(stats()));
  `);
  const RUNSPAN_DEV = '{"limits":{"retryDelayMs":100,"retryDelayMaxMs":500}}';
  const env = { RUNSPAN_ENDPOINT: endpoint, RUNSPAN_API_KEY: key, RUNSPAN_TRACING: 'true', RUNSPAN_DEV };
  const { ended } = startNode(program, env, undefined, LIFE_MAX_MS);
  return ended.then(({ stdout }) => JSON.parse(stdout));
}
