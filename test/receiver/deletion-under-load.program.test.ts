import { createServer } from 'node:http';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { listenInTest } from '../support/listen-in-test.ts';
import { moduleText, runRunspan, type Started, startNode } from '../support/program.ts';
import { killOwners, segmentsBelow } from '../support/spool.ts';
import { testFolder } from '../support/test-folder.ts';
import { expectWhole, sendRequest } from './killed-store.ts';
import { storePath } from './local-store.ts';
import { sendJson } from './wire.ts';

const TRACES = 20;

/** Records traces of a thread and of a project, and leaves a run open. */
const CLIENT = moduleText(`
  import { configure, flush, startRun, withContext } from 'runspan';
  configure({ durability: 'write-ahead' });
  const record = (project, count) => {
    for (let n = 0; n < count; n += 1) {
      const root = startRun({ name: 'secret', project, inputs: { text: 'secret words' } });
      root.child({ name: 'nested secret' }).end({ text: 'secret' });
      root.end({ text: 'secret' });
    }
  };
  withContext({ threadId: 'secret' }, () => {
    record('kept', ${TRACES});
    startRun({ name: 'open secret', project: 'kept' });
  });
  record('secret', ${TRACES});
  await flush({ timeoutMs: 3_000 });
  console.log('recorded');
  setInterval(() => {}, 1_000);
`);

/** The runs of the client: two for each trace, and the open run. */
const RUNS = 2 * 2 * TRACES + 1;

/**
 * A server at a fixed URL that forwards requests to the receiver. While `isLossy` is set, clients get status 503, as if
 * the response had been lost.
 */
async function startProxy() {
  const target = { url: '', isLossy: true };
  const server = createServer(async (incoming, outgoing) => {
    const { method = 'GET', url, headers } = incoming;
    const kept = ['content-type', 'content-encoding'].filter((name) => headers[name] !== undefined);
    const sent = { method: method as 'POST', headers: Object.fromEntries(kept.map((name) => [name, headers[name]])) };
    const body = method === 'GET' ? null : incoming;
    const answer = await request(target.url + url, { ...sent, body });
    outgoing.writeHead(target.isLossy && method !== 'GET' ? 503 : answer.statusCode).end(await answer.body.text());
  });
  return { target, url: await listenInTest(server) };
}

async function startReceiver(path: string): Promise<Started & { readonly url: string }> {
  const started = startNode(['test/fixtures/store-program.mjs', path], {}, undefined, 60_000);
  return { ...started, url: (await started.printed(/http:\S+/))[0] };
}

async function secretsIn(url: string): Promise<{ id: string; trace_id: string }[]> {
  const response = await fetch(`${url}/query/runs?filter=secret&limit=1000`);
  return ((await response.json()) as { items: { id: string; trace_id: string }[] }).items;
}

test('data that is deleted under load does not come back after a restart, from a spool, or by late patches', async () => {
  const [path, folder, proxy] = [storePath(), testFolder(), await startProxy()];
  const first = await startReceiver(path);
  proxy.target.url = first.url;

  const spoolDir = join(folder, 'spool');
  const env = { RUNSPAN_ENDPOINT: proxy.url, RUNSPAN_TRACING: 'true', RUNSPAN_SPOOL_DIR: spoolDir };
  const client = startNode(CLIENT, env);
  await client.printed(/recorded/);
  await expect.poll(async () => (await secretsIn(first.url)).length).toBe(RUNS);
  const secrets = await secretsIn(first.url);
  client.child.kill('SIGKILL');
  await client.ended;
  killOwners(spoolDir);
  expect(segmentsBelow(spoolDir).length).toBeGreaterThan(0);

  const acknowledged: number[] = [];
  let next = 0;
  const send = async (): Promise<void> => {
    for (;;) {
      const number = next++;
      if ((await sendRequest(first.url, number)) === 202) acknowledged.push(number);
    }
  };
  // The senders end when the receiver is killed.
  const senders = [1, 2, 3, 4].map(() => send().catch(() => {}));
  await expect.poll(() => acknowledged.length).toBeGreaterThan(10);
  const deletions = ['threads', 'projects'].map(async (kind) => {
    const answer = await fetch(`${first.url}/query/${kind}/secret?confirm=secret`, { method: 'DELETE' });
    return answer.json();
  });
  expect(await Promise.all(deletions)).toMatchObject([
    { runs: 2 * TRACES + 1, traces: TRACES + 1 },
    { runs: 2 * TRACES, traces: TRACES },
  ]);
  first.child.kill('SIGKILL');
  await Promise.all([first.ended, ...senders]);

  const second = await startReceiver(path);
  Object.assign(proxy.target, { url: second.url, isLossy: false });
  expect(await secretsIn(second.url)).toEqual([]);
  const sent = await runRunspan(['spool', 'send'], env);
  expect(sent).toMatchObject({ code: 0, stdout: expect.stringMatching(/^delivered (\d+) of \1 runs/) });
  expect(segmentsBelow(spoolDir)).toEqual([]);
  for (const { id, trace_id } of secrets) {
    const late = { trace_id, outputs: { text: 'secret' }, end_time: '2030-01-01T00:00:00Z' };
    expect((await sendJson(second, 'PATCH', `/runs/${id}`, late)).status).toBe(202);
    expect((await fetch(`${second.url}/query/runs/${id}`)).status).toBe(404);
  }
  expect(await secretsIn(second.url)).toEqual([]);
  const projects = (await (await fetch(`${second.url}/query/projects`)).json()) as { items: { name: string }[] };
  expect(projects.items.map(({ name }) => name)).toEqual(['default']);
  second.child.kill('SIGTERM');
  await second.ended;
  await expectWhole(path, acknowledged);
});
