import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { addsUp } from '../support/adds-up.ts';
import { temporaryFolder } from '../support/folders.ts';
import { ingestServer } from '../support/ingest-server.ts';
import { OUTLINES, outlineOf, RESULTS } from './expected.ts';
import { startServers } from './servers.ts';

const folder = fileURLToPath(new URL('.', import.meta.url));
const packages = `${folder}node_modules/`;

interface Runtime {
  readonly name: string;
  readonly file: string;
  readonly args?: readonly string[];
  readonly registerModule: string;
  /** Further arguments with which programs may use files. */
  readonly filePermissions?: readonly string[];
}

const RUNTIMES: readonly Runtime[] = [
  { name: 'Bun', file: `${packages}@oven/bun-linux-x64/bin/bun`, registerModule: 'runspan/register' },
  {
    name: 'Deno',
    file: `${packages}@deno/linux-x64-glibc/deno`,
    // With `runspan` in the dependencies of `package.json`, this is `npm:runspan/register`.
    registerModule: './node_modules/runspan/dist/register.js',
    args: ['run', '--allow-net', '--allow-env', '--no-lock'],
    filePermissions: ['--allow-read', '--allow-write', '--allow-sys'],
  },
];

describe.each(RUNTIMES)('on $name', ({ file, registerModule, args = [], filePermissions = [] }) => {
  const run = async (program: string, env: Record<string, string>, options: readonly string[] = []) => {
    const command = [...args, ...options, `programs/${program}`];
    const child = spawn(file, command, { cwd: folder, env, timeout: 20_000 });
    const closed = new Promise<number | null>((resolve) => child.on('close', resolve));
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
    return { lines: stdout.trim().split('\n'), stderr, code };
  };

  it('delivers functions, streams and model calls when the program ends, and keeps its exit code', async () => {
    const { receiver, modelUrl } = await startServers();

    const { lines, stderr, code } = await run('process.mjs', { RUNSPAN_ENDPOINT: receiver.url, MODEL_URL: modelUrl });

    const ledger = JSON.parse(lines.pop() ?? '');
    expect(stderr).toBe('');
    expect(lines).toEqual(Object.entries(RESULTS).map(([name, result]) => `${name}: ${result}`));
    expect(code).toBe(3);
    const outline = Object.values(OUTLINES).flat();
    expect(outlineOf(await receiver.runs())).toEqual(outline);
    expect(ledger).toMatchObject({ sent: outline.length, dropped: 0 });
    expect(addsUp(ledger)).toBe(true);
  });

  it.each([
    ['is preloaded', ['--preload', registerModule], 'unwrapped.mjs'],
    ['is imported', [], 'register.mjs'],
  ])('records an unwrapped client if runspan/register %s', async (_, options, program) => {
    const { receiver, modelUrl } = await startServers();

    const env = { RUNSPAN_ENDPOINT: receiver.url, MODEL_URL: modelUrl };
    const { lines, stderr, code } = await run(program, env, options);

    const ledger = JSON.parse(lines.pop() ?? '');
    expect(stderr).toBe('');
    expect(lines).toEqual([RESULTS.openai]);
    expect(code).toBe(3);
    expect(outlineOf(await receiver.runs())).toEqual(OUTLINES.openai);
    expect(ledger).toMatchObject({ created: 2, sent: 2, dropped: 0 });
    expect(addsUp(ledger)).toBe(true);
  });

  it('keeps a run on disk until a later process delivers it', async () => {
    const spool = temporaryFolder();
    onTestFinished(spool.remove);
    const down = await ingestServer();
    await down.close();
    const env = { RUNSPAN_ENDPOINT: down.url, RUNSPAN_DURABILITY: 'write-ahead', RUNSPAN_SPOOL_DIR: spool.path };
    expect((await run('failing.mjs', env, filePermissions)).code).toBe(3);

    const server = await ingestServer(undefined, undefined, Number(new URL(down.url).port));
    onTestFinished(server.close);
    expect((await run('failing.mjs', { ...env, SENT: '2' }, filePermissions)).code).toBe(3);
    expect(String(server.received.map(({ body }) => body)).match(/"outputs":"answer"/g)).toHaveLength(2);
  });

  it('logs the cause of a failed delivery, and keeps the exit code', async () => {
    const server = await ingestServer();
    await server.close();

    const { stderr, code } = await run('failing.mjs', { RUNSPAN_ENDPOINT: server.url });

    expect(stderr).toMatch(/^runspan: delivery to .* failed: no program listens on this host and port/);
    expect(stderr).toContain('undelivered runs (1)');
    expect(code).toBe(3);
  });
});
