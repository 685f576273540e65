import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { copyRuns } from '#src/receiver/api/store-copy.ts';
import { loadEngine } from '#src/receiver/store/sqlite/file/database.ts';
import { openBeside } from '#src/receiver/store/sqlite/file/file.ts';
import { SqliteRetentionTime } from '#src/receiver/store/sqlite/retention.ts';
import { DEFAULT_SCOPE, MemoryStore, parsedQuery, type Store } from '#src/receiver.ts';
import { feedback, id, simple } from '../receiver/conformance/support.ts';
import { LIMITS, openLocalStore, storePath } from '../receiver/local-store.ts';
import { runRunspan } from '../support/program.ts';

const ACME = { tenant: 'acme' };

/** Stores a trace of `count` runs with attachments, errors, feedback and a run without its parent. */
async function fill(store: Store, count: number): Promise<void> {
  const operations = Array.from({ length: count }, (_, at) => ({
    ...simple(at + 1, {
      inputs: { text: `zebra ${at}` },
      ...(at > 0 && { trace_id: id(1), parent: 1 }),
      ...(at === 1 && { error: 'Error: no', tags: ['red'], session_name: 'shop' }),
    }),
    attachments: at === 0 ? [{ name: 'a', mimeType: 'text/plain', bytes: new Uint8Array([1, 2]) }] : [],
  }));
  await store.apply(ACME, [...operations, simple(80_000, { name: 'orphan', run_type: 'tool', parent: 90_000 })]);
  for (const run of [1, count]) {
    await store.addFeedback(ACME, feedback(run, { id: id(70_000 + run) }));
  }
}

async function dataOf(store: Store): Promise<unknown> {
  const runs: unknown[] = [];
  for await (const text of store.runs(ACME, parsedQuery({}))) runs.push(JSON.parse(text));
  return {
    runs,
    feedback: await store.feedback(ACME, [id(1)]),
    attachment: await store.attachment(ACME, id(1), 'a'),
    traces: await store.traces(ACME, parsedQuery({})),
  };
}

it('a copy of a store contains all runs, attachments and feedback, and copying again changes nothing', async () => {
  const [from, to] = [new MemoryStore(), await openLocalStore()];
  await fill(from, 2_500);
  const reported: number[] = [];
  const counts = { runs: 2_501, traces: 2, feedback: 2 };
  expect(await copyRuns(from, to, ACME, (runs) => reported.push(runs))).toEqual(counts);
  expect(reported).toEqual([1_000, 2_000, 2_501]);
  const copied = await dataOf(to);
  expect(copied).toEqual(await dataOf(from));
  expect(await copyRuns(from, to, ACME, () => {})).toEqual(counts);
  expect(await dataOf(to)).toEqual(copied);
});

describe('runspan store copy', () => {
  it('copies each tenant, and what verifies feedback tokens, without deleting old traces', async () => {
    const [from, to] = [storePath(), storePath()];
    const store = await openLocalStore(from);
    await fill(store, 2);
    await store.apply(DEFAULT_SCOPE, [simple(5, { name: 'old', start_time: '2020-01-01T00:00:00.000000Z' })]);
    const exact = '{"n":12345678901234567890}';
    const large = { ...simple(6, { inputs: JSON.parse(exact) }), texts: { inputs: exact } };
    await store.apply({ tenant: 'exact' }, [large]);
    await store.addTokenSecret({ secret: 'secret', createdMs: 1 });
    await store.revokeTokens(ACME, id(1), 7);
    const { code, stdout, stderr } = await runRunspan(['store', 'copy', from, to]);
    expect([code, stderr]).toEqual([
      0,
      `runspan: the store ${from} with 3 projects\nrunspan: the store ${to} with 0 projects\n`,
    ]);
    expect(stdout.split('\n')).toEqual([
      'acme: copied 3 runs, 2 traces, 2 feedback; <to> has 3 runs',
      'default: copied 1 run, 1 trace, 0 feedback; <to> has 1 run',
      'exact: copied 1 run, 1 trace, 0 feedback; <to> has 1 run',
      '',
    ]);
    const copy = await openLocalStore(to);
    expect(await dataOf(copy)).toEqual(await dataOf(store));
    expect(await copy.payload({ tenant: 'exact' }, id(6), 'inputs')).toBe(exact);
    expect(await copy.tokenSecrets()).toEqual([{ secret: 'secret', createdMs: 1 }]);
    expect(await copy.tokensRevokedMs(ACME, [id(1)])).toBe(7);
    expect((await copy.list(DEFAULT_SCOPE, parsedQuery({}))).items.map(({ name }) => name)).toEqual(['old']);
  });

  it('fails if the other store lacks runs because they were deleted in it', async () => {
    const [from, to] = [storePath(), storePath()];
    await fill(await openLocalStore(from), 2);
    const target = await openLocalStore(to);
    await fill(target, 2);
    await target.remove(ACME, { kind: 'trace', id: id(1) });
    await target.close();
    const { code, stdout, stderr } = await runRunspan(['store', 'copy', from, to]);
    expect([code, stdout]).toEqual([1, 'acme: copied 3 runs, 2 traces, 0 feedback; <to> has 1 run\n']);
    expect(stderr).toContain('it does not accept runs that were deleted in it');
  });

  it('fails if a store is missing or in use, or both are the same', async () => {
    const [path, used] = [storePath(), storePath()];
    for (const each of [path, used]) await openLocalStore(each);
    for (const [from, to, expected, message] of [
      [`${path}-none`, `${path}-copy`, 1, `There is no store at ${path}-none`],
      [path, path, 2, 'expected <from> and <to> to be two stores'],
      [path, used, 1, `The store ${used} is open in process ${process.pid}`],
    ] as const) {
      const { code, stderr } = await runRunspan(['store', 'copy', from, to]);
      expect([code, stderr]).toEqual([expected, expect.stringContaining(message)]);
    }
  });
});

