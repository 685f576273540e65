import { once } from 'node:events';
import { chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { nodeFinding, spoolFinding } from '../../src/cli/doctor/doctor.ts';
import { adviceFor } from '../../src/cli/doctor/service.ts';
import { resolveSettings, type Settings } from '../../src/export/settings.ts';
import { type SpoolFs, systemFs } from '../../src/export/spool/fs.ts';
import { createReceiver } from '../../src/receiver.ts';
import { runMain } from '../support/command.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { type Answer, type IngestServer, ingestServer, type Reply } from '../support/ingest-server.ts';
import { runNode, runRunspan } from '../support/program.ts';
import { filesBelow, spoolFolder } from '../support/spool.ts';

const command = join(root, 'dist/cli/main.js');
const JSON_INFO: Answer = { status: 200, body: '{}' };

/** Removes the proxies of the machine. */
const NO_PROXIES = { HTTP_PROXY: '', HTTPS_PROXY: '', NO_PROXY: '', http_proxy: '', https_proxy: '', no_proxy: '' };

/** Returns the warnings and failures as `level check`. */
const troubles = (stdout: string): string[] =>
  stdout
    .split('\n')
    .map((line) => /^(warn|fail) +(\S+(?: \S+)*?) {2}/.exec(line))
    .flatMap((match) => (match === null ? [] : `${match[1]} ${match[2]}`));

const lineOf = (stdout: string, check: string): string =>
  stdout.split('\n').find((line) => line.slice(6).startsWith(`${check} `)) ?? '';

/** Called at the end, because concurrent tests have no hooks of their own. */
const undo: (() => unknown)[] = [];
afterAll(async () => {
  for (const one of undo) await one();
});

async function service(reply: () => Reply, info: Answer = JSON_INFO): Promise<IngestServer> {
  const server = await ingestServer(reply, info);
  undo.push(server.close);
  return server;
}

async function receiver() {
  const started = await createReceiver();
  undo.push(() => started.close());
  return started;
}

/** Runs the command in this process, in a folder without packages. */
async function runDoctor(env: Record<string, string>, ...args: string[]) {
  const folder = temporaryFolder();
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue(folder.path);
  try {
    return await runMain(['doctor', ...args], env);
  } finally {
    cwd.mockRestore();
    folder.remove();
  }
}

describe.concurrent('runspan doctor', () => {
  it('reports no problems with a working service, sends one run, and reads it back', async () => {
    const { url, runs } = await receiver();
    const { code, stdout, stderr } = await runRunspan(['doctor'], { RUNSPAN_ENDPOINT: url, RUNSPAN_PROJECT: 'shop' });

    expect([code, stderr, troubles(stdout)]).toEqual([0, '', []]);
    expect(lineOf(stdout, 'endpoint')).toMatch(new RegExp(`^ok {4}endpoint +${url}, from RUNSPAN_ENDPOINT$`));
    expect(lineOf(stdout, 'project')).toMatch(/"shop", from RUNSPAN_PROJECT$/);
    expect(lineOf(stdout, 'sampleRate')).toMatch(/ 1, the default$/);
    expect(lineOf(stdout, 'info')).toMatch(/status 200 in \d+ ms$/);
    expect(lineOf(stdout, 'clock')).toMatch(/within 1 s of the service$/);
    expect(lineOf(stdout, 'key')).toMatch(/none, and the service requires none$/);
    expect(lineOf(stdout, 'read back')).toMatch(/the run was found$/);
    const [run, ...others] = await runs({ project: 'shop' });
    expect([run?.name, run?.end_time === undefined, others]).toEqual(['runspan doctor', false, []]);
    expect(stdout).toContain(run?.id);
  });

  it('fails if the key is rejected, and names the variable', async () => {
    const { url, received } = await service(() => ({ status: 401 }));
    const { code, stdout } = await runRunspan(['doctor'], { RUNSPAN_ENDPOINT: url, RUNSPAN_API_KEY: 'canary-key' });

    expect([code, troubles(stdout)]).toEqual([1, ['fail key', 'fail test run']]);
    expect(lineOf(stdout, 'key')).toContain('RUNSPAN_API_KEY');
    expect(lineOf(stdout, 'test run')).toMatch(/status 401: the API key was rejected; copy RUNSPAN_API_KEY/);
    expect(received.map(({ headers }) => headers['x-api-key'])).toContain('canary-key');
    expect(stdout).not.toContain('canary');
  });

  it('prints no secret of any variable', async () => {
    const { url } = await receiver();
    const canary = 'canary-51f0c3';
    const key = `lsv2_pt_${'canary'.repeat(5)}`;
    const proxy = `http://${canary}:${canary}@127.0.0.1:9`;
    const secrets = {
      RUNSPAN_API_KEY: canary,
      RUNSPAN_WORKSPACE_ID: canary,
      RUNSPAN_PROJECT: `my ${canary}`,
      RUNSPAN_TRACING: 'a canary that is no key',
      RUNSPAN_SAMPLE_RATE: 'a canary that is no key',
      RUNSPAN_HIDE_INPUTS: 'a canary that is no key',
      RUNSPAN_HIDE_OUTPUTS: 'a canary that is no key',
      RUNSPAN_ALLOW_INSECURE: 'a canary that is no key',
      RUNSPAN_DURABILITY: 'a canary that is no key',
      RUNSPAN_SPOOL_DIR: `/tmp/${canary}`,
      RUNSPAN_LOG: 'a canary that is no key',
      LANGSMITH_ENDPOINT: `https://${canary}:${canary}@host/?key=${canary}`,
      LANGSMITH_API_KEY: `${canary}-theirs`,
      LANGSMITH_WORKSPACE_ID: `${canary}-theirs`,
      LANGSMITH_TRACING_SAMPLING_RATE: 'canary',
      LANGSMITH_HIDE_INPUTS: 'canary',
      LANGSMITH_PROJECT: key,
      HTTPS_PROXY: proxy,
      HTTP_PROXY: proxy,
    };
    const calls: [string[], string][] = [
      [['doctor'], url],
      [['doctor', '--json'], url],
      [['doctor'], `http://${canary}:${canary}@127.0.0.1:1`],
      [['doctor'], canary],
      [['doctor'], `${url}/${key}`],
    ];
    for (const [args, endpoint] of calls) {
      const { stdout, stderr } = await runRunspan(args, { ...secrets, RUNSPAN_ENDPOINT: endpoint });
      expect(stdout).toContain('set (');
      expect(stdout + stderr).not.toContain('canary');
      expect(stdout + stderr).not.toContain(Buffer.from(`${canary}:${canary}`).toString('base64'));
    }
  });

  it('reports copies of the package, and unsupported versions of OpenTelemetry', async () => {
    const folder = temporaryFolder();
    undo.push(folder.remove);
    const install = (path: string, name: string, version: string): void => {
      const to = join(folder.path, path);
      mkdirSync(to, { recursive: true });
      writeFileSync(join(to, 'package.json'), JSON.stringify({ name, version }));
    };
    install('node_modules/runspan', 'runspan', '0.1.0');
    const one = await runNode([command, 'doctor'], {}, folder.path);
    expect(troubles(one.stdout)).toEqual(['fail tracing']);
    expect(lineOf(one.stdout, 'copies of runspan')).toMatch(/^ok .* 0\.1\.0 in /);
    expect(lineOf(one.stdout, '@opentelemetry/api')).toContain('not installed');

    symlinkSync(join(folder.path, 'node_modules/runspan'), join(folder.path, 'node_modules/linked'));
    install('node_modules/@shop/agent/node_modules/runspan', 'runspan', '0.0.9');
    install('node_modules/@opentelemetry/api', '@opentelemetry/api', '1.3.0');
    install(
      'node_modules/.pnpm/x@1/node_modules/@opentelemetry/sdk-trace-base',
      '@opentelemetry/sdk-trace-base',
      '4.0.0',
    );
    const two = await runNode([command, 'doctor'], {}, folder.path);
    expect(troubles(two.stdout)).toEqual([
      'warn copies of runspan',
      'warn @opentelemetry/api',
      'warn @opentelemetry/sdk-trace-base',
      'fail tracing',
    ]);
    expect(lineOf(two.stdout, 'copies of runspan')).toMatch(/2: .*0\.0\.9 in .*agent.*0\.1\.0 in /);
  });
});

describe('runspan doctor in this process', () => {
  it.each<[string, Record<string, string>, string]>([
    ['as it is', { HTTPS_PROXY: 'http://127.0.0.1:1' }, 'HTTPS_PROXY'],
    ['with a user, and without a scheme', { HTTPS_PROXY: 'user:canary-pw@127.0.0.1:1' }, 'HTTPS_PROXY'],
    ['for http if there is none for https', { HTTP_PROXY: '127.0.0.1:1' }, 'HTTP_PROXY'],
    ['next to an invalid one', { HTTPS_PROXY: 'socks5://p:1', http_proxy: '127.0.0.1:1' }, 'http_proxy'],
  ])('uses a proxy %s as delivery does, and reports that it fails', async (_, env, variable) => {
    const { stdout } = await runDoctor({
      RUNSPAN_ENDPOINT: 'https://runs.invalid',
      ...NO_PROXIES,
      ...env,
    });

    expect(stdout).toMatch(new RegExp(`^ok {4}proxy +http://127\\.0\\.0\\.1:1, from ${variable}$`, 'm'));
    expect(lineOf(stdout, 'info')).toMatch(
      /^fail .*the proxy cannot be reached \(ECONNREFUSED\); check the proxy, HTTP_PROXY and HTTPS_PROXY$/,
    );
    expect(stdout).not.toMatch(/canary|^.{6}(dns|tls) /m);
  });

  it('names the variable of a proxy that rejects the connection', async () => {
    const refusing = createServer().on('connect', (_, socket) => {
      socket.on('error', () => {}).end('HTTP/1.1 407 No\r\n\r\n');
    });
    await once(refusing.listen(0, '127.0.0.1'), 'listening');
    undo.push(() => refusing.close());
    const HTTPS_PROXY = `127.0.0.1:${(refusing.address() as AddressInfo).port}`;
    const env = { RUNSPAN_ENDPOINT: 'https://runs.invalid', ...NO_PROXIES, HTTPS_PROXY };
    const { stdout } = await runDoctor(env);
    expect(lineOf(stdout, 'info')).toMatch(/the proxy asks for authentication \(status 407\); check HTTPS_PROXY$/);
  });

  it.each<[string, Record<string, string>, string]>([
    [
      'NO_PROXY contains the host',
      { NO_PROXY: '.invalid', HTTPS_PROXY: 'http://127.0.0.1:1' },
      'NO_PROXY contains the host',
    ],
    ['the address is invalid', { HTTPS_PROXY: 'socks5://127.0.0.1:1' }, 'HTTPS_PROXY is not an http or https address'],
  ])('checks the connection itself if there is no proxy because %s', async (_, env, why) => {
    const { stdout } = await runDoctor({
      RUNSPAN_ENDPOINT: 'https://runs.invalid',
      ...NO_PROXIES,
      ...env,
    });
    expect(lineOf(stdout, 'proxy')).toContain(why);
    expect(troubles(stdout)).toContain('fail dns');
  });

  it.each<[string, Record<string, string>, string]>([
    ['this machine', { HTTP_PROXY: '127.0.0.1:1' }, 'a connection to this machine uses no proxy'],
    ['plain HTTP', { HTTPS_PROXY: '127.0.0.1:1' }, 'HTTPS_PROXY applies to https only'],
  ])('reports why there is no proxy for %s', async (_, env, why) => {
    const { url } = await receiver();
    const { stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url, ...NO_PROXIES, ...env });
    expect([lineOf(stdout, 'proxy'), troubles(stdout)]).toEqual([expect.stringContaining(`none: ${why}`), []]);
  });

  it('prints the findings as one object of JSON with --json', async () => {
    const { url } = await receiver();
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url }, '--json');
    const report = JSON.parse(stdout);

    expect([code, report.ok]).toEqual([0, true]);
    expect(report.findings).toContainEqual({ level: 'ok', check: 'read back', message: 'the run was found' });
  });

  it('sends its run even if tracing is off or the sample rate is 0, with warnings', async () => {
    const { url, runs } = await receiver();
    const env = { RUNSPAN_ENDPOINT: url, RUNSPAN_TRACING: 'off', RUNSPAN_SAMPLE_RATE: '0' };
    const { code, stdout } = await runDoctor(env);

    expect([code, troubles(stdout), (await runs()).length]).toEqual([0, ['warn sampleRate', 'warn tracing'], 1]);
    expect(lineOf(stdout, 'sampleRate')).toMatch(
      / 0, from RUNSPAN_SAMPLE_RATE: no run is recorded; set it to 1, or unset it$/,
    );
  });

  it.each<[string, string, string]>([
    ['RUNSPAN_SAMPLE_RATE', '2', 'sampleRate'],
    ['RUNSPAN_TRACING', 'disabled', 'tracing'],
    ['RUNSPAN_HIDE_INPUTS', 'maybe', 'hideInputs'],
    ['LANGSMITH_HIDE_OUTPUTS', 'maybe', 'hideOutputs'],
    ['RUNSPAN_ALLOW_INSECURE', 'ja', 'allowInsecure'],
    ['RUNSPAN_DURABILITY', 'for-ever', 'durability'],
    ['RUNSPAN_LOG', 'loud', 'log'],
    ['RUNSPAN_WORKSPACE_ID', 'with blanks', 'workspaceId'],
  ])('warns of an invalid %s and prints only its length', async (name, value, setting) => {
    const { url } = await receiver();
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url, [name]: value });
    expect([code, troubles(stdout)]).toEqual([0, [`warn ${setting}`]]);
    const told = `^warn +${setting} +set \\(${value.length} characters?\\), from ${name}: .*[^.]; correct ${name}$`;
    expect(lineOf(stdout, setting)).toMatch(new RegExp(told));
  });

  it('warns of invalid variables without an endpoint, too', async () => {
    const { stdout } = await runDoctor({ RUNSPAN_DURABILITY: 'disk', RUNSPAN_TRACING: 'nope' });
    expect(troubles(stdout)).toEqual(['warn tracing', 'warn durability', 'fail tracing']);
    expect(lineOf(stdout, 'tracing')).toContain('; true is used; ');
  });

  it.each<[string, string, string]>([
    ['RUNSPAN_ENDPOINT', 'nowhere', 'endpoint'],
    ['RUNSPAN_ENDPOINT', 'https://me:sk-secret@traces.invalid', 'endpoint'],
    ['RUNSPAN_API_KEY', 'with blanks', 'apiKey'],
  ])('fails if %s is invalid', async (name, value, setting) => {
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: 'http://127.0.0.1:9', [name]: value });
    expect([code, troubles(stdout)]).toEqual([1, [`warn ${setting}`, 'fail tracing']]);
    expect(stdout).not.toContain(value);
  });

  it('warns of an unknown variable, and not of those of other commands', async () => {
    const { url } = await receiver();
    const { code, stdout } = await runDoctor({
      RUNSPAN_ENDPOINT: url,
      RUNSPAN_PROJCET: 'shop',
      RUNSPAN_AGENT_URL: 'x',
    });
    expect([code, troubles(stdout)]).toEqual([0, ['warn RUNSPAN_PROJCET']]);
  });

  it('fails without an endpoint, and names the variable', async () => {
    const { code, stdout } = await runDoctor({ RUNSPAN_API_KEY: 'canary' });
    expect(code).toBe(1);
    expect(troubles(stdout)).toEqual(['warn settings', 'fail tracing']);
    expect(stdout).toContain('set RUNSPAN_ENDPOINT');
    expect(stdout).not.toContain('.;');
  });

  it('accepts a key that can only write', async () => {
    const server = await ingestServer(({ path }) => ({ status: path === '/runs/query' ? 403 : 202 }), JSON_INFO);
    undo.push(server.close);
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: server.url });
    expect([code, troubles(stdout)]).toEqual([0, ['warn key']]);
  });

  it('fails at a closed port, and stops', async () => {
    const { url, close } = await ingestServer();
    await close();
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url });
    expect([code, troubles(stdout)]).toEqual([1, ['fail tcp']]);
    expect(lineOf(stdout, 'tcp')).toContain('ECONNREFUSED');
  });

  it('fails if the port of an https address responds with plain HTTP', async () => {
    const { url } = await receiver();
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url.replace('http:', 'https:') });
    expect([code, troubles(stdout)]).toEqual([1, ['fail tls']]);
  });

  it('fails at an unknown host', async () => {
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: 'http://nowhere.invalid' });
    expect([code, troubles(stdout)]).toEqual([1, ['fail dns']]);
  });

  it('fails at a wrong path', async () => {
    const { url } = await receiver();
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: `${url}/nothing/here` });
    expect([code, troubles(stdout)]).toEqual([1, ['warn info', 'fail test run']]);
    expect(lineOf(stdout, 'endpoint')).toContain('/nothing/here');
    expect(lineOf(stdout, 'test run')).toMatch(
      /not accepted: status 404; check the path in the endpoint; .* below it$/,
    );
  });

  it('fails if any response of the service is a web page or other text', async () => {
    const page: Answer = {
      status: 200,
      body: '<!doctype html><p>Welcome</p>',
      headers: { 'content-type': 'text/html' },
    };
    const findingsFor = async (reply: (path: string) => Reply, info: Answer) => {
      const server = await ingestServer(({ path }) => reply(path), info);
      undo.push(server.close);
      const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: server.url });
      return [code, troubles(stdout)];
    };
    const accepted: Answer = { status: 202, body: '{}', headers: { 'content-type': 'application/json' } };
    const noQuery: Answer = { status: 404 };
    const plain: Answer = { ...page, headers: { 'content-type': 'text/plain' } };
    const answering = (query: Answer, ingestion: Answer) => (path: string) =>
      path === '/runs/query' ? query : ingestion;
    expect(await findingsFor(() => page, page)).toEqual([1, ['fail info']]);
    expect(await findingsFor(() => page, { status: 200, body: 'It works' })).toEqual([1, ['fail info']]);
    expect(await findingsFor(answering(page, accepted), JSON_INFO)).toEqual([1, ['fail key', 'warn read back']]);
    expect(await findingsFor(answering(noQuery, page), JSON_INFO)).toEqual([1, ['fail test run']]);
    expect(await findingsFor(answering(noQuery, plain), { status: 404 })).toEqual([1, ['warn info', 'fail test run']]);
    expect(await findingsFor(answering(noQuery, accepted), JSON_INFO)).toEqual([0, []]);
  });

  it('gives advice for the status of GET /info and of the test run', async () => {
    const { url } = await service(() => ({ status: 413 }), { status: 413 });
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url });
    expect([code, troubles(stdout)]).toEqual([1, ['warn info', 'fail test run']]);
    const advice = '; raise the limit for the size of a request in the service, or in a proxy in front of it';
    expect(lineOf(stdout, 'info')).toMatch(new RegExp(`status 413 in \\d+ ms${advice}$`));
    expect(lineOf(stdout, 'test run')).toMatch(new RegExp(`not accepted: status 413${advice}$`));
  });

  it.each<[number, string]>([
    [3_600_000, 'behind'],
    [-3_600_000, 'ahead of'],
  ])('warns if the clock of the service is %i ms away', async (awayMs, told) => {
    const date = new Date(Date.now() + awayMs).toUTCString();
    const { url } = await service(() => ({ status: 202 }), { ...JSON_INFO, headers: { date } });
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url });
    expect([code, troubles(stdout)]).toEqual([0, ['warn clock']]);
    expect(lineOf(stdout, 'clock')).toMatch(new RegExp(`(35[5-9]\\d|36[0-4]\\d) s ${told} the service`));
  });

  it('fails at a redirect, and does not follow it', async () => {
    const other = await service(() => ({ status: 202 }));
    const { url } = await service(() => ({ status: 302, headers: { location: other.url } }), {
      status: 302,
      headers: { location: `${other.url}/info` },
    });
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url, RUNSPAN_API_KEY: 'canary-key' });
    expect([code, troubles(stdout), other.received]).toEqual([1, ['fail info'], []]);
  });

  it('skips the query if the service has no query endpoint', async () => {
    const { url } = await service(() => ({ status: 202 }));
    const { code, stdout } = await runDoctor({ RUNSPAN_ENDPOINT: url });
    expect([code, troubles(stdout)]).toEqual([0, []]);
    expect(lineOf(stdout, 'read back')).toContain('skipped: this service has no query endpoint');
  });

  it('prints the variable of each value, and the variables that are not used', async () => {
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
    expect(lineOf(ours.stdout, 'LANGSMITH_PROJECT')).toContain('"theirs", not used: RUNSPAN_PROJECT takes precedence');

    const { LANGSMITH_TRACING: _, ...off } = all;
    const unused = await runDoctor(off);
    expect(lineOf(unused.stdout, 'LANGSMITH_ENDPOINT')).toContain(
      'not used: neither LANGSMITH_TRACING nor LANGCHAIN_TRACING_V2 is true',
    );
    expect(unused.code).toBe(1);
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

  it.each<[string, (dir: string) => void, string]>([
    ['a symbolic link', (dir) => symlinkSync(dirname(dir), dir), 'is a symbolic link'],
    ['a link that leads nowhere', (dir) => symlinkSync(`${dir}-gone`, dir), 'is a symbolic link'],
    ['a file', (dir) => writeFileSync(dir, ''), 'is not a folder'],
  ])('causes a warning if its folder is %s', (_, plant, told) => {
    const { dir } = spoolFolder();
    plant(dir);
    expect(found(dir)).toMatchObject({ level: 'warn', message: expect.stringContaining(told) });
  });

  it.skipIf(process.getuid?.() !== 0)('causes a warning if its folder belongs to another user', () => {
    const { dir } = spoolFolder();
    mkdirSync(dir);
    chownSync(dir, 12_345, 12_345);
    expect(found(dir)).toMatchObject({ level: 'warn', message: expect.stringContaining('belongs to another user') });
  });

  it.skipIf(process.platform !== 'linux')('causes a warning if the folder cannot be created', () => {
    expect(found('/proc/x')).toMatchObject({ level: 'warn' });
  });

  it('causes a warning if the disk is full', () => {
    const { dir } = spoolFolder();
    const writeSync = ((fd: number, bytes: Uint8Array) =>
      systemFs.writeSync(fd, bytes.subarray(1))) as SpoolFs['writeSync'];
    expect(found(dir, { ...systemFs, writeSync })).toMatchObject({ level: 'warn' });
    expect(filesBelow(dir)).toEqual([]);
  });
});

