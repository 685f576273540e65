import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { serve } from '../http/server.ts';
import { openLocalStore, runsIn } from '../receiver/local-store.ts';
import { runMain } from '../support/command.ts';
import { temporaryFolder } from '../support/folders.ts';
import { ingestServer } from '../support/ingest-server.ts';
import { moduleText, runNode, runRunspan, startRunspan } from '../support/program.ts';
import { segmentsBelow } from '../support/spool.ts';
import { testFolder } from '../support/test-folder.ts';
import { withoutSqlite } from '../support/without-sqlite.ts';

const index = new URL('../../dist/index.js', import.meta.url).href;

/** The arguments of `runspan dev` that start a module given as text, on any free port. */
const devWith = (code: string): string[] => ['dev', '--port', '0', '--', process.execPath, ...moduleText(code)];

/** A program that traces `answer`, with `after` as its last lines. */
const program = (after = ''): string => `
  import { currentRun, flush, startRun, traceable } from '${index}';
  const search = traceable(
    async () => { throw new RangeError('no index\\nat all'); },
    { name: 'search', runType: 'retriever' },
  );
  const call = traceable(
    () => currentRun().set({ usage: { input_tokens: 12, output_tokens: 3 } }),
    { name: 'call', runType: 'llm' },
  );
  await traceable(async () => { await search().catch(() => {}); call(); }, { name: 'answer' })();
  ${after}`;

/** Lines of standard output without times, port and trace ids. */
const shown = (stdout: string): string[] =>
  stdout
    .replaceAll(/trace=[0-9a-f-]{36}$/gm, 'trace=ID')
    .replaceAll(/\d+(\.\d+)? m?s/g, '_ ms')
    .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')
    .trimEnd()
    .split('\n');

const LINK = 'http://HOST/?trace=ID';

const TREE = [
  'runspan listens on http://HOST',
  '',
  'answer · chain · _ ms',
  '├─ search · retriever · _ ms · ✗ RangeError: no index',
  '└─ call · llm · _ ms · 15 tokens (12 in, 3 out)',
  LINK,
];

const docs = (page: string): string => `see https://github.com/runspan/runspan/blob/main/docs/${page}\n`;

/** The line about a command of which no run arrived. */
const NOTHING =
  /^runspan: no run of the command arrived: no call that runspan reads used fetch, [^\n]*; see https:[^\n]*\n/m;

