import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { unpackTar } from 'modern-tar/fs';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { manifest } from '../package/repository.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { type Ended, runNode } from '../support/program.ts';

const chat = join(root, 'examples/chat');
const tarball = `runspan-${manifest.version}.tgz`;
const copyTo = (...folders: string[]): Promise<Ended> => runNode(['scripts/copy-chat.mjs', ...folders]);

describe('a copy of the chat', () => {
  let copy: string;
  let told: Ended;
  beforeAll(async () => {
    const folder = temporaryFolder();
    copy = folder.path;
    told = await copyTo(copy);
    return folder.remove;
  });

  it('contains runspan as a tarball, and prints the next steps', () => {
    const next = `cd ${JSON.stringify(copy)}\n  npm install\n  npm start\n`;
    expect(told).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(next) });
    const [own, lock, readme] = ['package.json', 'package-lock.json', 'README.md'].map((name) =>
      readFileSync(join(copy, name), 'utf8'),
    ) as [string, string, string];
    expect(JSON.parse(own).dependencies.runspan).toBe(`file:${tarball}`);
    expect(JSON.parse(lock).packages[''].dependencies.runspan).toBe(`file:${tarball}`);
    expect(`${own}${lock}${readme}`).not.toContain('../..');
    expect(readme).toContain('(docs/chat.md)');
    const names = readdirSync(copy);
    expect(names).toContain(tarball);
    expect(names.filter((name) => ['build', 'node_modules'].includes(name))).toEqual([]);
  });

  it('builds once, type-checks, and answers a question with the packages of its package file', async () => {
    await install(copy);
    const run = async (program: string, ...args: string[]): Promise<void> =>
      expect(await runNode([join('node_modules', program), ...args], {}, copy)).toMatchObject({ code: 0, stderr: '' });
    const { scripts } = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8'));
    expect(scripts.build).toBe('node build.mjs');
    await run('../build.mjs');
    await Promise.all([run('typescript/bin/tsc', '-p', 'test'), run('typescript/bin/tsc', '-p', 'page')]);
    // A build without a change keeps the files of the build before.
    const built = statSync(join(copy, 'build/server/main.js')).mtimeMs;
    await run('../build.mjs');
    expect(statSync(join(copy, 'build/server/main.js')).mtimeMs).toBe(built);
    // The test that starts the program and asks a question.
    await run('vitest/vitest.mjs', 'run', 'main', '-t', 'answers from the documentation');
  });

  it('`npm run dev` serves the page with the server on the given port, and ends with its programs', async () => {
    const port = await freePort();
    const args = ['dev.mjs', '--port', `${port}`, '--trace-port', '0'];
    // In CI, Vite colours its output even if it is read by a program.
    const env = { ...process.env, NO_COLOR: '1' };
    const dev = spawn(process.execPath, args, { cwd: copy, env, stdio: ['ignore', 'pipe', 'inherit'] });
    // The pipe is closed when the last of the programs has ended.
    const ended = once(dev, 'close');
    onTestFinished(async () => {
      dev.kill();
      dev.stdout.resume();
      await ended;
    });
    let page: string | undefined;
    let isServing = false;
    for await (const line of createInterface({ input: dev.stdout })) {
      page ??= /http:\/\/127\.0\.0\.1:\d+\/$/.exec(line)?.[0];
      isServing ||= line.startsWith('chat:');
      if (isServing && page !== undefined) break;
    }
    // The server restarts when the compiler has written its files again.
    for (const url of [`http://127.0.0.1:${port}/`, page])
      await expect.poll(async () => (await fetch(`${url}api/info`)).status).toBe(200);
    dev.kill('SIGTERM');
    dev.stdout.resume();
    await ended;
    for (const url of [`http://127.0.0.1:${port}`, page ?? '']) await expect.poll(() => refuses(url)).toBe(true);
  });

  it('does not change a folder that is not empty', async () => {
    const folder = emptyFolder();
    const file = join(folder, 'mine.txt');
    writeFileSync(file, 'mine');
    for (const there of [folder, file])
      expect(await copyTo(there)).toMatchObject({
        code: 1,
        stdout: '',
        stderr: `chat copy: ${there} already exists and is not empty. Choose another folder.\n`,
      });
    expect(readdirSync(folder)).toEqual(['mine.txt']);
    expect(readFileSync(file, 'utf8')).toBe('mine');
  });

  it('needs one folder', async () => {
    const folder = emptyFolder();
    for (const names of [[], [''], [folder, folder]])
      expect(await copyTo(...names)).toMatchObject({ code: 2, stderr: 'usage: npm run chat -- copy FOLDER\n' });
    expect(readdirSync(folder)).toEqual([]);
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

function refuses(url: string): Promise<boolean> {
  return fetch(url).then(
    () => false,
    () => true,
  );
}

function emptyFolder(): string {
  const { path, remove } = temporaryFolder();
  onTestFinished(remove);
  return path;
}

/** Replaces `npm install` without a registry: links the packages of the application, and unpacks runspan. */
async function install(copy: string): Promise<void> {
  const packages = join(copy, 'node_modules');
  const runspan = join(packages, 'runspan');
  mkdirSync(runspan, { recursive: true });
  const others = readdirSync(join(chat, 'node_modules')).filter((name) => name !== 'runspan' && !name.startsWith('.'));
  for (const name of others) symlinkSync(join(chat, 'node_modules', name), join(packages, name));
  const unpack = unpackTar(runspan, { strip: 1 });
  await pipeline(createReadStream(join(copy, tarball)), createGunzip(), unpack);
  symlinkSync(join(root, 'node_modules'), join(runspan, 'node_modules'));
}
