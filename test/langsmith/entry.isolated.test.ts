import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fromHeaders, withContext, withRun } from '#src/index.ts';
import * as entry from '#src/langsmith.ts';
import { record, treeOf } from '../instrument/recorder.ts';
import { environmentOf } from '../support/environment.ts';
import { root } from '../support/folders.ts';
import { logLines } from '../support/log-lines.ts';
import '../support/tracing-off.ts';
import { startReceiver } from '../support/receiver.ts';

const { Client, getCurrentRunTree, RunTree, traceable, withRunTree, wrapSDK } = entry;

const PAGE = readFileSync(join(root, 'docs/from-langsmith.md'), 'utf8');
const SECTION = PAGE.slice(PAGE.indexOf('## What stays with `langsmith`'), PAGE.indexOf('## Hide values'));

/** The first column of the table of names that stay with LangSmith's package. */
const STAYING: readonly string[] = [...SECTION.matchAll(/^\| (.+?) \| /gm)].flatMap(([, names = '']) => namesIn(names));

function namesIn(text: string): string[] {
  return Array.from(text.matchAll(/`(.+?)`/g), ([, name = '']) => name);
}

describe('the names of LangSmith', () => {
  test.each([
    ...['', '/client', '/run_trees', '/traceable', '/evaluation', '/langchain', '/anonymizer', '/singletons/traceable'],
    ...['', '/openai', '/anthropic', '/gemini', '/openai_agents'].map((path) => `/wrappers${path}`),
    ...['vercel', 'anthropic', 'otel/exporter', 'otel/processor', 'otel/setup'].map((path) => `/experimental/${path}`),
  ])('are exported, or documented as names that stay: langsmith%s', async (path) => {
    const known = [...Object.keys(entry), ...STAYING];
    const names = Object.keys(await import(`langsmith${path}`));
    expect(known).toEqual(expect.arrayContaining(names.filter(isPublic)));
  });

  test('that are documented as names that stay are not exported', () => {
    expect(STAYING).toContain('evaluate');
    expect(Object.keys(entry).filter((name) => STAYING.includes(name))).toEqual([]);
  });

  test('of its client are those that the documentation lists', async () => {
    const { Client: Theirs } = await import('langsmith');
    const supported = namesIn(/^`Client` has only the methods (.*)\. /m.exec(SECTION)?.[1] ?? '');
    const names = Object.getOwnPropertyNames(Client.prototype);
    expect(names.sort()).toEqual(['constructor', ...supported].sort());
    expect(Object.getOwnPropertyNames(Theirs.prototype)).toEqual(expect.arrayContaining(names));
    const staying = STAYING.flatMap((name) => (name.startsWith('client.') ? [name.slice('client.'.length)] : []));
    expect(staying).toContain('listRuns');
    expect(Object.getOwnPropertyNames(Theirs.prototype)).toEqual(expect.arrayContaining(staying));
    expect(names.filter((name) => staying.includes(name))).toEqual([]);
  });

  test('type-check in the programs, with the import changed', () => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', 'test/langsmith'], { cwd: root });
    expect({ status, errors: String(stdout) }).toEqual({ status: 0, errors: '' });
  }, 30_000);
});