it('runspan store prune shows the retention time of a store that is in use, and sets it to the clock only with --yes', async () => {
  const path = storePath();
  const store = await openLocalStore(path);
  await fill(store, 2);
  const connection = openBeside(await loadEngine(), path, false);
  const time = new SqliteRetentionTime(connection);
  time.write(Date.now() - 40 * 86_400_000);
  const asked = await runRunspan(['store', 'prune', path]);
  expect([asked.code, asked.stderr]).toEqual([1, expect.stringContaining('pass --yes to confirm')]);
  expect(asked.stderr).toContain(`runspan: the store ${path} with 1 project\n`);
  expect(asked.stdout).toMatch(/^retention time \S+Z, clock \S+Z, lag 40\.0 days\n$/);
  expect((await runRunspan(['store', 'prune', '--yes', path])).code).toBe(0);
  expect(Date.now() - (time.read() ?? 0)).toBeLessThan(86_400_000);
  connection.close();
});

it.each([[['dev', '--port', '0']], [['backup', 'copy.db']], [['traces']]])(
  'a command that reads a store file refuses the URL of a ClickHouse database without printing its password: %s',
  async (args) => {
    const url = 'https://runspan:secret@clickhouse.example.com:8443/runspan';
    const { code, stdout, stderr } = await runRunspan([...args, '--store', url]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toBe(
      `runspan: expected a store file, got a URL: start \`runspan serve\` with the ClickHouse database, and use --url\nRun "runspan ${args[0]} --help" for help.\n`,
    );
  },
);

it.each([
  'clickhouse://runspan:secret@clickhouse.example.com/runspan',
  'https://runspan:secret@clickhouse.example.com:8443',
  'https://runspan:secret%@clickhouse.example.com:8443/runspan',
  'https://runspan:secret#1@clickhouse.example.com:8443/runspan',
])(
  'a command that accepts a ClickHouse database refuses an invalid URL without printing its password: %s',
  async (url) => {
    const file = storePath();
    await openLocalStore(file);
    const commands = [
      ['store', 'copy', file, url],
      ['store', 'migrate', '--store', url],
      ['keys', 'list', '--store', url],
    ];
    for (const { code, stdout, stderr } of await Promise.all(commands.map((args) => runRunspan(args)))) {
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toContain('expected the URL of a ClickHouse database, for example');
      expect(stderr).not.toContain('secret');
    }
  },
);

describe('runspan store reprice', () => {
  /** A store with one call of GPT-5 that was stored without prices. */
  async function unpriced(): Promise<string> {
    const path = storePath();
    const store = await openLocalStore(path, { ...LIMITS, priceTable: { name: 'none', providers: [] } });
    const metadata = { ls_provider: 'openai', ls_model_name: 'gpt-5' };
    const outputs = { usage_metadata: { input_tokens: 1_000, output_tokens: 100 } };
    await store.apply(DEFAULT_SCOPE, [simple(1, { run_type: 'llm', extra: { metadata }, outputs })]);
    await store.close();
    return path;
  }

  function fileBeside(path: string, name: string, content: unknown): string {
    const file = join(dirname(path), name);
    writeFileSync(file, JSON.stringify(content));
    return file;
  }

  it('uses the built-in table, a table in a file, or prices by model', async () => {
    const path = await unpriced();
    const table = [
      {
        id: 'openai',
        models: [{ id: 'gpt-5', match: { equals: 'gpt-5' }, prices: { input_mtok: 1_000, output_mtok: 0 } }],
      },
    ];
    const changed = {
      code: 0,
      stderr: `runspan: the store ${path} with 1 project\n`,
      stdout: 'calculated the costs of 1 run; 1 changed\n',
    };
    expect(await runRunspan(['store', 'reprice', path])).toMatchObject(changed);
    const file = fileBeside(path, 'table.json', table);
    expect(await runRunspan(['store', 'reprice', path, '--prices', file])).toMatchObject(changed);
    const own = fileBeside(path, 'own.json', { 'gpt-5': { input: 1, output: 1 } });
    expect(await runRunspan(['store', 'reprice', path, '--prices', own])).toMatchObject(changed);
    const config = fileBeside(path, 'runspan.json', {
      tenants: { a: {} },
      prices: { 'gpt-5': { input: 2, output: 1 } },
    });
    expect(await runRunspan(['store', 'reprice', path, '--config', config])).toMatchObject(changed);
    const none = fileBeside(path, 'none.json', []);
    expect(await runRunspan(['store', 'reprice', path, '--prices', none])).toMatchObject({
      stdout: `${changed.stdout}1 run without a cost: no price for model "gpt-5" of openai\n`,
    });
  });

  it('rejects invalid prices and a missing file', async () => {
    const path = await unpriced();
    const wrong = fileBeside(path, 'wrong.json', { 'gpt-5': { input: 1 } });
    expect(await runRunspan(['store', 'reprice', path, '--prices', wrong])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`cannot use the prices of ${wrong}: Expected the price of "gpt-5"`),
    });
    const missing = `${path}-missing`;
    expect(await runRunspan(['store', 'reprice', missing])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no store at'),
    });
  });
});
