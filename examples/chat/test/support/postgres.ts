import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Client } from 'pg';

/** A PostgreSQL server with a temporary folder and without fsync. */
export class PostgresServer {
  readonly url: string;
  readonly #folder: string;
  readonly #spawn: () => ChildProcess;
  #child: ChildProcess | undefined;

  private constructor(url: string, folder: string, spawnServer: () => ChildProcess) {
    this.url = url;
    this.#folder = folder;
    this.#spawn = spawnServer;
    process.on('exit', this.#crash);
  }

  static async start(): Promise<PostgresServer> {
    const account = unprivileged();
    const folder = mkdtempSync(join(tmpdir(), 'chat-store-'));
    if (account !== undefined) chownSync(folder, account.uid, account.gid);
    const options = { cwd: folder, ...account };
    const data = join(folder, 'data');
    const init = ['-D', data, '-U', 'chat', '--auth=trust', '--no-sync', '-E', 'UTF8', '--locale=C'];
    execFileSync(pathOf('initdb'), init, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
    const port = await freePort();
    const settings = ['listen_addresses=127.0.0.1', 'fsync=off', 'full_page_writes=off'];
    const args = ['-D', data, '-p', `${port}`, '-k', folder, ...settings.flatMap((setting) => ['-c', setting])];
    const url = `postgres://chat:secret-of-chat@127.0.0.1:${port}/postgres`;
    const server = new PostgresServer(url, folder, () =>
      spawn(pathOf('postgres'), args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] }),
    );
    await server.start();
    return server;
  }

  /** Starts the server again after `kill`. */
  async start(): Promise<void> {
    const child = this.#spawn();
    this.#child = child;
    let output = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (text.includes('ready to accept connections')) resolve();
      });
      child.once('error', reject);
      child.once('exit', () => reject(new Error(`PostgreSQL ended: ${output}`)));
    });
  }

  /** Creates an empty database and returns its URL. */
  async emptyDatabase(): Promise<string> {
    const name = `chat_${randomUUID().replaceAll('-', '')}`;
    const client = new Client(this.url);
    await client.connect();
    await client.query(`CREATE DATABASE ${name}`);
    await client.end();
    return this.url.replace(/postgres$/, name);
  }

  /** Kills the server, as in a crash. */
  async kill(): Promise<void> {
    const ended = this.#child && once(this.#child, 'exit');
    this.#crash();
    await ended;
    this.#child = undefined;
  }

  /** Stops the server and deletes its folder. */
  async close(): Promise<void> {
    await this.kill();
    process.off('exit', this.#crash);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  readonly #crash = (): void => void this.#child?.kill('SIGQUIT');
}

/** Returns the path of a PostgreSQL program. On Debian, PATH does not contain these programs. */
function pathOf(program: string): string {
  const versions = '/usr/lib/postgresql';
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    ...(existsSync(versions) ? readdirSync(versions).sort().reverse() : []).map((name) => join(versions, name, 'bin')),
  ];
  const path = folders.map((folder) => join(folder, program)).find((file) => existsSync(file));
  if (path !== undefined) return path;
  throw new Error(`${program} is not installed, and the tests need it: apt-get install postgresql`);
}

/** Returns an unprivileged user if the tests run as root, because PostgreSQL refuses to run as root. */
function unprivileged(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const account = ['postgres', 'nobody'].map((name) => accounts.find(([own]) => own === name)).find(Boolean);
  return { uid: Number(account?.[2] ?? 65_534), gid: Number(account?.[3] ?? 65_534) };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
