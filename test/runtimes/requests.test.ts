import { AsyncLocalStorage } from 'node:async_hooks';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Format } from 'esbuild';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import type { Stats } from '#src/run/stats.ts';
import { guide, projectWith } from '../peers/guides.ts';
import { addsUp } from '../support/adds-up.ts';
import { temporaryFolder } from '../support/folders.ts';
import { ingestServer } from '../support/ingest-server.ts';
import { startLocalModel } from '../support/local-model/server.js';
import { OUTLINES, outlineOf, RESULTS } from './expected.ts';
import { startServers } from './servers.ts';

const programs = fileURLToPath(new URL('programs/', import.meta.url));
const folder = temporaryFolder();
afterAll(folder.remove);

const { nodeBinary }: { nodeBinary(version: string): string } = await import(
  new URL('../../scripts/node-binary.mjs', import.meta.url).href
);
const { EdgeVM } = await import(new URL('node_modules/@edge-runtime/vm/dist/index.js', import.meta.url).href);

type Bindings = Readonly<Record<'RUNSPAN_ENDPOINT' | 'MODEL_URL', string>> & {
  readonly EARLY?: string;
  readonly REGISTER?: string;
};

/** Sends a request to the application and returns the text of the response. */
type Send = (path: string) => Promise<string>;

const programOf = ({ REGISTER }: Bindings): string =>
  `${REGISTER ? "import 'runspan/register';" : ''} export { default } from './worker.mjs';`;

/** Bundles the application as the tools of a platform do: with its conditions, and without the modules of Node. */
async function bundled(
  contents: string,
  format: Format,
  conditions: string[],
  resolveDir: string = programs,
): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir },
    external: ['cloudflare:*'],
    bundle: true,
    write: false,
    format,
    globalName: 'worker',
    platform: 'browser',
    target: 'es2022',
    conditions,
  });
  return outputFiles[0]?.text ?? '';
}

const WORKERD = ['workerd', 'worker', 'browser'];

/** Starts workerd, by default with an early compatibility date. */
async function startWorkerd(flags: readonly string[], bindings: Bindings): Promise<Send> {
  const script = await bundled(`import './configure-worker.mjs'; ${programOf(bindings)}`, 'esm', WORKERD);
  const url = await serve(script, { compatibilityFlags: flags, bindings }, bindings.EARLY ? 'ignore' : 'inherit');
  return async (path) => (await fetch(new URL(path, url))).text();
}

/** Serves a bundled Worker with workerd and returns its address. */
async function serve(script: string, options: object, stderr: 'ignore' | 'inherit' = 'inherit'): Promise<string> {
  const path = join(folder.path, 'worker.mjs');
  writeFileSync(path, script);
  const args = [join(programs, 'miniflare.mjs'), path, JSON.stringify(options)];
  const child = spawn(nodeBinary('24'), args, { stdio: ['pipe', 'pipe', stderr] });
  onTestFinished(async () => {
    child.stdin.end();
    await once(child, 'close');
  });
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data');
  return line.trim();
}

async function startEdgeRuntime(bindings: Bindings): Promise<Send> {
  const vm = new EdgeVM({
    extend: (context: object) => Object.assign(context, { AsyncLocalStorage, process: { env: bindings } }),
  });
  vm.evaluate(
    `${await bundled(programOf(bindings), 'iife', ['edge-light', 'worker', 'browser'])}; globalThis.worker = worker;`,
  );
  const { Request, worker } = vm.context;
  const platform = { waitUntil: (): void => {} };
  return async (path) =>
    (await worker.default.fetch(new Request(`http://edge.test/${path}`), bindings, platform)).text();
}

const withoutNested = Object.keys(RESULTS).filter((name) => name !== 'nested');