describe.concurrent('runspan dev with a command', () => {
  it('says that model calls are not recorded if the command uses a Node version without --import', async () => {
    const node = fileURLToPath(new URL('../fixtures/old-node/node', import.meta.url));
    const { code, stdout, stderr } = await runRunspan(['dev', '--port', '0', '--', node, 'app.js']);
    expect(stderr).toBe(
      'runspan: the command uses a Node version without --import, so model calls are not recorded automatically; use Node 20.19 or later\n',
    );
    expect(shown(stdout)).toEqual(['runspan listens on http://HOST', 'old node app.js']);
    expect(code).toBe(0);
  });

  it('with --strict, rejects invalid requests with the reason and accepts the requests of the library', async () => {
    const record = { id: '0193b3a0-1111-7000-8000-000000000001', name: 'a', run_type: 'llm', inputs: {} };
    const run = { ...record, start_time: '2026-11-20T07:22:40Z', session_name: 'p', session_id: 'q', outputs: {} };
    const code = program(`
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(process.env.RUNSPAN_ENDPOINT + '/runs', { method: 'POST', headers, body: '${JSON.stringify(run)}' });
      console.log(answer.status, (await answer.json()).detail.map(({ loc }) => loc.join('.')).join(' '));`);
    const { stdout, stderr } = await runRunspan(['dev', '--strict', ...devWith(code).slice(1)]);
    expect(stderr).toBe('');
    expect(shown(stdout)).toEqual(expect.arrayContaining(['422 body.outputs body.session_id', ...TREE.slice(2)]));
  });

  const LEFT = `startRun({ name: 'left open' });`;
  const PENDING = `void traceable(() => new Promise(() => {}), { name: 'left open' })();`;
  it.each<[string, string, number | string]>([
    ['returns', `${LEFT} process.exitCode = 3;`, 3],
    ['calls process.exit()', `${LEFT} process.exit(7);`, 7],
    ['calls process.exit() during a traced call', `${PENDING} process.exit(0);`, 0],
    ['calls process.exit() after the start of a call was sent', `${PENDING} await flush(); process.exit(0);`, 0],
    ['fails with an uncaught error', `${LEFT} throw new Error('no tea');`, 1],
    ['is killed when its runs were sent', `${LEFT} await flush(); process.kill(process.pid, 'SIGKILL');`, 'SIGKILL'],
  ])('draws the runs of a command that %s, and ends its open runs as interrupted', async (_, ending, expected) => {
    const { code, signal, stdout, stderr } = await runRunspan(devWith(program(ending)));
    expect(stderr).not.toMatch(/^runspan/m);
    const error = 'Interrupted: the program ended before the run did';
    expect(shown(stdout)).toEqual([...TREE, '', `left open · chain · _ ms · interrupted · ✗ ${error}`, LINK]);
    expect(signal ?? code).toBe(expected);
  });

  it('folds equal siblings, draws at most 40 lines of a trace, and counts the failures among the others', async () => {
    const code = `
      import { traceable } from '${index}';
      const call = traceable(() => {}, { name: 'call' });
      const fail = traceable(() => { throw new Error('no'); }, { name: 'fail' });
      await traceable(async () => {
        for (let at = 0; at < 57; at++) call();
        for (let at = 0; at < 50; at++) await Promise.resolve().then(fail).catch(() => {});
      }, { name: 'loop' })();`;
    const { stdout } = await runRunspan(devWith(code));
    const lines = shown(stdout).map((line) => line.replace(/ · _ ms( – _ ms)?/, ''));
    expect(lines.slice(2, 4)).toEqual(['loop · chain', '├─ call · chain · × 57']);
    expect(lines.slice(-3)).toEqual(['├─ fail · chain · ✗ Error: no', '… and 12 more · 12 failed', LINK]);
    expect(lines).toHaveLength(2 + 40 + 2);
  });

  it('says that nothing arrived, with the reason if it is known', async () => {
    const nothing = ['dev', '--port', '0', '--', process.execPath, '-e', ''];
    const [unknown, json, sampled] = await Promise.all([
      runRunspan(nothing),
      runRunspan(['dev', '--json', ...nothing.slice(1)]),
      runRunspan(nothing, { RUNSPAN_SAMPLE_RATE: '0' }),
    ]);
    const [, stepless = ''] = /; (Node [\d.]+ records no steps of packages); see/.exec(unknown.stderr) ?? [];
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
    const hasHooks = major > 22 || (major === 22 && minor >= 15);
    expect(stepless).toBe(hasHooks ? '' : `Node ${process.versions.node} records no steps of packages`);
    expect(unknown.stderr).toMatch(new RegExp(`${NOTHING.source}$`));
    expect(unknown.stderr).toContain(docs(hasHooks ? 'fetch.md#limits' : 'register.md#requirements'));
    expect(json).toMatchObject({ code: 0, stdout: '', stderr: unknown.stderr });
    expect(sampled.stderr).toBe(
      `runspan: no run of the command arrived: RUNSPAN_SAMPLE_RATE is 0, so no run is recorded; ${docs('configuration.md#settings')}`,
    );
  });

  it('says nothing about missing runs with --quiet, or if the program is another one that sends runs', async () => {
    const quiet = await runRunspan(['dev', '--quiet', '--port', '0', '--', process.execPath, '-e', '']);
    expect(shown(quiet.stderr)).toEqual(['runspan listens on http://HOST']);
    const code = `
      const [traceId, spanId] = ['5b8efff798038103d269b633813fc60c', 'eee19b7ec3c1b174'];
      const times = { startTimeUnixNano: '1795159360123456000', endTimeUnixNano: '1795159361000000000' };
      const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [{ traceId, spanId, name: 'span', ...times }] }] }] });
      const headers = { 'content-type': 'application/json' };
      await fetch(process.env.OTEL_EXPORTER_OTLP_ENDPOINT + '/v1/traces', { method: 'POST', headers, body });`;
    const [command, ...args] = devWith(code);
    expect((await runRunspan([command as string, '--all-spans', ...args])).stderr).toBe('');
    expect((await runRunspan([command as string, ...args])).stderr).toMatch(
      /stores only OpenTelemetry spans [\s\S]*no run/,
    );
  });

  it('keeps the runs of a command for another service on disk, and names the command that sends them', async ({
    onTestFinished,
  }) => {
    const code = `
      import { configure, startRun } from '${index}';
      configure({ endpoint: 'http://127.0.0.1:9' });
      startRun({ name: 'elsewhere' }).end();
      process.exit();`;
    const { stderr } = await runRunspan(devWith(code));
    const [, folder = '', options = ''] = /wait in (\S+); .* `runspan (spool send .*)`/.exec(stderr) ?? [];
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    expect(segmentsBelow(folder)).toHaveLength(1);

    await using server = await ingestServer();
    const sent = await runRunspan(options.split(' '), { RUNSPAN_ENDPOINT: server.url });
    expect([sent.code, sent.stderr, sent.stdout]).toEqual([0, '', expect.stringContaining('delivered 1 of 1 run')]);
    expect(segmentsBelow(folder)).toEqual([]);
  });

  it('passes its standard streams to the command', async () => {
    const { child, printed, ended } = startRunspan(
      devWith(`console.log('ready'); process.stdin.on('data', (data) => console.error('got', String(data)));`),
    );
    await printed(/ready/);
    child.stdin?.end('a line');
    const { code, stderr } = await ended;
    expect([code, stderr.replace(NOTHING, '')]).toEqual([0, 'got a line\n']);
  });

  it('forwards signals, and exits when the command exits', async () => {
    const ending = `process.once('SIGINT', () => process.exit(9)); setInterval(() => {}, 1_000); console.log('ready');`;
    const { child, printed, ended } = startRunspan(devWith(ending));
    await printed(/ready/);
    child.kill('SIGINT');
    const stderr = 'runspan: no run of the command arrived before it ended with code 9\n';
    expect(await ended).toMatchObject({ code: 9, stderr });
  });
});

