import { chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { nodeFinding, spoolFinding } from '#src/cli/doctor/doctor.ts';
import { resolveSettings, type Settings } from '#src/config/options.ts';
import { type SpoolFs, systemFs } from '#src/delivery/spool/fs.ts';
import { createReceiver } from '#src/receiver.ts';
import { runMain } from '../support/command.ts';
import { temporaryFolder } from '../support/folders.ts';
import { type Answer, ingestServer, type Reply } from '../support/ingest-server.ts';
import { listen } from '../support/listen.ts';
import { filesBelow, spoolFolder } from '../support/spool.ts';

type Variables = Record<string, string>;

/** Removes the proxies of the machine. */
const NO_PROXIES = { HTTP_PROXY: '', HTTPS_PROXY: '', NO_PROXY: '', http_proxy: '', https_proxy: '', no_proxy: '' };

/** Returns the warnings and failures as `level check`. */
const problems = (stdout: string): string[] =>
  stdout
    .split('\n')
    .map((line) => /^(warn|fail) +(\S+(?: \S+)*?) {2}/.exec(line))
    .flatMap((match) => (match === null ? [] : `${match[1]} ${match[2]}`));

const lineOf = (stdout: string, check: string): string =>
  stdout.split('\n').find((line) => line.slice(6).startsWith(`${check} `)) ?? '';

/** Runs the command in this process, in a folder with these files. */
async function runDoctor(env: Variables, args: readonly string[] = [], files: Record<string, string> = {}) {
  const folder = temporaryFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder.path, name), text);
  return await runDoctorIn(folder.path, env, ...args).finally(folder.remove);
}

async function runDoctorIn(folder: string, env: Variables, ...args: readonly string[]) {
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue(folder);
  return await runMain(['doctor', ...args], env).finally(() => cwd.mockRestore());
}

const JSON_INFO: Answer = { status: 200, body: '{}' };
const PAGE: Answer = { status: 200, body: '<p>Welcome</p>', headers: { 'content-type': 'text/html' } };
const ACCEPTED: Answer = { status: 202, body: '{}', headers: { 'content-type': 'application/json' } };

/** Starts a service with these responses to `GET /info`, `POST /runs/query` and ingestion. */
async function service(info: Answer, query: Reply, ingestion: Reply = query) {
  const server = await ingestServer(({ path }) => (path === '/runs/query' ? query : ingestion), info);
  onTestFinished(() => server.close());
  return server;
}

async function receiver() {
  const started = await createReceiver();
  onTestFinished(() => started.close());
  return started;
}

async function closedPort(): Promise<string> {
  const { url, close } = await ingestServer();
  await close();
  return url;
}

