// The links of runs: `traceUrl` and `run.url`.
import { expect, onTestFinished, test } from 'vitest';
import type { ConfigureOptions } from '#src/config/options.ts';
import {
  configure,
  createExporter,
  currentRun,
  fromHeaders,
  shutdown,
  startRun,
  traceable,
  traceUrl,
  withExporter,
  withRun,
} from '#src/index.ts';
import { readAddress } from '#src/viewer/data/address.ts';
import { record } from './instrument/recorder.ts';
import { logLines } from './support/log-lines.ts';

/** An exporter that sends nothing, because its runs never end. */
function exporterTo(endpoint: string, options: ConfigureOptions = {}) {
  const exporter = createExporter({ endpoint, log: 'silent', handleSignals: false, ...options });
  onTestFinished(() => void exporter.close({ timeoutMs: 0 }));
  return exporter;
}

const runTo = (...given: Parameters<typeof exporterTo>) => startRun({ name: 'work', exporter: exporterTo(...given) });

test.each([
  ['http://127.0.0.1:4777', 'http://127.0.0.1:4777'],
  ['https://traces.example/', 'https://traces.example'],
  ['https://tools.example/runspan/', 'https://tools.example/runspan'],
  ['https://notsmith.langchain.com', 'https://notsmith.langchain.com'],
  ['https://api.smith.langchain.com.example', 'https://api.smith.langchain.com.example'],
])('for the receiver at %s, the link opens the trace and selects the run', (endpoint, page) => {
  const root = runTo(endpoint, { apiKey: 'a-secret-key', workspaceId: 'a-workspace' });
  const child = root.child({ name: 'child' });
  expect(root.url).toBe(`${page}/?trace=${root.id}`);
  expect(child.url).toBe(`${page}/?trace=${root.id}&run=${child.id}`);
  expect(readAddress(new URL(child.url ?? '').search)).toMatchObject({ trace: root.id, run: child.id });
});

const ids = { workspaceId: 'w', project: { id: 'p' } };

test.each([
  ['https://api.smith.langchain.com', 'https://smith.langchain.com'],
  ['https://eu.api.smith.langchain.com', 'https://eu.smith.langchain.com'],
  ['https://langsmith.example/api', 'https://langsmith.example'],
  ['https://langsmith.example/team/api/v1', 'https://langsmith.example/team'],
])('for LangSmith at %s, the link needs the ids of the workspace and the project', (endpoint, page) => {
  const root = runTo(endpoint, ids);
  const child = root.child({ name: 'child' });
  expect(child.url).toBe(`${page}/o/w/projects/p/p/r/${child.id}?trace_id=${root.id}`);
  expect(runTo(endpoint, { workspaceId: 'w' }).url).toBeUndefined();
  expect(runTo(endpoint, { project: { id: 'p' } }).url).toBeUndefined();
  expect(runTo(endpoint, { workspaceId: 'w', project: 'p' }).url).toBeUndefined();
});

test('with two destinations, the exporter of a run decides', () => {
  const one = exporterTo('http://127.0.0.1:1');
  const other = exporterTo('http://127.0.0.1:2');
  const run = startRun({ name: 'one', exporter: one });
  const inner = withRun(run, () => startRun({ name: 'other', exporter: other }));
  expect([run.url, inner.url].map((url) => new URL(url ?? '').port)).toEqual(['1', '2']);
  expect(withRun(run, () => withExporter(other, () => traceUrl()))).toBe(run.url?.replace(':1/', ':2/'));
});

test('`traceUrl` is the link of the current run, also after its end and for a run of another process', () => {
  const exporter = exporterTo('http://127.0.0.1:1');
  const urls = traceable(() => [traceUrl(), currentRun()?.url], { name: 'work', exporter })();
  expect(urls[0]).toMatch(/^http:\/\/127\.0\.0\.1:1\/\?trace=[-0-9a-f]{36}$/);
  expect(urls[1]).toBe(urls[0]);
  const run = startRun({ name: 'work', exporter });
  const { url } = run;
  run.end();
  expect([run.url, traceUrl(run)]).toEqual([url, url]);
  const remote = fromHeaders({ 'runspan-trace': run.dottedOrder });
  expect(withExporter(exporter, () => withRun(remote, () => traceUrl()))).toBe(url);
});

test('there is no link without a run, with tracing off, for runs that are not sent, and in tests', () => {
  expect(traceUrl()).toBeUndefined();
  expect(startRun({ name: 'off' }).url).toBeUndefined();
  expect(runTo('http://127.0.0.1:1', { tracing: false }).url).toBeUndefined();
  const leftOut = runTo('http://127.0.0.1:1', { sampleRate: 0 });
  expect([leftOut.url, withRun(leftOut, () => traceUrl())]).toEqual([undefined, undefined]);
  record();
  expect(startRun({ name: 'work' }).url).toBeUndefined();
  const { get } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(leftOut), 'url') ?? {};
  expect(get?.call({})).toBeUndefined();
});

test('a value that is not a run has no link, and is logged once', () => {
  const lines = logLines('warn');
  for (const wrong of [null, 'id', { url: 'http://127.0.0.1/' }, 7]) expect(traceUrl(wrong as never)).toBeUndefined();
  expect(lines).toEqual(['warn: traceUrl(run): expected `run` to be a Run; there is no link.']);
});

test('hooks can log the link', async () => {
  const links: unknown[] = [];
  configure({ endpoint: 'http://127.0.0.1:1', log: 'silent', onEnd: ({ url }) => links.push(url) });
  traceable(() => 1, { name: 'work' })();
  await shutdown({ timeoutMs: 0 });
  expect(links).toEqual([expect.stringContaining('/?trace=')]);
});
