import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfig } from '#src/cli/serve/config.ts';
import { runMain } from '../support/command.ts';
import { runRunspan, type Started, startRunspan } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';

function configFile(config: unknown): string {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  return join(testFolder({ 'runspan.json': text }), 'runspan.json');
}

const acme = { tenants: { acme: { projects: { chat: {} } } } };
const small = { port: 0, store: 'runs.db', ...acme };

const keys = async (config: string, ...args: string[]) => {
  const { code, stdout, stderr } = await runRunspan(['keys', ...args, '--config', config]);
  return { code, stdout: stdout.trim(), stderr };
};

/** Starts a receiver, and waits until it listens. */
async function startServe(config: string): Promise<Started & { url: string }> {
  const started = startRunspan(['serve', '--config', config]);
  const [, url = ''] = await started.printed(/"url":"(http:[^"]+)"/);
  return { ...started, url };
}

const create = async (config: string, ...args: string[]): Promise<string> =>
  (await keys(config, 'create', '--tenant', 'acme', ...args)).stdout;

const run = { id: '0193b3a0-1111-7000-8000-000000000001', name: 'a', run_type: 'llm', inputs: {} };
const post = (url: string, key: string) =>
  fetch(`${url}/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: JSON.stringify({ ...run, start_time: '2026-11-20T07:22:40.000000Z', session_name: 'chat' }),
  });
const read = (url: string, key: string) => fetch(`${url}/query/projects`, { headers: { 'x-api-key': key } });

describe('runspan serve', () => {
  it('accepts keys that are created while it runs, keeps runs across a restart, and exits with 0 on SIGTERM', async () => {
    const config = configFile(small);
    const { url, ...first } = await startServe(config);
    const write = await create(config, '--scope', 'write', '--name', 'web');
    expect(write).toMatch(/^rsk_[0-9a-f]{12}_[\w-]{43}$/);
    const reader = await create(config, '--project', 'chat', '--scope', 'read');
    expect((await post(url, write)).status).toBe(202);
    expect((await post(url, reader)).status).toBe(403);
    expect((await read(url, write)).status).toBe(403);
    expect(await (await read(url, reader)).json()).toMatchObject({ items: [{ name: 'chat', traces: 1 }] });
    const id = reader.slice(4, 16);
    expect(await keys(config, 'revoke', id)).toMatchObject({ code: 0, stdout: `revoked the key ${id}` });
    await expect.poll(async () => (await read(url, reader)).status).toBe(401);
    first.child.kill('SIGTERM');
    const { code, stdout, stderr } = await first.ended;
    expect([code, stderr]).toEqual([0, '']);
    const messages = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(messages.map(({ message }) => message)).toEqual([
      'the receiver is listening',
      'the receiver is stopping',
      'the receiver has stopped',
    ]);
    expect(messages[0]).toMatchObject({ time: expect.any(String), level: 'info', tenants: ['acme'] });

    const list = (await keys(config, 'list')).stdout.split('\n').map((line) => line.split(/ {2,}/));
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(list).toEqual([
      ['id', 'scope', 'tenant', 'project', 'name', 'created', 'last used', 'revoked'],
      [write.slice(4, 16), 'write', 'acme', '-', 'web', time, time, '-'],
      [id, 'read', 'acme', 'chat', '-', time, time, time],
    ]);
    const second = await startServe(config);
    expect((await post(second.url, write)).status).toBe(202);
    second.child.kill('SIGTERM');
    await second.ended;
  });

  it('reads the configuration again when it changes, and keeps the old one if the new one is invalid', async () => {
    const config = configFile(small);
    const other = { ...small, tenants: { ...acme.tenants, bolt: {} } };
    const { child, printed, ended, url } = await startServe(config);
    const key = await create(config, '--scope', 'admin');
    const replace = (content: unknown): void => {
      writeFileSync(`${config}-new`, JSON.stringify(content));
      renameSync(`${config}-new`, config);
    };
    replace({ ...small, tenants: {} });
    const [invalid] = await printed(/.*the previous one stays in use.*/);
    expect(JSON.parse(invalid)).toMatchObject({
      level: 'error',
      problems: [expect.stringContaining('expected `tenants` to be an object with at least one tenant')],
    });
    expect((await read(url, key)).status).toBe(200);
    replace({ ...other, tenants: { bolt: { projects: { chat: { maxAge: '7d' } } } }, maxAge: '7d' });
    const [changed] = await printed(/.*the configuration has changed.*/);
    expect(JSON.parse(changed)).toMatchObject({ level: 'info', effective_after_restart: ['maxAge'] });
    expect((await read(url, key)).status).toBe(401);
    replace(small);
    await expect.poll(async () => (await read(url, key)).status).toBe(200);
    child.kill('SIGTERM');
    const { code, stdout } = await ended;
    expect(code).toBe(0);
    expect(stdout.match(/effective_after_restart/g)).toHaveLength(1);
  });

  it('finishes a pending request after SIGTERM, and accepts no more', async () => {
    const config = configFile(small);
    const { child, printed, ended, url } = await startServe(config);
    const key = await create(config, '--scope', 'write');
    let send = (_: string): void => {};
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        send = (text) => {
          controller.enqueue(new TextEncoder().encode(text));
          if (text.endsWith('}')) controller.close();
        };
      },
    });
    const text = JSON.stringify({ ...run, start_time: '2026-11-20T07:22:40.000000Z', session_name: 'chat' });
    send(text.slice(0, 10));
    const headers = { 'content-type': 'application/json', 'x-api-key': key };
    const pending = fetch(`${url}/runs`, { method: 'POST', headers, body, duplex: 'half' } as RequestInit);
    // The receiver has read the headers of the request when it has received the key for the first time.
    await expect.poll(async () => (await keys(config, 'list')).stdout).not.toMatch(/ -\s+-$/m);
    child.kill('SIGTERM');
    await printed(/the receiver is stopping/);
    await expect
      .poll(() =>
        read(url, key).then(
          () => 'accepted',
          () => 'refused',
        ),
      )
      .toBe('refused');
    send(text.slice(10));
    expect((await pending).status).toBe(202);
    expect((await ended).code).toBe(0);
  });
});

describe('the configuration', () => {
  it('has defaults, and converts times, sizes and paths', () => {
    const path = configFile({
      ...acme,
      store: 'data/runs.db',
      maxAge: '90d',
      maxSize: '2gb',
      publicUrl: 'https://a.example/',
      resource: ['cloud.*'],
      vocabularies: [{ inputs: { 'acme.question': 'question' } }],
    });
    expect(readConfig(path)).toEqual({
      host: '127.0.0.1',
      port: 4_777,
      publicUrl: 'https://a.example',
      store: join(path, '../data/runs.db'),
      maxAge: 90 * 86_400_000,
      maxSize: 2 * 1024 ** 3,
      resource: ['cloud.*'],
      vocabularies: [{ inputs: { 'acme.question': 'question' } }],
      tenants: { acme: { projects: { chat: {} }, limits: {} } },
      proxies: [],
    });
  });

  const proxy = { addresses: ['10.0.0.0/8', '::1'], header: 'X-User', tenant: 'acme' };

  it.each<[unknown, string]>([
    ['{', 'JSON'],
    ['[]', 'expected the file to be an object with the fields host, port, publicUrl, allowedOrigins, store,'],
    [{}, '`tenants` is missing'],
    [{ tenants: {} }, 'expected `tenants` to be an object with at least one tenant, got an object'],
    [{ tenants: [] }, 'expected `tenants` to be an object with a field per tenant, got an array'],
    [
      { tenants: { a: { projects: ['x'] } } },
      'expected `tenants.a.projects` to be an object with a field per project,',
    ],
    [{ tenants: { 'a b': {} } }, 'expected the name `tenants.a b` to be a name of 1 to 64 letters,'],
    [
      { tenants: { a: { retention: 1 } } },
      '`tenants.a.retention` is unknown: `tenants.a` is an object with the fields projects, limits',
    ],
    [
      { tenants: { a: { limits: { runsPerMinute: 0 } } } },
      'expected `tenants.a.limits.runsPerMinute` to be a whole number from 1, got the number 0',
    ],
    [{ ...acme, tenant: {} }, '`tenant` is unknown: the file is an object with the fields host,'],
    [{ ...acme, port: 65_536 }, 'expected `port` to be a whole number from 0 to 65535, got the number 65536'],
    [{ ...acme, maxAge: '30' }, 'expected `maxAge` to be a time, for example 12h or 30d, got "30"'],
    [
      { tenants: { a: { projects: { chat: { maxAge: 5 } } } } },
      'expected `tenants.a.projects.chat.maxAge` to be a time, for example 12h or 30d, got the number 5',
    ],
    [{ ...acme, maxSize: 5 }, 'expected `maxSize` to be a size, for example 500mb or 4gb, got the number 5'],
    [{ ...acme, publicUrl: 'https://a.example/runs' }, 'expected `publicUrl` to be a URL without path, for example'],
    [{ ...acme, prices: { m: { input: 'x' } } }, 'expected `prices` to be an object with prices ('],
    [
      { ...acme, prices: { m: { input: 1, output: 2, cached: 0.1 } } },
      'Expected the price of "m" to have only the fields input, output, cache_read,',
    ],
    [
      { ...acme, prices: { m: { input: 1, output: 2, cache_read: -1 } } },
      'Expected `cache_read` in the price of "m" to be',
    ],
    [
      { ...acme, prices: { m: { input: 1, output: 2, tiers: { flex: { input: 1 } } } } },
      'Expected the price of "m" in the tier "flex" to be an object',
    ],
    [{ ...acme, resource: 'cloud.*' }, 'expected `resource` to be a list of names, got "cloud.*"'],
    [
      { ...acme, vocabularies: [{ inputs: { a: 1 } }] },
      'expected `vocabularies` to be an array of vocabularies (Expected `inputs` to be an object that maps attributes',
    ],
    [
      { ...acme, proxies: [{ ...proxy, addresses: ['10.0.0.0/33'] }] },
      'expected `proxies.0.addresses.0` to be an address or a range,',
    ],
    [
      { ...acme, proxies: [{ ...proxy, addresses: [] }] },
      'expected `proxies.0.addresses` to be an array with at least one address',
    ],
    [
      { ...acme, proxies: [{ ...proxy, scope: 'all' }] },
      'expected `proxies.0.scope` to be one of write, read, admin, metrics, got "all"',
    ],
    [{ ...acme, proxies: [{ ...proxy, tenant: 'bolt' }] }, '`proxies.0.tenant` must be one of acme'],
    [
      { ...acme, proxies: [{ ...proxy, project: 'x' }] },
      '`proxies.0.project` must be in `tenants.acme.projects`: add "x" there',
    ],
  ])('%j is invalid', (config, problem) => {
    const path = configFile(config);
    expect(() => readConfig(path)).toThrow(`${path}: `);
    expect(() => readConfig(path)).toThrow(problem);
  });
});

it.each<[string[], number, string]>([
  [['serve', '--config', 'CONFIG/none.json'], 1, 'no such file: create it, or name another file with --config'],
  [['serve', '--config', 'CONFIG/no-store.json'], 2, 'expected a store: set `store` in the configuration, or --store'],
  [
    ['keys', 'create', '--tenant', 'bolt', '--scope', 'read', '--config', 'CONFIG/runspan.json'],
    2,
    '--tenant must be one of acme',
  ],
  [
    ['keys', 'create', '--tenant', 'acme', '--scope', 'all', '--config', 'CONFIG/runspan.json'],
    2,
    'Allowed choices are write, read, admin, metrics.',
  ],
  [
    ['keys', 'create', '--tenant', 'acme', '--config', 'CONFIG/runspan.json'],
    2,
    "required option '--scope <scope>' not specified",
  ],
  [
    ['keys', 'create', '--tenant', 'acme', '--project', 'p', '--scope', 'metrics', '--store', 'CONFIG/none.db'],
    2,
    'a key with the scope metrics reads figures of all projects: leave out --project',
  ],
  [['keys', 'list', '--config', 'CONFIG/runspan.json'], 1, 'There is no store at '],
  [
    ['serve', '--config', 'CONFIG/runspan.json', '--prices', 'CONFIG/runspan.json'],
    1,
    'Expected the price of "port" to be an object with numbers from 0 as `input` and `output`',
  ],
])('invalid arguments %j', async (args, expected, message) => {
  const folder = join(configFile(small), '..');
  writeFileSync(join(folder, 'no-store.json'), JSON.stringify(acme));
  // The worker thread that opens the store runs only built code.
  const run = args[1] === 'list' ? runRunspan : runMain;
  const { code, stderr } = await run(args.map((word) => word.replace('CONFIG', folder)));
  expect([code, stderr]).toEqual([expected, expect.stringContaining(message)]);
});