describe('runspan doctor', () => {
  it('reports no problems with a working service, sends one run, and reads it back', async () => {
    const { url, runs } = await receiver();
    const { code, stdout, stderr } = await runDoctor({ RUNSPAN_ENDPOINT: url, RUNSPAN_PROJECT: 'shop' });
    expect([code, stderr, problems(stdout)]).toEqual([0, '', []]);
    expect(lineOf(stdout, 'endpoint')).toMatch(new RegExp(`^ok {4}endpoint +${url}, from RUNSPAN_ENDPOINT$`));
    expect(lineOf(stdout, 'project')).toMatch(/"shop", from RUNSPAN_PROJECT$/);
    expect(lineOf(stdout, 'sampleRate')).toMatch(/ 1, the default$/);
    expect(lineOf(stdout, 'info')).toMatch(/status 200 in \d+ ms$/);
    expect(lineOf(stdout, 'clock')).toMatch(/within 1 s of the service$/);
    expect(lineOf(stdout, 'read back')).toMatch(/the run was found$/);
    const [run, ...others] = await runs({ project: 'shop' });
    expect([run?.name, run?.end_time === undefined, others]).toEqual(['runspan doctor', false, []]);
    expect(stdout).toContain(run?.id);
  });

  it('sends one span with OTLP, and asks the service for nothing else', async () => {
    const server = await ingestServer(() => ({ status: 200, body: '' }));
    onTestFinished(() => server.close());
    const env = { RUNSPAN_PROTOCOL: 'otlp', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: server.url };
    const { code, stdout } = await runDoctor(env);
    expect([code, problems(stdout)]).toEqual([0, []]);
    expect(lineOf(stdout, 'endpoint')).toMatch(new RegExp(`${server.url}, by the variables of OpenTelemetry`));
    expect(lineOf(stdout, 'test run')).toMatch(/accepted in/);
    expect([server.infos, ...server.received.map(({ method, path }) => `${method} ${path}`)]).toEqual([0, 'POST /']);
  });

  it('prints one object of JSON with --json', async () => {
    const { url } = await receiver();
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url }, ['--json']);
    const report = JSON.parse(stdout);
    expect([code, report.ok]).toEqual([0, true]);
    expect(report.findings).toContainEqual({ level: 'ok', check: 'read back', message: 'the run was found' });
  });

  it('prints no secret of any variable', async () => {
    const { url } = await receiver();
    const canary = 'canary-51f0c3';
    const key = `lsv2_pt_${'canary'.repeat(5)}`;
    const invalid = 'a canary that is no key';
    const words = ['TRACING', 'SAMPLE_RATE', 'HIDE_INPUTS', 'HIDE_OUTPUTS', 'ALLOW_INSECURE', 'DURABILITY', 'LOG'];
    const proxy = `http://${canary}:${canary}@127.0.0.1:9`;
    const secrets = {
      ...Object.fromEntries(words.map((name) => [`RUNSPAN_${name}`, invalid])),
      RUNSPAN_API_KEY: canary,
      RUNSPAN_WORKSPACE_ID: canary,
      RUNSPAN_PROJECT: `my ${canary}`,
      RUNSPAN_SPOOL_DIR: `/tmp/${canary}`,
      LANGSMITH_ENDPOINT: `https://${canary}:${canary}@host/?key=${canary}`,
      LANGSMITH_API_KEY: `${canary}-theirs`,
      LANGSMITH_WORKSPACE_ID: `${canary}-theirs`,
      LANGSMITH_TRACING_SAMPLING_RATE: 'canary',
      LANGSMITH_HIDE_INPUTS: 'canary',
      LANGSMITH_PROJECT: key,
      HTTPS_PROXY: proxy,
      HTTP_PROXY: proxy,
    };
    for (const endpoint of [url, `http://${canary}:${canary}@127.0.0.1:1`, canary, `${url}/${key}`]) {
      for (const args of [[], ['--json']]) {
        const { stdout, stderr } = await runDoctor({ ...secrets, RUNSPAN_ENDPOINT: endpoint }, args);
        expect(stdout).toContain('set (');
        expect(stdout + stderr).not.toContain('canary');
        expect(stdout + stderr).not.toContain(Buffer.from(`${canary}:${canary}`).toString('base64'));
      }
    }
  });

  it('sends its run even if tracing is off or the sample rate is 0, with warnings', async () => {
    const { url, runs } = await receiver();
    const env = { RUNSPAN_ENDPOINT: url, RUNSPAN_TRACING: 'off', RUNSPAN_SAMPLE_RATE: '0' };
    const { code, stdout } = await runDoctor(env);
    expect([code, problems(stdout), (await runs()).length]).toEqual([0, ['warn tracing', 'warn sampleRate'], 1]);
    expect(lineOf(stdout, 'sampleRate')).toMatch(/ 0, from RUNSPAN_SAMPLE_RATE: no run is recorded; /);
  });

  it('reports copies of the package, and unsupported versions of OpenTelemetry', async () => {
    const folder = temporaryFolder();
    onTestFinished(folder.remove);
    const install = (path: string, name: string, version: string): void => {
      const to = join(folder.path, 'node_modules', path);
      mkdirSync(to, { recursive: true });
      writeFileSync(join(to, 'package.json'), JSON.stringify({ name, version }));
    };
    const run = () => runDoctorIn(folder.path, {});
    install('runspan', 'runspan', '0.1.0');
    const one = await run();
    expect(problems(one.stdout)).toEqual(['fail tracing']);
    expect(lineOf(one.stdout, 'copies of runspan')).toMatch(/^ok .* 0\.1\.0 in /);
    expect(lineOf(one.stdout, '@opentelemetry/api')).toContain('not installed');

    symlinkSync(join(folder.path, 'node_modules/runspan'), join(folder.path, 'node_modules/linked'));
    install('@shop/agent/node_modules/runspan', 'runspan', '0.0.9');
    install('@opentelemetry/api', '@opentelemetry/api', '1.3.0');
    install('@opentelemetry/sdk-trace', '@opentelemetry/sdk-trace', '3.1.1');
    install('.pnpm/x@1/node_modules/@opentelemetry/sdk-trace-base', '@opentelemetry/sdk-trace-base', '3.0.0');
    install('.pnpm/x@1/node_modules/x', 'x', '1.0.0');
    symlinkSync(join(folder.path, 'node_modules/.pnpm/x@1/node_modules/x'), join(folder.path, 'node_modules/x'));
    const two = await run();
    expect(problems(two.stdout)).toEqual([
      'warn copies of runspan',
      'warn @opentelemetry/api',
      'warn @opentelemetry/sdk-trace-base',
      'fail tracing',
    ]);
    expect(lineOf(two.stdout, '@opentelemetry/sdk-trace')).toMatch(/^ok .* 3\.1\.1/);
    expect(lineOf(two.stdout, 'copies of runspan')).toMatch(/2: .*0\.0\.9 in .*agent.*0\.1\.0 in /);
  });
});

