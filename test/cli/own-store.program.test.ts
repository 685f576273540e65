import { once } from 'node:events';
import { chownSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { Registration } from '#src/cli/dev/registration.ts';
import { findSource } from '#src/cli/query/run-source.ts';
import { receiverWith } from '#src/receiver/receiver.ts';
import { DEFAULT_SCOPE, MemoryStore } from '#src/receiver.ts';
import { serve } from '../http/server.ts';
import { simple } from '../receiver/conformance/support.ts';
import { openLocalStore } from '../receiver/local-store.ts';
import { listen } from '../support/listen.ts';
import { moduleText, runRunspan, startRunspan } from '../support/program.ts';
import { testFolder } from '../support/test-folder.ts';

/** A test starts several programs, which need more time on a loaded machine. */
const LIFE_MAX_MS = 60_000;
vi.setConfig({ testTimeout: LIFE_MAX_MS });

const KEY = 'the-key-of-the-team-0001';
const REMOVE = ['delete', 'project', 'shop', '--yes'];

/** Stores two traces in a file. One of them has not changed for longer than a receiver keeps traces by default. */
async function writeStore(file: string): Promise<void> {
  const store = await openLocalStore(file);
  await store.apply(DEFAULT_SCOPE, [simple(1, { name: 'of the file' })]);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 40 * 24 * 3_600_000 });
  await store.apply(DEFAULT_SCOPE, [simple(2, { name: 'old', session_name: 'archive' })]);
  vi.useRealTimers();
  await store.close();
}

/** Starts a receiver that requires the key and is registered beside the file. It contains another trace. */
async function registerReceiver(file: string): Promise<string> {
  const store = new MemoryStore();
  await store.apply(DEFAULT_SCOPE, [simple(3, { name: 'of the receiver' })]);
  const registration = new Registration(file);
  const receiver = await receiverWith({ store, apiKey: KEY }, { routes: [registration.route] });
  onTestFinished(() => receiver.close());
  registration.write(receiver.url);
  return receiver.url;
}

async function namesOf(args: string[], env: Record<string, string>): Promise<string[]> {
  const { stdout, stderr } = await runRunspan(['traces', '--json', ...args], env);
  expect(stderr).toBe('');
  const lines = stdout.split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line).name).sort();
}

it.each([
  ['the default', '.runspan/runs.db', {}, []],
  ['RUNSPAN_STORE', 'own.db', { RUNSPAN_STORE: '~/own.db' }, []],
  ['--store', 'own.db', { RUNSPAN_STORE: '~/missing.db' }, ['--store', '~/own.db']],
])('with a store file named by %s, commands use its proved receiver, then the file', async (_, path, more, args) => {
  const HOME = testFolder();
  const file = join(HOME, path);
  const env = { HOME, RUNSPAN_STORE: '', RUNSPAN_RECEIVER_KEY: KEY, ...more };
  await writeStore(file);
  const url = await registerReceiver(file);
  expect(await namesOf(args, env)).toEqual(['of the receiver']);
  expect(await runRunspan([...REMOVE, ...args], env)).toMatchObject({
    stdout: `deleted 1 run of 1 trace from ${url}\n`,
    stderr: `runspan: the receiver at ${url} with 1 project\n`,
  });
  rmSync(`${file}-receiver`);
  expect(await namesOf(args, env)).toEqual(['of the file', 'old']);
});

// Only root can give a file away.
it.each(['an ended receiver', ...(process.getuid?.() === 0 ? ['another user'] : [])])(
  'the registration of %s is not believed, and the file is used',
  async (whose) => {
    const file = join(testFolder(), 'runs.db');
    await writeStore(file);
    const { url, seen } = await serve((message, response) => response.end(message.url));
    if (whose === 'an ended receiver') new Registration(file).write(url);
    else await registerReceiver(file).then(() => chownSync(`${file}-receiver`, 12_345, -1));
    const env = { RUNSPAN_STORE: file, RUNSPAN_RECEIVER_KEY: KEY };
    expect(await runRunspan(REMOVE, env)).toMatchObject({
      stdout: `deleted 1 run of 1 trace from ${file}\n`,
      stderr: `runspan: the store ${file} with 2 projects\n`,
    });
    expect(await namesOf([], env)).toEqual(['old']);
    expect(JSON.stringify(seen)).not.toContain(KEY);
    rmSync(file);
    const message = `no running receiver is registered beside ${file}, and the file does not exist; start runspan dev, or`;
    expect((await runRunspan(REMOVE, env)).stderr).toContain(message);
    expect(existsSync(file)).toBe(false);
  },
);

