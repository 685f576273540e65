import { createServer } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { REPLACED_NAMES } from '#src/cli/doctor/project.ts';
import * as langsmith from '#src/langsmith.ts';
import { runMain } from '../support/command.ts';
import { type Answer, ingestServer, ingestServerInTest, type Reply } from '../support/ingest-server.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import { startReceiver } from '../support/receiver.ts';
import { testFolder } from '../support/test-folder.ts';

type Variables = Record<string, string>;

/** Removes the proxies of the machine. */
const NO_PROXIES = { HTTP_PROXY: '', HTTPS_PROXY: '', NO_PROXY: '', http_proxy: '', https_proxy: '', no_proxy: '' };

const problems = (stdout: string): string[] =>
  [...stdout.matchAll(/^(warn|fail) +(\S+(?: \S+)*?) {2}/gm)].map(([, level, check]) => `${level} ${check}`);

const lineOf = (stdout: string, check: string): string =>
  stdout.split('\n').find((line) => line.slice(6).startsWith(`${check} `)) ?? '';

function runDoctor(env: Variables, args: readonly string[] = [], files: Record<string, string> = {}) {
  vi.spyOn(process, 'cwd').mockReturnValue(testFolder(files));
  return runMain(['doctor', ...args], env);
}

const JSON_INFO: Answer = { status: 200, body: '{}' };
const PAGE: Answer = { status: 200, body: '<p>Welcome</p>', headers: { 'content-type': 'text/html' } };
const REDIRECT: Answer = { status: 302, headers: { location: 'http://127.0.0.1:9/info' } };

/** Starts a service with these responses to `GET /info`, `POST /runs/query` and ingestion. */
async function service(info: Answer, query: Reply, ingestion: Reply = query) {
  return ingestServerInTest(({ path }) => (path === '/runs/query' ? query : ingestion), info);
}

async function closedPort(): Promise<string> {
  const { url, close } = await ingestServer();
  await close();
  return url;
}

describe('runspan doctor', () => {
  it('reports no problems with a working service, sends one run, and prints its address', async () => {
    const { url, runs } = await startReceiver();
    const { code, stdout, stderr } = await runDoctor({ RUNSPAN_ENDPOINT: url, RUNSPAN_PROJECT: 'shop' });
    expect([code, stderr, problems(stdout)]).toEqual([0, '', []]);
    expect(lineOf(stdout, 'RUNSPAN_ENDPOINT')).toMatch(new RegExp(`^ok {4}RUNSPAN_ENDPOINT +${url}$`));
    expect(lineOf(stdout, 'RUNSPAN_PROJECT')).toMatch(/"shop"$/);
    expect(lineOf(stdout, 'endpoint')).toContain(`runs are sent to ${url}`);
    const [run, ...others] = await runs({ project: 'shop' });
    expect([run?.name, run?.end_time === undefined, others]).toEqual(['runspan doctor', false, []]);
    expect(lineOf(stdout, 'test run')).toContain(`accepted: ${url}/?trace=${run?.id}`);
  });

  it('sends one span with OTLP, and asks the service for nothing else', async () => {
    const server = await ingestServerInTest(() => ({ status: 200, body: '' }));
    const env = { RUNSPAN_PROTOCOL: 'otlp', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: server.url };
    const { code, stdout } = await runDoctor(env);
    expect([code, problems(stdout)]).toEqual([0, []]);
    expect(lineOf(stdout, 'endpoint')).toContain(`runs are sent to ${server.url}`);
    expect(lineOf(stdout, 'test run')).toMatch(/accepted: /);
    expect([server.infos, ...server.received.map(({ method, path }) => `${method} ${path}`)]).toEqual([0, 'POST /']);
  });

  it('prints one object of JSON with --json', async () => {
    const { url } = await startReceiver();
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url }, ['--json']);
    const report = JSON.parse(stdout);
    expect([code, report.ok]).toEqual([0, true]);
    expect(report.findings).toContainEqual({ level: 'ok', check: 'info', message: 'GET /info: status 200' });
  });

  it('prints no secret of any variable', async () => {
    const { url } = await startReceiver();
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
    const { url, runs } = await startReceiver();
    const env = { RUNSPAN_ENDPOINT: url, RUNSPAN_TRACING: 'off', RUNSPAN_SAMPLE_RATE: '0' };
    const { code, stdout } = await runDoctor(env);
    const warnings = ['warn RUNSPAN_TRACING', 'warn RUNSPAN_SAMPLE_RATE'];
    expect([code, problems(stdout), (await runs()).length]).toEqual([0, warnings, 1]);
    expect(lineOf(stdout, 'RUNSPAN_SAMPLE_RATE')).toContain('the sample rate is 0, so no run is recorded; ');
  });

  it('knows the values that runspan/langsmith has', () => {
    expect([...REPLACED_NAMES].sort()).toEqual(Object.keys(langsmith).sort());
  });

  it('names the imports that stay with langsmith, and what a program would not load', async () => {
    const full = await runDoctor({}, [], {
      'node_modules/runspan/package.json': '{"name":"runspan","version":"0.0.9"}',
      'src/b.ts': `import Default, { type Run, RunTreeConfig, Client,\n overrideFetchImplementation as o } from 'langsmith';`,
      'src/c.cjs': `const { evaluate } = require('langsmith/evaluation'); const { traceable } = require("langsmith/traceable")`,
      'src/d.mts': `import type { Run } from 'langsmith'; import { type Feedback } from 'langsmith/schemas';`,
    });
    expect(problems(full.stdout)).toEqual(['warn runspan', 'fail tracing']);
    expect(
      lineOf(full.stdout, 'langsmith')
        .split(/langsmith: |; see/)[1]
        ?.split(', ')
        .sort(),
    ).toEqual(['evaluate (src/c.cjs)', 'overrideFetchImplementation (src/b.ts)']);
  });
});

