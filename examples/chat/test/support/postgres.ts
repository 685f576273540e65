import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Client } from 'pg';

/** A PostgreSQL server in a folder of its own. */
export interface PostgresServer {
  readonly url: string;
  start(): Promise<void>;
  /** Ends the server like a crash. */
  kill(): Promise<void>;
  /** Ends the server and deletes its folder. */
  close(): Promise<void>;
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Starts PostgreSQL with an empty database, without fsync. */
export async function startPostgres(): Promise<PostgresServer> {
  const account = unprivileged();
  const folder = folderFor(account);
  const options = { cwd: folder, ...account };
  const data = join(folder, 'data');
  const init = ['-D', data, '-U', 'chat', '--auth=trust', '--no-sync', '-E', 'UTF8', '--locale=C'];
  execFileSync(found('initdb'), init, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
  const port = await freePort();
  const settings = ['listen_addresses=127.0.0.1', 'fsync=off', 'full_page_writes=off'];
  const args = ['-D', data, '-p', `${port}`, '-k', folder, ...settings.flatMap((setting) => ['-c', setting])];
  const start = (): Promise<ChildProcess> =>
    ready(spawn(found('postgres'), args, { ...options, stdio: 'pipe' }), 'ready to accept connections');
  return serverOf(`postgres://chat:secret-of-chat@127.0.0.1:${port}/postgres`, folder, start, 'SIGQUIT');
}

/** Creates a database, and returns its address. */
export async function emptyDatabase({ url }: PostgresServer): Promise<string> {
  const name = `chat_${randomUUID().replaceAll('-', '')}`;
  const client = new Client(url);
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  return url.replace(/postgres$/, name);
}

async function serverOf(
  url: string,
  folder: string,
  start: () => Promise<ChildProcess>,
  crash: NodeJS.Signals,
): Promise<PostgresServer> {
  let child = await start();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };
  const atExit = (): void => void child.kill(crash);
  process.on('exit', atExit);
  return {
    url,
    start: async () => {
      child = await start();
    },
    kill: () => end(crash),
    close: async () => {
      await end(crash);
      process.off('exit', atExit);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function ready(child: ChildProcess, sign: string): Promise<ChildProcess> {
  let said = '';
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        said = `${said}${text}`.slice(-10_000);
        if (said.includes(sign)) resolve();
      });
    }
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`${child.spawnfile} has ended: ${said}`)));
  });
  return child;
}

/** Debian does not add the programs of PostgreSQL to PATH. */
function found(program: string): string {
  const versions = '/usr/lib/postgresql';
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    ...(existsSync(versions) ? readdirSync(versions).sort().reverse() : []).map((name) => join(versions, name, 'bin')),
  ];
  const path = folders.map((folder) => join(folder, program)).find((file) => existsSync(file));
  if (path !== undefined) return path;
  throw new Error(`${program} is not installed, and the tests need it: apt-get install postgresql`);
}

/** PostgreSQL does not run as root. */
function unprivileged(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const account = accounts.find(([name]) => name === 'postgres') ?? accounts.find(([name]) => name === 'nobody');
  return { uid: Number(account?.[2] ?? 65_534), gid: Number(account?.[3] ?? 65_534) };
}

function folderFor(account: Account | undefined): string {
  const folder = mkdtempSync(join(tmpdir(), 'chat-store-'));
  if (account !== undefined) chownSync(folder, account.uid, account.gid);
  return folder;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