// Not concurrent, because the store is closed when the test has finished.
it('runspan dev records in the project of package.json, unless the program names another one', async () => {
  const folder = testFolder({ 'package.json': '{"name":"@shop/api"}' });
  const path = join(folder, 'runs.db');
  const code = `
    import { configure, flush, traceable } from '${index}';
    import { traceable as theirs } from '${import.meta.resolve('langsmith/traceable')}';
    import { Client } from '${import.meta.resolve('langsmith')}';
    traceable(() => {}, { name: 'ours' })();
    await flush({ timeoutMs: 15_000 });
    const client = new Client();
    await theirs(async () => {}, { name: 'theirs', client })();
    await client.awaitPendingTraceBatches();
    process.env.RUNSPAN_PROJECT = 'read from a file';
    configure({});
    traceable(() => {}, { name: 'of a variable' })();
    await flush({ timeoutMs: 15_000 });
    configure({ project: 'in code' });
    traceable(() => {}, { name: 'of code' })();
    await flush({ timeoutMs: 15_000 });`;
  const { ended } = startRunspan(devWith(code), { RUNSPAN_STORE: path }, folder);
  expect(await ended).toMatchObject({ code: 0, stderr: '' });
  const runs = await runsIn(await openLocalStore(path), {});
  const projects = Object.fromEntries(runs.map(({ name, session_name }) => [name, session_name]));
  expect(projects).toEqual({
    ours: '@shop/api',
    theirs: '@shop/api',
    'of a variable': 'read from a file',
    'of code': 'in code',
  });
});