describe('settings', () => {
  it.each<[string, string, string]>([
    ['RUNSPAN_SAMPLE_RATE', '2', 'sampleRate'],
    ['RUNSPAN_TRACING', 'disabled', 'tracing'],
    ['LANGSMITH_HIDE_OUTPUTS', 'maybe', 'hideOutputs'],
    ['RUNSPAN_ALLOW_INSECURE', 'ja', 'allowInsecure'],
    ['RUNSPAN_DURABILITY', 'for-ever', 'durability'],
    ['RUNSPAN_START_DELAY_MS', 'soon', 'limits.startDelayMs'],
    ['RUNSPAN_WORKSPACE_ID', 'with blanks', 'workspaceId'],
  ])('are reported if %s is invalid, with its length only', async (name, value, setting) => {
    const { url } = await receiver();
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url, [name]: value });
    expect([code, problems(stdout)]).toEqual([0, [`warn ${setting}`]]);
    const message = `^warn +${setting} +set \\(${value.length} characters?\\), from ${name}: .*[^.]; correct ${name}$`;
    expect(lineOf(stdout, setting)).toMatch(new RegExp(message));
  });

  it.each<[Variables, string[]]>([
    [{ RUNSPAN_DURABILITY: 'disk', RUNSPAN_TRACING: 'nope' }, ['warn tracing', 'warn durability', 'fail tracing']],
    [{ RUNSPAN_ENDPOINT: 'nowhere' }, ['warn endpoint', 'fail tracing']],
    [{ RUNSPAN_ENDPOINT: 'https://me:sk-secret@traces.invalid' }, ['warn endpoint', 'fail tracing']],
    [{ RUNSPAN_ENDPOINT: 'http://127.0.0.1:9', RUNSPAN_API_KEY: 'with blanks' }, ['warn apiKey', 'fail tracing']],
    [{ RUNSPAN_API_KEY: 'canary' }, ['warn settings', 'fail tracing']],
    [{ RUNSPAN_PROJCET: 'shop', RUNSPAN_CONTROL_PLANE_URL: 'x' }, ['warn RUNSPAN_PROJCET', 'fail tracing']],
  ])('%j fail', async (env, expected) => {
    const { code, stdout } = await runDoctor(env);
    expect([code, problems(stdout)]).toEqual([1, expected]);
    expect(stdout).not.toMatch(/sk-secret|with blanks|canary|\.;/);
  });

  it('have the variable of each value, and the variables that are not used', async () => {
    const { url } = await receiver();
    const all = {
      LANGSMITH_TRACING: 'true',
      LANGSMITH_ENDPOINT: url,
      LANGSMITH_API_KEY: 'k'.repeat(47),
      LANGSMITH_PROJECT: 'theirs',
    };
    const theirs = await runDoctor(all);
    expect(lineOf(theirs.stdout, 'endpoint')).toContain(`${url}, from LANGSMITH_ENDPOINT`);
    expect(lineOf(theirs.stdout, 'apiKey')).toContain('set (47 characters), from LANGSMITH_API_KEY');
    expect(theirs.code).toBe(0);

    const ours = await runDoctor({ ...all, RUNSPAN_ENDPOINT: url, RUNSPAN_PROJECT: 'ours' });
    expect(lineOf(ours.stdout, 'apiKey')).toContain('none, the default');
    expect(lineOf(ours.stdout, 'LANGSMITH_API_KEY')).toContain('set (47 characters), not used');
    expect(lineOf(ours.stdout, 'LANGSMITH_PROJECT')).toContain('not used: RUNSPAN_PROJECT takes precedence');
    expect(ours.stdout).not.toContain('theirs');

    const { LANGSMITH_TRACING: _, ...off } = all;
    const unused = await runDoctor(off);
    const reason = 'not used: neither LANGSMITH_TRACING nor LANGCHAIN_TRACING_V2 is true';
    expect([unused.code, lineOf(unused.stdout, 'LANGSMITH_ENDPOINT')]).toEqual([1, expect.stringContaining(reason)]);
  });
});

