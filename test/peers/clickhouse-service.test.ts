// Two receivers with one ClickHouse database, as `runspan serve` starts them (see clickhouse/shim.mjs).
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { root, temporaryFolder } from '../support/folders.ts';
import { listen } from '../support/listen.ts';
import { moduleText, runNode, runRunspan, type Started, startNode } from '../support/program.ts';
import { asApplication, snippetsIn } from './application.ts';
import { startServer } from './clickhouse/database.ts';

const COMMAND = join(root, 'dist/cli/main.js');
const SECONDS = 6;
const TRACE_RUNS = 4;

/** Records traces for some seconds, then prints the ledger. */
const SENDER = moduleText(`
  import { configure, shutdown, startRun, stats } from 'runspan';
  configure({ durability: 'memory', limits: { retryDelayMs: 100, retryDelayMaxMs: 500 } });
  const text = 'word '.repeat(200);
  const end = performance.now() + ${SECONDS * 1_000};
  while (performance.now() < end) {
    const root = startRun({ name: 'answer', inputs: { text } });
    for (let n = 1; n < ${TRACE_RUNS}; n += 1) root.child({ name: 'search', inputs: { n } }).end({ text });
    root.end({ text });
    await new Promise((resolve) => setTimeout(resolve, 4));
  }
  await shutdown({ timeoutMs: 40_000 });
  console.log(JSON.stringify(stats()));
`);

/** Forwards each request to the next receiver that accepts the connection. */
async function startBalancer(urls: readonly string[]): Promise<string> {
  let next = 0;
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { host: _, connection: _c, 'content-length': _l, 'transfer-encoding': _t, ...headers } = incoming.headers;
    const options = { method: incoming.method as 'POST', headers, body: Buffer.concat(chunks) };
    for (let tries = 0; tries < urls.length; tries += 1) {
      const url = urls[next++ % urls.length] ?? '';
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

test('the program in docs/self-hosting.md opens a migrated database, and refuses another', async () => {
  const { url, stop } = await startServer();
  onTestFinished(stop);
  const [program] = snippetsIn('docs/self-hosting.md').filter(({ code }) => code.includes('ClickHouseStore.open'));
  const run = () => runNode([asApplication(program?.code ?? '')], { RUNSPAN_STORE: url });
  expect(await run()).toMatchObject({ code: 1, stderr: expect.stringContaining('run `runspan store migrate`') });
  expect(await runRunspan(['store', 'migrate', '--store', url])).toMatchObject({ code: 0 });
  expect(await run()).toMatchObject({ code: 0, stderr: '' });
});

test('two receivers store each run once while one of them is killed and started again', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  const { url: store, stop } = await startServer();
  onTestFinished(stop);
  expect(await runRunspan(['store', 'migrate', '--store', store])).toMatchObject({ code: 0 });

  const start = async (port: number): Promise<Started & { readonly url: string; readonly port: number }> => {
    const config = join(folder.path, `${port}.json`);
    writeFileSync(config, JSON.stringify({ store, port, tenants: { acme: {} } }));
    const started = startNode([COMMAND, 'serve', '--config', config], {}, folder.path, 150_000);
    onTestFinished(() => void started.child.kill('SIGKILL'));
    const [, url = ''] = await started.printed(/"url":"(http:[^"]+)"/);
    return { ...started, url, port: Number(new URL(url).port) };
  };
  const [first, second] = [await start(0), await start(0)];
  const created = await runRunspan(['keys', 'create', '--store', store, '--tenant', 'acme', '--scope', 'admin']);
  const key = created.stdout.trim();
  const endpoint = await startBalancer([first.url, second.url]);

  const env = { RUNSPAN_ENDPOINT: endpoint, RUNSPAN_API_KEY: key, RUNSPAN_TRACING: 'true' };
  const senders = [1, 2].map(() => startNode(SENDER, env, undefined, 90_000));
  const count = async (url: string): Promise<number> => {
    const answer = await fetch(`${url}/query/statistics`, { headers: { 'x-api-key': key } });
    const { total } = (await answer.json()) as { total: { runs: number } };
    return total.runs;
  };
  await expect.poll(() => count(second.url), { timeout: 20_000 }).toBeGreaterThan(100);
  first.child.kill('SIGKILL');
  await first.ended;
  const atKill = await count(second.url);
  await expect.poll(() => count(second.url), { timeout: 20_000 }).toBeGreaterThan(atKill);
  const restarted = await start(first.port);

  const ledgers = await Promise.all(senders.map(async ({ ended }) => JSON.parse((await ended).stdout)));
  const sent = ledgers.reduce((sum, ledger) => sum + ledger.sent, 0);
  for (const ledger of ledgers) expect(ledger).toMatchObject({ dropped: 0, sent: ledger.created });
  for (const { url } of [second, restarted]) {
    await expect.poll(() => count(url), { timeout: 90_000, interval: 1_000 }).toBe(sent);
  }
}, 200_000);