it.concurrent('runspan dev by itself listens until SIGTERM, and draws the traces that arrive', async () => {
  const { child, printed, ended } = startRunspan(['dev', '--port', '0']);
  const [, url = ''] = await printed(/needs only RUNSPAN_ENDPOINT=(\S+)\n/);
  await runNode(moduleText(program()), { RUNSPAN_ENDPOINT: url });
  await printed(/call/);
  await runNode(moduleText(program()), { RUNSPAN_ENDPOINT: url });
  child.kill('SIGTERM');
  const { code, stdout, stderr } = await ended;
  expect([code, stderr]).toEqual([0, '']);
  const [listens, ...tree] = TREE;
  const how = [
    'A program that loads runspan needs only RUNSPAN_ENDPOINT=http://HOST',
    'Open http://HOST in a browser to see the runs, which are stored in memory, until the receiver ends',
  ];
  expect(shown(stdout)).toEqual([listens, ...how, ...tree, ...tree]);
});

describe.concurrent('runspan dev --platform', () => {
  it('passes the addresses and the key of a platform to the command, and exits with its code', async () => {
    const code = `
      const { AGENT_KEY, AGENT_URL, RUNSPAN_ENDPOINT } = process.env;
      console.log(AGENT_KEY, AGENT_URL.replace(RUNSPAN_ENDPOINT, ''));
      process.exit(5);`;
    const { code: exit, stdout, stderr } = await runRunspan(['dev', '--platform', ...devWith(code).slice(1)]);
    expect([exit, stdout, stderr]).toEqual([5, 'platform-key /agents/local\n', '']);
  });

  it('by itself prints variables with the addresses and the key, until SIGTERM', async () => {
    const { child, printed, ended } = startRunspan(['dev', '--platform', 'self-hosted', '--port', '0']);
    await printed(/export RUNSPAN_API_KEY=platform-key\n/);
    child.kill('SIGTERM');
    const { code, stdout, stderr } = await ended;
    expect([code, stderr]).toEqual([0, '']);
    expect(shown(stdout)).toContain('export RUNSPAN_CONTROL_PLANE_URL=http://HOST');
  });
});