describe('an endpoint in a file', () => {
  it('are those of the first service, if there is a list of services', async () => {
    const [first, second] = [await receiver(), await receiver()];
    const list = [first, second].map(({ url }, at) => ({ api_url: url, api_key: `canary-${at}` }));
    const { code, stdout } = await runDoctor({
      LANGSMITH_TRACING: 'true',
      LANGSMITH_API_KEY: 'canary',
      LANGSMITH_RUNS_ENDPOINTS: JSON.stringify(list),
    });
    expect([code, problems(stdout)]).toEqual([0, ['warn LANGSMITH_RUNS_ENDPOINTS']]);
    expect(lineOf(stdout, 'endpoint')).toContain(`${first.url}, from LANGSMITH_RUNS_ENDPOINTS`);
    expect(lineOf(stdout, 'apiKey')).toContain('set (8 characters), from LANGSMITH_RUNS_ENDPOINTS');
    expect(lineOf(stdout, 'LANGSMITH_API_KEY')).toContain('not used: LANGSMITH_RUNS_ENDPOINTS takes precedence');
    expect(stdout).not.toContain('canary');
    expect([(await first.runs()).length, (await second.runs()).length]).toEqual([1, 0]);
  });

  it.each<[file: string, name: string, text: string]>([
    [
      '.env',
      'RUNSPAN_ENDPOINT',
      '# mine\nexport RUNSPAN_ENDPOINT="http://canary.example" # local\nRUNSPAN_API_KEY=canary',
    ],
    ['.env.local', 'RUNSPAN_ENDPOINT', 'RUNSPAN_ENDPOINT=http://canary.example'],
    ['.env', 'LANGSMITH_ENDPOINT', 'LANGSMITH_ENDPOINT=canary\nLANGSMITH_API_KEY=canary'],
    ['.env', 'LANGCHAIN_API_KEY', 'LANGCHAIN_API_KEY=canary\nLANGCHAIN_TRACING_V2=true'],
  ])('is reported without its value: %s with %s', async (file, name, text) => {
    for (const args of [[], ['--json']]) {
      const { code, stdout } = await runDoctor({}, args, { [file]: text });
      expect(code).toBe(1);
      expect(stdout).toContain(`off: ${file} sets ${name}, but the environment does not`);
      expect(stdout).toContain(`start the program with \`node --env-file=${file}\``);
      expect(stdout).not.toContain('canary');
    }
  });

  it.each<Record<string, string>>([
    { '.env': 'RUNSPAN_ENDPOINT=\n#RUNSPAN_ENDPOINT=x\nRUNSPAN_API_KEY=canary' },
    { '.env': '\0\xff=="\n', '.env.example': 'RUNSPAN_ENDPOINT=http://localhost' },
  ])('is not reported if no file sets one: %j', async (files) => {
    const { stdout } = await runDoctor({}, [], files);
    expect(lineOf(stdout, 'tracing')).toMatch(/^ok /);
    expect(stdout).toMatch(/^fail +tracing +off: there is no endpoint; set RUNSPAN_ENDPOINT/m);
  });

  it('is not needed if the environment has one', async () => {
    const { url } = await receiver();
    const files = { '.env': 'RUNSPAN_ENDPOINT=http://localhost:9' };
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url }, [], files);
    expect([code, stdout.includes('.env')]).toEqual([0, false]);
  });
});