describe('settings', () => {
  it.each<[string, string]>([
    ['RUNSPAN_SAMPLE_RATE', '2'],
    ['RUNSPAN_TRACING', 'disabled'],
    ['LANGSMITH_HIDE_OUTPUTS', 'maybe'],
    ['RUNSPAN_ALLOW_INSECURE', 'ja'],
    ['RUNSPAN_DURABILITY', 'for-ever'],
    ['RUNSPAN_WORKSPACE_ID', 'with blanks'],
  ])('are reported if %s is invalid, with its length only', async (name, value) => {
    const { url } = await startReceiver();
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url, [name]: value });
    expect([code, problems(stdout)]).toEqual([0, [`warn ${name}`]]);
    const message = `^warn +${name} +set \\(${value.length} characters?\\): .*[^.]; correct or unset ${name}$`;
    expect(lineOf(stdout, name)).toMatch(new RegExp(message));
  });

  it.each<[Variables, string[]]>([
    [
      { RUNSPAN_DURABILITY: 'disk', RUNSPAN_TRACING: 'nope' },
      ['warn RUNSPAN_TRACING', 'warn RUNSPAN_DURABILITY', 'fail tracing'],
    ],
    [{ RUNSPAN_ENDPOINT: 'nowhere' }, ['warn RUNSPAN_ENDPOINT', 'fail tracing']],
    [{ RUNSPAN_ENDPOINT: 'https://me:sk-secret@traces.invalid' }, ['warn RUNSPAN_ENDPOINT', 'fail tracing']],
    [
      { RUNSPAN_ENDPOINT: 'http://127.0.0.1:9', RUNSPAN_API_KEY: 'with blanks' },
      ['warn RUNSPAN_API_KEY', 'fail tracing'],
    ],
    [{ RUNSPAN_API_KEY: 'canary' }, ['warn settings', 'fail tracing']],
    [{ RUNSPAN_PROJCET: 'shop', RUNSPAN_CONTROL_PLANE_URL: 'x' }, ['warn settings', 'fail tracing']],
  ])('%j fail', async (env, expected) => {
    const { code, stdout } = await runDoctor(env);
    expect([code, problems(stdout)]).toEqual([1, expected]);
    expect(stdout).not.toMatch(/sk-secret|with blanks|canary|\.;/);
  });

  it('have the variable of each value, and the variables that are not used', async () => {
    const { url } = await startReceiver();
    const all = {
      LANGSMITH_TRACING: 'true',
      LANGSMITH_ENDPOINT: url,
      LANGSMITH_API_KEY: 'k'.repeat(47),
      LANGSMITH_PROJECT: 'theirs',
    };
    const theirs = await runDoctor(all);
    expect(lineOf(theirs.stdout, 'LANGSMITH_ENDPOINT')).toMatch(new RegExp(` ${url}$`));
    expect(lineOf(theirs.stdout, 'LANGSMITH_API_KEY')).toMatch(/ set \(47 characters\)$/);
    expect(theirs.code).toBe(0);

    const ours = await runDoctor({ ...all, RUNSPAN_ENDPOINT: url, RUNSPAN_PROJECT: 'ours' });
    expect(lineOf(ours.stdout, 'LANGSMITH_API_KEY')).toContain('set (47 characters), not used');
    expect(lineOf(ours.stdout, 'LANGSMITH_PROJECT')).toContain('set (6 characters), not used');
    expect(ours.stdout).not.toContain('theirs');

    const { LANGSMITH_TRACING: _, ...off } = all;
    const unused = await runDoctor(off);
    expect([unused.code, lineOf(unused.stdout, 'LANGSMITH_ENDPOINT')]).toEqual([
      1,
      expect.stringContaining('not used'),
    ]);
  });
});