describe.concurrent('the runs of runspan dev', () => {
  const folders: ReturnType<typeof temporaryFolder>[] = [];
  // A hook of a test would run at the end of any test that runs beside it.
  afterAll(() => {
    for (const folder of folders) folder.remove();
  });
  const kept = (): { file: string; env: Record<string, string> } => {
    const folder = temporaryFolder();
    folders.push(folder);
    const file = join(folder.path, 'deep', 'runs.db');
    return { file, env: { RUNSPAN_STORE: file } };
  };
  const asked = (args: string[], env: Record<string, string>) =>
    runRunspan([...args, '--store', env.RUNSPAN_STORE ?? ''], {});

  it('are stored when it has ended', async () => {
    const { env } = kept();
    await runRunspan(devWith(program()), env);
    const { code, stdout, stderr } = await asked(['traces'], env);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}[0-9a-f]{12} {2}answer · chain · [\d.]+ ms · 3 runs · 1 failed · 15 tokens/,
    );
    const shownRuns = await asked(['show'], env);
    expect(shownRuns.stdout).toContain('├─ search · retriever');
    const exported = await asked(['show', '--json'], env);
    expect(JSON.parse(exported.stdout).runs).toHaveLength(3);
  });

  it('are printed with --memory --json as they would be sent, and the configured service receives nothing', async () => {
    await using service = await ingestServer();
    const code = `
      import { currentRun, shutdown, traceable } from '${index}';
      traceable(() => currentRun().attach('photo', Buffer.from('pixels'), 'image/png'), { name: 'login' })({
        user: 'ann',
        password: 'canary',
      });
      await shutdown();`;
    const command = ['dev', '--memory', '--json', ...devWith(code).slice(1)];
    const env = { RUNSPAN_ENDPOINT: service.url, RUNSPAN_API_KEY: 'canary-key', LANGSMITH_ENDPOINT: service.url };
    const { stdout, stderr } = await runRunspan(command, env);
    expect(JSON.parse(stdout).runs).toMatchObject([
      { inputs: { user: 'ann', password: '[Redacted]' }, attachments: [{ name: 'photo', data: btoa('pixels') }] },
    ]);
    expect(stdout + stderr).not.toContain('canary');
    expect(service.received).toEqual([]);
  });

  it('require the key, which the command receives', async () => {
    const env = { RUNSPAN_RECEIVER_KEY: 'sesame' };
    const { stdout } = await runRunspan(devWith(program()), env);
    expect(shown(stdout)).toEqual(TREE);
    const { child, printed, ended } = startRunspan(['dev', '--port', '0'], env);
    const [, url = ''] = await printed(
      /needs only RUNSPAN_ENDPOINT=(\S+) and the key of the receiver as RUNSPAN_API_KEY\n/,
    );
    expect((await fetch(`${url}/query/projects`)).status).toBe(401);
    expect(await runRunspan(['traces', '--url', url], env)).toMatchObject({ code: 0, stdout: 'no traces\n' });
    child.kill('SIGINT');
    await ended;
  });

  it('needs SQLite for a file that the user names, and otherwise prints that runs are kept in memory only', async () => {
    const { env, file } = kept();
    const home = join(file, '..', '..');
    const options = { HOME: home, RUNSPAN_STORE: '', NODE_OPTIONS: withoutSqlite(home) };
    const dev = (args: string[], environment: Record<string, string> = options) =>
      runRunspan(['dev', '--port', '0', ...args, '--', process.execPath, '-e', ''], environment);
    for (const named of [await dev(['--store', file]), await dev([], { ...options, ...env })]) {
      expect(named).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('has no built-in SQLite') });
    }
    const { stdout, stderr } = await dev([]);
    expect(stderr).toMatch(/^runspan: runs are kept in memory only: .* install the package @photostructure\/sqlite/);
    expect(shown(stdout)).toEqual(['runspan listens on http://HOST']);
  });

  it('continues if the reader of its output ends', async () => {
    const { child, printed, ended } = startRunspan(
      devWith(`console.log('ready'); await new Promise((end) => process.stdin.on('end', end).resume()); ${program()}`),
    );
    await printed(/ready/);
    child.stdout?.destroy();
    child.stdin?.end();
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('runspan dev does not start', () => {
  const folder = temporaryFolder();
  afterAll(folder.remove);
  const prices = join(folder.path, 'prices.json');
  writeFileSync(prices, '{"m":1}', { mode: 0o600 });
  const key = { RUNSPAN_RECEIVER_KEY: 'open-sesame-and-close' };

  it.each<[string, Record<string, string>, string, number?]>([
    ['--host 0.0.0.0', {}, '--host 0.0.0.0 requires RUNSPAN_RECEIVER_KEY with at least 16 characters', 2],
    [
      '--host 0.0.0.0',
      { RUNSPAN_RECEIVER_KEY: 'sesame' },
      'expected RUNSPAN_RECEIVER_KEY to have at least 16 characters',
      2,
    ],
    ['', { RUNSPAN_RECEIVER_KEY: 'open sesame' }, 'expected RUNSPAN_RECEIVER_KEY to be 1 to 512 visible characters', 2],
    ['--host 192.0.2.1', key, 'Cannot listen on 192.0.2.1, port 0: listen EADDRNOTAVAIL'],
    [`--prices ${prices}`, {}, `cannot use the prices of ${prices}: Expected the price of "m" to be an object`],
    ['--quiet -- no-such-command', {}, 'command not found: "no-such-command"', 127],
    ['--platform', {}, "option '--platform [hosting]' cannot be used with option '--memory'", 2],
    [`--quiet -- ${prices}`, {}, `cannot start "${prices}": the file is not executable`, 126],
  ])('with %s and %j', async (line, env, message, exitCode = 1) => {
    const words = line.split(' ').filter(Boolean);
    const { code, stderr } = await runMain(['dev', '--memory', '--port', '0', ...words], env);
    expect([code, stderr]).toEqual([exitCode, expect.stringContaining(`runspan: ${message}`)]);
  });

  it('on a port that is in use', async () => {
    const { url } = await serve(() => {});
    const { port } = new URL(url);
    const { code, stderr } = await runMain(['dev', '--memory', '--port', port]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(`Port ${port} .* is in use: .* choose another --port`)]);
  });
});