describe('the service', () => {
  it.each<[string, () => Promise<string>, number, string[], Record<string, RegExp>]>([
    ['at a closed port', closedPort, 1, ['fail info'], { info: /no program listens .* \(ECONNREFUSED\); check the/ }],
    [
      'with plain HTTP at https',
      async () => (await receiver()).url.replace('http:', 'https:'),
      1,
      ['fail info'],
      { info: /the server does not use TLS .*; check whether the endpoint begins with http or https$/ },
    ],
    [
      'at a wrong path',
      async () => `${(await receiver()).url}/nothing/here`,
      1,
      ['warn info', 'fail test run'],
      {
        endpoint: /\/nothing\/here/,
        'test run': /not accepted: status 404; check the path in the endpoint; .* below it$/,
      },
    ],
    [
      'that rejects the key',
      async () => (await service(JSON_INFO, { status: 401 })).url,
      1,
      ['fail test run'],
      { 'test run': /status 401: the API key was rejected; copy RUNSPAN_API_KEY/ },
    ],
    [
      'with a key that can only write',
      async () => (await service(JSON_INFO, { status: 403 }, ACCEPTED)).url,
      0,
      [],
      { 'read back': /skipped: the key has no permission to read runs \(status 403\)$/ },
    ],
    ['without queries', async () => (await service(JSON_INFO, { status: 202 })).url, 0, [], { 'read back': /skipped/ }],
    ['that is a web page', async () => (await service(PAGE, PAGE)).url, 1, ['fail info'], {}],
    [
      'with a page for queries',
      async () => (await service(JSON_INFO, PAGE, ACCEPTED)).url,
      0,
      ['warn read back'],
      { 'read back': /the response is not JSON/ },
    ],
    [
      'with a limit for requests',
      async () => (await service({ status: 413 }, { status: 413 })).url,
      1,
      ['warn info', 'fail test run'],
      {
        info: /status 413 in \d+ ms; raise the request size limit/,
        'test run': /not accepted: status 413; raise the request size limit/,
      },
    ],
  ])('%s', async (_, start, code, expected, lines) => {
    const result = await runDoctor({ RUNSPAN_ENDPOINT: await start(), RUNSPAN_API_KEY: 'canary-key' });
    expect([result.code, problems(result.stdout)]).toEqual([code, expected]);
    for (const [check, line] of Object.entries(lines)) expect(lineOf(result.stdout, check)).toMatch(line);
    expect(result.stdout).not.toContain('canary');
  });

  it('receives no key after a redirect', async () => {
    const other = await service(JSON_INFO, ACCEPTED);
    const redirect = { status: 302, headers: { location: `${other.url}/info` } };
    const { url } = await service(redirect, redirect);
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url, RUNSPAN_API_KEY: 'canary-key' });
    expect([code, problems(stdout), other.received]).toEqual([1, ['fail info'], []]);
  });

  it.each<[number, string]>([
    [3_600_000, 'behind'],
    [-3_600_000, 'ahead of'],
  ])('with a clock that differs by %i ms', async (differenceMs, text) => {
    const date = new Date(Date.now() + differenceMs).toUTCString();
    const { url } = await service({ ...JSON_INFO, headers: { date } }, { status: 202 });
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url });
    expect([code, problems(stdout)]).toEqual([0, ['warn clock']]);
    expect(lineOf(stdout, 'clock')).toMatch(new RegExp(`(35[5-9]\\d|36[0-4]\\d) s ${text} the service`));
  });
});