it('a command asks no program that listens on the port of its receiver after the receiver has ended', async () => {
  const file = join(testFolder(), 'runs.db');
  const [store, registration, seen] = [new MemoryStore(), new Registration(file), [] as (string | undefined)[]];
  const receiver = await receiverWith({ store }, { routes: [registration.route] });
  registration.write(receiver.url);
  const source = await findSource({ store: file });
  if (typeof source === 'string') throw new Error('expected the receiver');
  expect(await source.projects()).toEqual({ items: [] });
  await receiver.close();
  const other = createServer(({ url }, response) => {
    seen.push(url);
    response.end('{"items":[]}');
  });
  onTestFinished(() => void other.close());
  await once(other.listen(Number(new URL(receiver.url).port), '127.0.0.1'), 'listening');
  await expect(source.projects()).rejects.toThrow('the receiver of the store has ended');
  expect(seen.filter((url) => url !== '/info')).toEqual([]);
});

it('commands in four homes read from and delete from the receiver of their home, whoever listens on port 4777', async () => {
  const asked: unknown[] = [];
  const stranger = createServer(({ headers }, response) => {
    asked.push(headers);
    response.writeHead(404).end('<h1>Not found</h1>');
  });
  // Another program may use the port already, which is as good.
  await listen(stranger, 4777).catch(() => {});
  onTestFinished(() => void stranger.close());
  const code = moduleText(`
    import { traceable, flush } from '${new URL('../../dist/index.js', import.meta.url).href}';
    traceable(() => {}, { name: process.env.HOME })();
    await flush();
    console.log('sent');
    process.stdin.resume();`);
  const homes = Array.from({ length: 4 }, () => {
    const env = { HOME: testFolder(), RUNSPAN_STORE: '', RUNSPAN_PROJECT: 'shop', RUNSPAN_RECEIVER_KEY: KEY };
    return { env, ...startRunspan(['dev', '--quiet', '--', process.execPath, ...code], env, undefined, LIFE_MAX_MS) };
  });
  await Promise.all(homes.map(({ printed }) => printed(/sent/)));
  const names = (from: typeof homes) => Promise.all(from.map(({ env }) => namesOf([], env)));
  expect(await names(homes)).toEqual(homes.map(({ env }) => [env.HOME]));
  expect(await runRunspan(REMOVE, homes[0]?.env)).toMatchObject({ code: 0 });
  expect(await names(homes.slice(0, 2))).toEqual([[], [homes[1]?.env.HOME]]);
  for (const { child } of homes) child.stdin?.end();
  await Promise.all(homes.map(({ ended }) => ended));
  expect(JSON.stringify(asked)).not.toContain(KEY);
});

it('runspan delete counts the runs of a file that another process has open, but does not change the file', async () => {
  const file = join(testFolder(), 'runs.db');
  await writeStore(file);
  const { child, printed } = startRunspan(['dev', '--port', '0', '--max-age', '365d', '--store', file]);
  onTestFinished(() => void child.kill('SIGKILL'));
  const [, url = ''] = await printed(/runspan listens on (\S+)\n/);
  writeFileSync(`${file}-receiver`, 'damaged');
  const [counted, refused] = await Promise.all(
    [[], ['--yes']].map((yes) => runRunspan([...REMOVE.slice(0, -1), ...yes, '--store', file])),
  );
  const head = `runspan: the store ${file} with 2 projects\nrunspan: `;
  expect(counted?.stderr).toBe(`${head}would delete 1 run of 1 trace; pass --yes to confirm\n`);
  expect(refused?.stderr).toBe(`${head}process ${child.pid} has ${file} open; delete through it with --url ${url}\n`);
  expect(await namesOf(['--store', file], {})).toEqual(['of the file', 'old']);
});

it.each([
  ['traces', 'only its receiver can read a store in memory; pass --url'],
  ['store reprice', 'expected a store file: RUNSPAN_STORE is `memory`'],
  ['store copy :memory: copy.db', 'expected a store file or a ClickHouse URL, got :memory:'],
  ['dev --port 0 -- true', ''],
])('%s takes :memory: for a store in memory, and creates no file of this name', async (line, message) => {
  const folder = testFolder();
  const { stderr } = await startRunspan(line.split(' '), { RUNSPAN_STORE: ':memory:' }, folder).ended;
  expect(stderr).toContain(message);
  expect(readdirSync(folder)).toEqual([]);
});