describe('an endpoint', () => {
  it('is that of the first service, if there is a list of services', async () => {
    const [first, second] = [await startReceiver(), await startReceiver()];
    const list = [first, second].map(({ url }, at) => ({ api_url: url, api_key: `canary-${at}` }));
    const { code, stdout } = await runDoctor({
      LANGSMITH_TRACING: 'true',
      LANGSMITH_API_KEY: 'canary',
      LANGSMITH_RUNS_ENDPOINTS: JSON.stringify(list),
    });
    expect([code, problems(stdout)]).toEqual([0, []]);
    expect(lineOf(stdout, 'endpoint')).toContain(`${first.url}, the first of 2 services`);
    expect(lineOf(stdout, 'LANGSMITH_API_KEY')).toContain('not used');
    expect(stdout).not.toContain('canary');
    expect([(await first.runs()).length, (await second.runs()).length]).toEqual([1, 0]);
  });

  it('in the files .env and .env.local is checked like one in the environment, and a warning names the file', async () => {
    const { url, runs } = await startReceiver();
    const text = `# mine\nexport RUNSPAN_ENDPOINT="http://127.0.0.1:9" # local\nRUNSPAN_PROJECT=shop\nRUNSPAN_API_KEY=canary`;
    const { code, stdout } = await runDoctor({}, [], { '.env': text, '.env.local': `RUNSPAN_ENDPOINT=${url}` });
    expect([code, problems(stdout), (await runs({ project: 'shop' })).length]).toEqual([0, ['warn tracing'], 1]);
    expect(lineOf(stdout, 'RUNSPAN_ENDPOINT')).toContain(`${url}, in .env.local`);
    expect(stdout).toContain(
      'only .env.local sets RUNSPAN_ENDPOINT; start the program with `node --env-file=.env.local`',
    );
    expect(stdout).not.toContain('canary');
    expect(process.env.RUNSPAN_PROJECT).toBeUndefined();
  });

  it.each<Record<string, string>>([
    { '.env': 'RUNSPAN_ENDPOINT=\n#RUNSPAN_ENDPOINT=x\nLANGSMITH_API_KEY=canary' },
    { '.env': '\0\xff=="\n', '.env.example': 'RUNSPAN_ENDPOINT=http://localhost' },
  ])('is missing if no file sets one: %j', async (files) => {
    const { stdout } = await runDoctor({}, [], files);
    expect(stdout).toMatch(/^fail +tracing +off: there is no endpoint; set RUNSPAN_ENDPOINT/m);
  });

  it('in the environment takes precedence over that in a file', async () => {
    const { url } = await startReceiver();
    const files = { '.env': 'RUNSPAN_ENDPOINT=http://localhost:9' };
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url }, [], files);
    expect([code, stdout.includes('.env')]).toEqual([0, false]);
  });
});

describe('the service', () => {
  const refusing = async (query: Reply) => (await service(JSON_INFO, query)).url;

  it.each<[string, () => Promise<string>, string[], Record<string, RegExp>]>([
    ['at a closed port', closedPort, ['fail info'], { info: /no program listens .* \(ECONNREFUSED\); check the/ }],
    [
      'with plain HTTP at https',
      async () => (await startReceiver()).url.replace('http:', 'https:'),
      ['fail info'],
      { info: /the server does not use TLS .*; check whether the endpoint begins with http or https$/ },
    ],
    [
      'at a wrong path',
      async () => `${(await startReceiver()).url}/nothing/here`,
      ['warn info', 'fail test run'],
      { 'test run': /not accepted: status 404, "No route matches .*"; check the path in the endpoint, / },
    ],
    [
      'that rejects the key, in its own words',
      () => refusing({ status: 401, body: '{"error":"No such key"}' }),
      ['fail test run'],
      { 'test run': /not accepted: status 401, "No such key": .*; copy RUNSPAN_API_KEY/ },
    ],
    [
      'whose key can only read',
      () => refusing({ status: 403, body: '{"detail":"The read key can only read"}' }),
      ['fail test run'],
      { 'test run': /not accepted: status 403, "The read key can only read": .*; use a key that may send runs/ },
    ],
    [
      'with too many wrong keys',
      () => refusing({ status: 429, body: '{"detail":"Too many wrong keys"}', headers: { 'retry-after': '60' } }),
      ['fail test run'],
      {
        'test run':
          /status 429, "Too many wrong keys"; the service is unavailable or limits requests; try again later$/,
      },
    ],
    ['that is a web page', async () => (await service(PAGE, PAGE)).url, ['fail info'], {}],
    ['that redirects', async () => (await service(REDIRECT, REDIRECT)).url, ['fail info'], {}],
  ])('%s', async (_, start, expected, lines) => {
    const result = await runDoctor({ RUNSPAN_ENDPOINT: await start(), RUNSPAN_API_KEY: 'canary-key' });
    expect([result.code, problems(result.stdout)]).toEqual([1, expected]);
    for (const [check, line] of Object.entries(lines)) expect(lineOf(result.stdout, check)).toMatch(line);
    expect(result.stdout).not.toContain('canary');
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
    [{ HTTPS_PROXY: 'user:canary-pw@127.0.0.1:1' }, 'HTTPS_PROXY'],
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
    const HTTPS_PROXY = await listenInTest(rejecting);
    const { stdout } = await runDoctor({ RUNSPAN_ENDPOINT: REMOTE, ...NO_PROXIES, HTTPS_PROXY });
    expect(lineOf(stdout, 'info')).toMatch(/the proxy requires authentication \(status 407\); check HTTPS_PROXY$/);
  });
});