describe.each<[string, (bindings: Bindings) => Promise<Send>, calls: string[]]>([
  ['workerd', (bindings) => startWorkerd([], bindings), withoutNested],
  ['workerd with nodejs_compat', (bindings) => startWorkerd(['nodejs_compat'], bindings), Object.keys(RESULTS)],
  ["Vercel's edge runtime", startEdgeRuntime, Object.keys(RESULTS)],
])('on %s', (_, start, calls) => {
  const deployed = async (endpoint: string, modelUrl = '', bindings: Partial<Bindings> = {}) => {
    const send = await start({ ...bindings, RUNSPAN_ENDPOINT: endpoint, MODEL_URL: modelUrl });
    const ledger = async (): Promise<Stats> => JSON.parse(await send('stats'));
    /** Resolves when `count` runs are delivered and no other run is known. */
    const delivered = async (count: number): Promise<void> => {
      await expect.poll(ledger, { timeout: 10_000 }).toMatchObject({ created: count, sent: count });
      expect(addsUp(await ledger())).toBe(true);
    };
    return { send, delivered };
  };

  it('delivers functions, streams and model calls after each response', async () => {
    const { receiver, modelUrl } = await startServers();
    const { send, delivered } = await deployed(receiver.url, modelUrl);

    for (const name of calls) expect(await send(name)).toBe(RESULTS[name]);

    const outline = calls.flatMap((name) => OUTLINES[name] ?? []);
    await delivered(outline.length);
    expect(outlineOf(await receiver.runs())).toEqual(outline);
  });

  it('runspan/register records an unwrapped client, and a response that the platform reads', async () => {
    const { receiver, modelUrl } = await startServers();
    const { send, delivered } = await deployed(receiver.url, modelUrl, { REGISTER: 'yes' });

    expect(await send('unwrapped')).toBe(RESULTS.openai);
    await delivered(2);
    expect(await send('proxied')).toContain('raining');
    await delivered(3);
    expect(outlineOf(await receiver.runs())).toEqual([...(OUTLINES.openai ?? []), OUTLINES.openai?.[0]]);
  });

  it('delivers the run of a stream that the platform reads', async () => {
    const { receiver } = await startServers();
    const { send, delivered } = await deployed(receiver.url);

    expect(await send('body')).toBe('word word word ');
    await delivered(1);
    expect(outlineOf(await receiver.runs())).toEqual(['words: 3']);
  });

  it('loses no run of twenty interleaved requests', async () => {
    const { receiver } = await startServers();
    const { send, delivered } = await deployed(receiver.url);

    const paths = Array.from({ length: 20 }, (_, index) => `slow?${index}`);
    const answers = await Promise.all(paths.map(send));
    expect(answers.map((url) => url.split('/').at(-1))).toEqual(paths);
    await delivered(20);
    expect(outlineOf(await receiver.runs()).sort()).toEqual(
      answers.map((url) => `slow: ${JSON.stringify(url)}`).sort(),
    );
  });

  it('keeps the runs of a request whose flush timed out for a later request', async () => {
    const server = await ingestServer((_, index) => (index === 0 ? 'hold' : { status: 202 }));
    onTestFinished(server.close);
    const { send, delivered } = await deployed(server.url);

    expect(await send('hello')).toBe('Hello, runtime!');
    await server.arrived(1);
    await delivered(1);
    expect(server.received.length).toBeGreaterThan(1);
  });

  it('sends uncompressed requests, also to a service that accepts gzip and zstd', async () => {
    const flags = { gzip_body_enabled: true, zstd_compression_enabled: true };
    const info = { status: 200, body: JSON.stringify({ instance_flags: flags }) };
    const server = await ingestServer(undefined, info);
    onTestFinished(server.close);
    const { send, delivered } = await deployed(server.url.replace('127.0.0.1', '0.0.0.0'));

    for (const count of [1, 2]) {
      expect(await send('large')).toBe('300000 characters');
      await delivered(count);
    }
    expect(server.received.map(({ headers }) => headers['content-encoding'])).toEqual([undefined, undefined]);
  });

  it('sends runs one by one to a service without multipart ingestion', async () => {
    const server = await ingestServer(({ path }) => ({ status: path === '/runs/multipart' ? 404 : 202 }));
    onTestFinished(server.close);
    const { send, delivered } = await deployed(server.url);

    await Promise.all(['slow?1', 'slow?2', 'explicit', 'slow?3'].map(send));
    await delivered(6);
  });
});

it('a call at module scope does not break a Worker, and is not recorded', async () => {
  const { receiver } = await startServers();
  const send = await startWorkerd([], { RUNSPAN_ENDPOINT: receiver.url, MODEL_URL: '', EARLY: 'yes' });

  expect(await send('early')).toBe('at module scope');
  expect(JSON.parse(await send('stats'))).toMatchObject({ created: 0, open: 0 });
});

it('the Worker of docs/serverless.md delivers one trace for a request', async () => {
  const [receiver, model] = await Promise.all([createReceiver(), startLocalModel()]);
  onTestFinished(async () => void (await Promise.all([receiver.close(), model.close()])));
  const files = guide('docs/serverless.md').filter(({ file }) => file !== undefined);
  const codeOf = (name: string): string => files.find(({ file }) => file === name)?.code ?? '';
  const settings = JSON.parse(codeOf('wrangler.json'));
  const script = await bundled(codeOf(settings.main), 'esm', WORKERD, projectWith(files, programs));
  const url = await serve(script, {
    compatibilityDate: settings.compatibility_date,
    compatibilityFlags: settings.compatibility_flags,
    bindings: { RUNSPAN_ENDPOINT: receiver.url, OPENAI_BASE_URL: `${model.url}/v1`, OPENAI_API_KEY: 'key' },
  });

  const body = JSON.stringify({ question: 'Is it raining?', userId: 'ada', threadId: 't1' });
  expect(await (await fetch(url, { method: 'POST', body })).json()).toEqual({ text: 'You said: Is it raining?' });
  await expect.poll(async () => (await receiver.runs()).length, { timeout: 10_000 }).toBe(2);
  const runs = await receiver.runs();
  expect(runs.map(({ name, parent_run_id }) => [name, parent_run_id])).toEqual([
    ['answer', undefined],
    ['openai.responses', runs[0]?.id],
  ]);
  for (const { extra } of runs) expect(extra?.metadata).toMatchObject({ user_id: 'ada', thread_id: 't1' });
});