describe('a proxy', () => {
  const REMOTE = 'https://runs.invalid';

  it.each<[Variables, string]>([
    [{ HTTPS_PROXY: 'http://127.0.0.1:1' }, 'HTTPS_PROXY'],
    [{ HTTPS_PROXY: 'user:canary-pw@127.0.0.1:1' }, 'HTTPS_PROXY'],
    [{ HTTP_PROXY: '127.0.0.1:1' }, 'HTTP_PROXY'],
    [{ HTTPS_PROXY: 'socks5://p:1', http_proxy: '127.0.0.1:1' }, 'http_proxy'],
  ])('of %j is used as in delivery, and its failure is reported', async (env, variable) => {
    const { stdout } = await runDoctor({ RUNSPAN_ENDPOINT: REMOTE, ...NO_PROXIES, ...env });
    expect(stdout).toMatch(new RegExp(`^ok {4}proxy +http://127\\.0\\.0\\.1:1, from ${variable}$`, 'm'));
    expect(lineOf(stdout, 'info')).toMatch(
      /^fail .*the proxy cannot be reached \(ECONNREFUSED\); check the proxy, HTTP_PROXY and HTTPS_PROXY$/,
    );
    expect(stdout).not.toContain('canary');
  });

  it('that rejects the connection is reported with its variable', async () => {
    const rejecting = createServer().on('connect', (_, socket) => {
      socket.on('error', () => {}).end('HTTP/1.1 407 No\r\n\r\n');
    });
    const HTTPS_PROXY = await listen(rejecting);
    onTestFinished(() => void rejecting.close());
    const { stdout } = await runDoctor({ RUNSPAN_ENDPOINT: REMOTE, ...NO_PROXIES, HTTPS_PROXY });
    expect(lineOf(stdout, 'info')).toMatch(/the proxy requires authentication \(status 407\); check HTTPS_PROXY$/);
  });

  it.each<[string, Variables, string]>([
    [REMOTE, { NO_PROXY: '.invalid', HTTPS_PROXY: 'http://127.0.0.1:1' }, 'none: NO_PROXY contains the host'],
    [REMOTE, { HTTPS_PROXY: 'socks5://127.0.0.1:1' }, 'HTTPS_PROXY is not an http or https URL'],
    ['http://127.0.0.1:1', { HTTP_PROXY: '127.0.0.1:1' }, 'none: a connection to this machine uses no proxy'],
    ['http://127.0.0.1:1', { HTTPS_PROXY: '127.0.0.1:1' }, 'none: HTTPS_PROXY applies to https only'],
  ])('is not used for %s with %j', async (RUNSPAN_ENDPOINT, env, reason) => {
    const { stdout } = await runDoctor({ RUNSPAN_ENDPOINT, ...NO_PROXIES, ...env });
    expect(lineOf(stdout, 'proxy')).toContain(reason);
    expect(problems(stdout).at(-1)).toBe('fail info');
  });
});

describe('the spool', () => {
  const found = (spoolDir: string, fs?: SpoolFs) => {
    const settings = resolveSettings({ endpoint: 'http://127.0.0.1:4777', durability: 'spill', spoolDir });
    return spoolFinding(settings as Settings, fs);
  };

  it('is tested with a file, which is deleted', () => {
    const { dir } = spoolFolder();
    expect(found(dir)).toMatchObject({ level: 'ok', message: `${dir} can be written` });
    expect(filesBelow(dir)).toEqual([]);
  });

  it('causes a warning if its folder is a symbolic link', () => {
    const { dir } = spoolFolder();
    symlinkSync(dirname(dir), dir);
    expect(found(dir)).toMatchObject({ level: 'warn', message: expect.stringContaining('is a symbolic link') });
  });

  it.skipIf(process.getuid?.() !== 0)('causes a warning if its folder belongs to another user', () => {
    const { dir } = spoolFolder();
    mkdirSync(dir);
    chownSync(dir, 12_345, 12_345);
    expect(found(dir)).toMatchObject({ level: 'warn', message: expect.stringContaining('belongs to another user') });
  });

  it('causes a warning if the disk is full', () => {
    const { dir } = spoolFolder();
    const writeSync = ((fd: number, bytes: Uint8Array) =>
      systemFs.writeSync(fd, bytes.subarray(1))) as SpoolFs['writeSync'];
    expect(found(dir, Object.assign(Object.create(systemFs), { writeSync }))).toMatchObject({ level: 'warn' });
    expect(filesBelow(dir)).toEqual([]);
  });
});

it.each([
  ['20.18.9', 'fail'],
  ['20.19.0', 'ok'],
  ['18.99.0', 'fail'],
  ['22.0.0', 'ok'],
])('Node %s is %s', (version, level) => {
  expect(nodeFinding(version).level).toBe(level);
});