describe('the version of Node', () => {
  it.each([
    ['20.18.9', 'fail'],
    ['20.19.0', 'ok'],
    ['20.20.0', 'ok'],
    ['18.99.0', 'fail'],
    ['22.0.0', 'ok'],
  ])('%s is %s', (version, level) => {
    expect(nodeFinding(version).level).toBe(level);
  });
});

it.each<[number | undefined, RegExp]>([
  [200, /^check the meaning of this status/],
  [302, /^set the endpoint to the target of the redirect$/],
  [400, /a service that accepts runs/],
  [401, /^copy RUNSPAN_API_KEY again/],
  [402, /^check the payment and the plan/],
  [403, /^copy RUNSPAN_API_KEY again/],
  [404, /^check the path in the endpoint/],
  [408, /try again later$/],
  [413, /size of a request/],
  [418, /^check the meaning of this status/],
  [422, /report this as a defect of runspan$/],
  [429, /rate limit of the service$/],
  [499, /^check the meaning of this status/],
  [500, /try again later$/],
  [501, /^check the path in the endpoint/],
  [undefined, /try again later$/],
])('status %s has suitable advice', (status, expected) => {
  expect(adviceFor(status, true)).toMatch(expected);
  if (status === 401 || status === 403) expect(adviceFor(status, false)).toBe('set RUNSPAN_API_KEY');
});