test('the command of the documentation changes the imports of the supported entry points only', () => {
  const command = /```sh\n(grep.*)\n```/.exec(PAGE)?.[1] as string;
  const folder = mkdtempSync(join(tmpdir(), 'langsmith-imports-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'src'));
  const lines = [
    "import { Client } from 'langsmith';",
    'import { wrapOpenAI } from "langsmith/wrappers/openai";',
    "const { traceable } = require('langsmith/traceable');",
    "const { RunTree } = await import( 'langsmith/run_trees' );",
    "import { AsyncCaller } from 'langsmith/utils/async_caller';",
    "import { evaluate } from 'langsmith/evaluation';",
    "import other from 'langsmith-other';",
  ];
  writeFileSync(join(folder, 'src/app.ts'), lines.join('\n'));
  execFileSync('sh', ['-c', command], { cwd: folder });
  expect(readFileSync(join(folder, 'src/app.ts'), 'utf8').split('\n')).toEqual([
    "import { Client } from 'runspan/langsmith';",
    'import { wrapOpenAI } from "runspan/langsmith";',
    "const { traceable } = require('runspan/langsmith');",
    "const { RunTree } = await import( 'runspan/langsmith' );",
    ...lines.slice(4),
  ]);
});

function isPublic(name: string): boolean {
  return !/^_|^(AutoBatchQueue|AsyncLocalStorageProviderSingleton|promptCacheSingleton|mergeRuntime)|^(DEFAULT|SECRET)_/.test(
    name,
  );
}

test('outside of a traced function there is no current run tree', () => {
  record();
  expect(() => getCurrentRunTree()).toThrow('Could not get the current run tree');
  expect(getCurrentRunTree(true)).toBeUndefined();
});

test('the tree of a run in another process contains the fields of withContext', () => {
  record();
  const time = '20261120T072240123456Z';
  const remote = fromHeaders({ 'runspan-trace': `${time}0193b3a0-1111-7000-8000-000000000001` });
  const metadata = withRun(remote, () => withContext({ userId: 'ada' }, () => getCurrentRunTree().metadata));
  expect(metadata).toMatchObject({ user_id: 'ada' });
});

test('a function that is traced twice records two runs', async () => {
  const recorder = record();
  const once = traceable(async (text: string) => text, { name: 'inner' });
  expect(await traceable(once as (text: string) => Promise<string>, { name: 'outer' })('a')).toBe('a');
  expect(treeOf(recorder.runs)).toEqual({ outer: { inner: {} } });
});

test('an argument without options of the call is passed unchanged', async () => {
  record();
  class Options {
    limit = () => 3;
    get langsmithExtra() {
      return undefined;
    }
  }
  const given = new Options();
  const search = traceable(async (options: Options) => options, { argsConfigPath: [0, 'langsmithExtra'] });
  expect(await search(given)).toBe(given);
});

test('metadata that JSON cannot contain does not affect calls below a tree', async () => {
  const recorder = record();
  const lines = logLines('warn');
  const tree = RunTree.fromDottedOrder(new RunTree({ name: 'caller' }).dotted_order) as InstanceType<typeof RunTree>;
  tree.metadata = { count: 1n };
  const inner = traceable(async (...values: unknown[]) => values.at(-1), { name: 'inner' });
  expect(await withRunTree(tree, () => inner('a'))).toBe('a');
  expect(await inner(tree, 'b')).toBe('b');
  expect(tree.toHeaders().baggage).toBe('langsmith-project=default');
  expect(recorder.runs.map(({ parent_run_id }) => parent_run_id)).toEqual([tree.id, tree.id]);
  expect(lines).toEqual([expect.stringContaining('RunTree.toHeaders failed, the application is not affected')]);
});

test("a tree of LangSmith's own package may be the first argument of a method", async () => {
  const recorder = record();
  const { RunTree: Theirs } = await import('langsmith');
  const tree = new Theirs({ name: 'step' });
  const owner = {
    name: 'owner',
    inner: traceable(async function inner(this: { name: string }, _tree: unknown, text: string) {
      return this.name + text;
    }),
  };
  expect(await owner.inner(tree as never, '!')).toBe('owner!');
  expect(recorder.runs.map(({ parent_run_id }) => parent_run_id)).toEqual([tree.id]);
});

test('a client with an address has an exporter of its own, also with options that hide values', async () => {
  const recorder = record();
  const receiver = await startReceiver();
  const client = new Client({ apiUrl: receiver.url, hideInputs: true, hideMetadata: true });
  onTestFinished(async () => void (await client.exporter?.close()));
  const metadata = { user: 'ada' };
  await traceable(async (text: string) => text, { name: 'elsewhere', client, metadata })('hunter2');
  await client.awaitPendingTraceBatches();
  const runs = await receiver.runs({});
  expect(runs.map(({ name, inputs, outputs, extra }) => [name, inputs, outputs, extra?.metadata])).toEqual([
    ['elsewhere', {}, { outputs: 'hunter2' }, { user: '[Redacted]' }],
  ]);
  expect(recorder.runs).toEqual([]);
});

test.each([
  [{}, {}, []],
  [{ LANGSMITH_TRACING: 'false' }, {}, []],
  [{ RUNSPAN_TRACING: 'false', LANGSMITH_TRACING: 'true' }, {}, []],
  [{ LANGSMITH_TRACING: 'true' }, { tracingEnabled: false }, []],
  [{ LANGSMITH_TRACING: 'true' }, {}, ['answer', 'posted']],
  [{ LANGCHAIN_TRACING_V2: 'true' }, {}, ['answer', 'posted']],
  [{ RUNSPAN_ENDPOINT: 'http://127.0.0.1:1' }, {}, ['answer', 'posted']],
  [{ RUNSPAN_TRACING: 'true' }, {}, ['answer', 'posted']],
  [{}, { tracingEnabled: true }, ['answer', 'posted']],
])(
  'with the variables %j and the options %j, a client with an address records %j',
  async (variables, options, names) => {
    const receiver = await startReceiver();
    const client = new Client({ apiUrl: receiver.url });
    onTestFinished(async () => void (await client.exporter?.close()));
    const answer = traceable(async (text: string) => text, { name: 'answer', client, ...options });
    // The variables may be set after the function is traced, for example by dotenv.
    environmentOf(variables as Record<string, string>);
    await answer('hunter2');
    const tree = new RunTree({ name: 'posted', inputs: { text: 'hunter2' }, client, ...options });
    await tree.postRun();
    await tree.end({});
    await tree.patchRun();
    await client.flush();
    const runs = await receiver.runs({});
    expect(runs.map(({ name }) => name).sort()).toEqual(names);
  },
);

test("feedback is sent to the service of LangSmith's variables while tracing is off", async () => {
  const receiver = await startReceiver({ apiKey: 'secret' });
  environmentOf({ LANGSMITH_ENDPOINT: receiver.url, LANGSMITH_API_KEY: 'secret' });
  const client = new Client({ apiUrl: receiver.url, apiKey: 'secret' });
  onTestFinished(async () => void (await client.exporter?.close()));
  const runId = await traceable(async () => getCurrentRunTree().id, { name: 'rated', client, tracingEnabled: true })();
  await client.flush();
  await new Client().createFeedback(runId, 'helpful', { score: 1 });
  const headers = { 'x-api-key': 'secret' };
  const stored = await (await fetch(`${receiver.url}/feedback?run=${runId}`, { headers })).json();
  expect(stored).toEqual([expect.objectContaining({ key: 'helpful', score: 1 })]);
});

test('a synchronous method or getter of a wrapped SDK stays synchronous, and `this` is the client', () => {
  const recorder = record();
  class Counter {
    readonly #counts = [1, 2];
    size(): number {
      return this.#counts.length;
    }
    get last(): number | undefined {
      return this.#counts.at(-1);
    }
  }
  const counter = wrapSDK(new Counter());
  expect([counter.size(), counter.last]).toEqual([2, 2]);
  expect(recorder.runs.map(({ name, outputs }) => ({ name, outputs }))).toEqual([
    { name: 'Counter.size', outputs: { outputs: 2 } },
  ]);
});

test('cycles have the marker of LangSmith, in arguments, results and trees', async () => {
  const recorder = record();
  const cycle: { self?: object } = {};
  cycle.self = cycle;
  await traceable(async (given: object) => given)(cycle);
  await new RunTree({ name: 'by hand', inputs: cycle }).postRun();
  const marked = { self: { result: '[Circular]' } };
  expect(recorder.runs).toMatchObject([{ inputs: marked, outputs: { self: marked } }, { inputs: marked }]);
});
