// The application of docs/nextjs.md.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { RunRecord } from 'runspan';
import { createReceiver, type TraceSummary } from 'runspan/receiver';
import { transformWithEsbuild } from 'vite';
import { expect, it, onTestFinished } from 'vitest';
import { root } from '../support/folders.ts';
import { startLocalModel } from '../support/local-model/server.js';
import { startProgram } from '../support/program.ts';
import { compile, guide, projectWith } from './guides.ts';
import { laterNode } from './later-node.ts';

const folder = join(root, 'test/peers/today');
const files = guide('docs/nextjs.md').filter(({ file }) => file !== undefined);
const typed = files.flatMap(({ file = '' }) => (file.endsWith('.ts') ? [file] : []));

/** A route that calls the server action, as a form would. */
const TITLE_ROUTE = `
  import { suggestTitle } from '../../actions';
  export const POST = async (request) => new Response(await suggestTitle(await request.text(), 't1'));
`;

/** A module that defines `waitUntil` as Vercel does, and prints a line when the work of a request has ended. */
const PLATFORM = `data:text/javascript,${encodeURIComponent(`
  const working = new Set();
  const waitUntil = (work) => {
    working.add(work);
    work.finally(() => working.delete(work) && working.size === 0 && console.log('all work has ended'));
  };
  globalThis[Symbol.for('@next/request-context')] = { get: () => ({ waitUntil }) };
`)}`;

it('a route that streams and a server action deliver their traces before their work has ended', async () => {
  const [model, receiver] = await Promise.all([startLocalModel(), createReceiver()]);
  const project = projectWith([...files, { file: 'app/api/title/route.js', code: TITLE_ROUTE }], folder);
  compile(project, '--noEmit --module esnext --moduleResolution bundler', typed);
  await layOut(project);
  const env = {
    PATH: [dirname(laterNode()), process.env.PATH].join(delimiter),
    NODE_OPTIONS: `--import ${PLATFORM}`,
    NEXT_TELEMETRY_DISABLED: '1',
    RUNSPAN_ENDPOINT: receiver.url,
    OPENAI_BASE_URL: `${model.url}/v1`,
    OPENAI_API_KEY: 'key',
  };
  const next = startProgram(
    ['node', join(folder, 'node_modules/next/dist/bin/next'), 'dev', '--port', '0'],
    env,
    project,
    100_000,
  );
  onTestFinished(async () => {
    next.child.kill('SIGINT');
    await Promise.all([next.ended, model.close(), receiver.close()]);
  });
  const [, url] = await next.printed(/Local: +(\S+)[\s\S]*Ready in/);
  const post = (path: string, body: string) => fetch(`${url}/api/${path}`, { method: 'POST', body });

  const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Is it raining?' }] }];
  const chat = await post('chat', JSON.stringify({ id: 't1', userId: 'ada', messages }));
  expect(await chat.text()).toMatch(/"delta":"raining\?"[\s\S]*\[DONE\]/);
  await next.printed(/all work has ended/);
  const chatRuns = await receiver.runs();
  expect(await (await post('title', 'Is it raining?')).text()).toBe('You said: Is it raining?');
  await next.printed(/(all work has ended[\s\S]*){2}/);
  const titleRuns = (await receiver.runs()).filter(({ id }) => chatRuns.every((run) => run.id !== id));

  // The development server starts the instrumentation with the first request, which may therefore have no run. The run of
  // a request ends when its response is closed, which may be after its work.
  expect(treeOf(chatRuns).slice(-3)).toEqual(['chat · chain', 'streamText · chain', 'gpt-4.1-mini · llm']);
  const [title, ...below] = treeOf(titleRuns);
  expect(title).toMatch(/^POST \/api\/title · chain/);
  expect(below).toEqual(['title · chain', 'generateText · chain', 'gpt-4.1-mini · llm']);
  const calls = [...chatRuns, ...titleRuns].filter(({ run_type }) => run_type === 'llm');
  expect(calls.map(({ extra }) => extra?.metadata?.recorded_by)).toEqual([['ai:telemetry'], ['ai:telemetry']]);
  expect(chatRuns.find(({ name }) => name === 'chat')).toMatchObject({
    inputs: { input: messages },
    outputs: { text: 'You said: Is it raining?' },
  });
  for (const { extra } of chatRuns) expect(extra?.metadata).toMatchObject({ thread_id: 't1', user_id: 'ada' });
  for (const { extra } of titleRuns) expect(extra?.metadata).toMatchObject({ thread_id: 't1' });

  // `ai` repeats a refused call twice. The response has status 200, and its stream says that the call has failed.
  const refused = await post('refused', JSON.stringify({ id: 't2', userId: 'bob', messages }));
  expect([refused.status, await refused.text()]).toEqual([200, expect.stringContaining('"type":"error"')]);
  const traces = async () =>
    ((await (await fetch(`${receiver.url}/query/traces`)).json()) as { items: TraceSummary[] }).items;
  await expect
    .poll(async () => (await traces())[0])
    .toMatchObject({
      ...{ name: 'POST /api/refused', outcome: 'failed_below', inputs_preview: 'Is it raining?', user: 'bob' },
      ...{ thread: 't2', error: 'AI_APICallError: asked to fail with 429', trace: { model_calls: 3 } },
    });
}, 120_000);

/** Returns the runs of a trace in which each run is the parent of the next one. All runs must have ended. */
function treeOf(runs: readonly RunRecord[]): string[] {
  const ordered = [...runs].sort((one, other) => one.dotted_order.length - other.dotted_order.length);
  return ordered.map(({ name, run_type, parent_run_id, end_time }, index) => {
    const isBelow = parent_run_id === ordered[index - 1]?.id;
    return `${name} · ${run_type}${isBelow ? '' : ' · elsewhere'}${end_time === undefined ? ' · open' : ''}`;
  });
}

/** Replaces the TypeScript files, because Next.js would install TypeScript for them. */
async function layOut(project: string): Promise<void> {
  for (const file of typed) {
    const path = join(project, file);
    const { code } = await transformWithEsbuild(readFileSync(path, 'utf8'), path, { tsconfigRaw: {} });
    writeFileSync(path.replace('.ts', '.js'), code);
    rmSync(path);
  }
  const chat = readFileSync(join(project, 'app/api/chat/route.js'), 'utf8');
  mkdirSync(join(project, 'app/api/refused'));
  writeFileSync(join(project, 'app/api/refused/route.js'), chat.replace('gpt-4.1-mini', 'fail-429'));
  // The packages are in folders above the project, and all are in the bundle.
  const config = `export default { turbopack: { root: ${JSON.stringify(root)} } };`;
  writeFileSync(join(project, 'next.config.mjs'), config);
}
