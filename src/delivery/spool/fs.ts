import type { Stats } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ignoreErrors } from '../../base/guard.ts';
import { nodeModule } from '../../platform/node.ts';
import { withoutTracing } from '../../platform/suppress-tracing.ts';

/** File-system functions. Tests replace these functions to simulate errors. */
export type SpoolFs = typeof import('node:fs');

let loaded: SpoolFs | undefined;

/**
 * Node's functions. Other tracers do not record the calls, which are often made in an application's call. `node:fs` is
 * loaded for the first call, because loading it activates OpenTelemetry's instrumentation of the module.
 */
export const systemFs: SpoolFs = new Proxy({} as SpoolFs, {
  get(_, name) {
    loaded ??= nodeModule('node:fs');
    const member: unknown = Reflect.get(loaded, name);
    if (typeof member !== 'function') return member;
    return (...args: unknown[]) => withoutTracing(() => Reflect.apply(member, loaded, args));
  },
});

export function createFile(fs: SpoolFs, path: string): number {
  const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_WRONLY } = systemFs.constants;
  return fs.openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
}

/** Opens a file to append to it. */
export function reopenFile(fs: SpoolFs, path: string): number {
  const { O_APPEND, O_NOFOLLOW = 0, O_WRONLY } = systemFs.constants;
  return fs.openSync(path, O_WRONLY | O_APPEND | O_NOFOLLOW);
}

/** Appends `bytes` to a file of `size` bytes. If the write fails, removes the written part and throws. */
export function appendWhole(fs: SpoolFs, fd: number, size: number, bytes: Uint8Array): void {
  let written = 0;
  try {
    written = fs.writeSync(fd, bytes);
  } finally {
    if (written < bytes.byteLength) ignoreErrors(() => fs.ftruncateSync(fd, size));
  }
  // If the disk is full, a write may succeed only partly without an error.
  if (written < bytes.byteLength) throw Object.assign(new Error('short write'), { code: 'ENOSPC' });
}

export function writeNewFile(fs: SpoolFs, path: string, bytes: Uint8Array): void {
  const fd = createFile(fs, path);
  try {
    appendWhole(fs, fd, 0, bytes);
  } catch (thrown) {
    ignoreErrors(() => fs.unlinkSync(path));
    throw thrown;
  } finally {
    fs.closeSync(fd);
  }
}

/** Reads a file with its facts. Returns undefined if it is no file, or larger than `bytesMax`. */
export function readWhole(fs: SpoolFs, path: string, bytesMax: number): { bytes: Buffer; facts: Stats } | undefined {
  if (!fs.lstatSync(path).isFile()) return undefined;
  const { O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY } = systemFs.constants;
  // Without `O_NONBLOCK`, opening a pipe that has no writer would block the process.
  const fd = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const facts = fs.fstatSync(fd);
    if (!facts.isFile() || facts.size > bytesMax) return undefined;
    return { bytes: fs.readFileSync(fd), facts };
  } finally {
    fs.closeSync(fd);
  }
}

/** Whether a file no longer exists. Only the error `ENOENT` means that the file was deleted. */
export function isDeleted(fs: SpoolFs, path: string): boolean {
  return ignoreErrors(() => ifExists(() => fs.lstatSync(path)) === undefined) === true;
}

export function removeFile(fs: SpoolFs, path: string): void {
  ifExists(() => fs.unlinkSync(path));
}

export function ifExists<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (thrown) {
    if (errorCodeOf(thrown) === 'ENOENT') return undefined;
    throw thrown;
  }
}

export function errorCodeOf(thrown: unknown): string {
  // In Jest, Node's errors are not instances of the test's `Error`.
  const { code, name, message } = Object(thrown) as Partial<NodeJS.ErrnoException>;
  if (typeof code === 'string') return code;
  // Deno's errors have no code, but the message names the missing permission.
  const [permission] = /--allow-\w+/.exec(String(message)) ?? [];
  return permission === undefined ? (name ?? 'unknown error') : `${name}: ${permission}`;
}

/** Thrown if a folder may be controlled by another user. */
export class UnsafeFolder extends Error {}

/** Creates `spoolDir` and the nested folders in `names`. Checks that each folder is safe. */
export function makeFolders(fs: SpoolFs, spoolDir: string, names: readonly string[]): void {
  for (const path of pathsBelow(spoolDir, names)) {
    makeFolder(fs, path, path === resolve(spoolDir));
    checkFolder(fs, path);
  }
}

export function checkFolders(fs: SpoolFs, spoolDir: string, names: readonly string[]): void {
  for (const path of pathsBelow(spoolDir, names)) checkFolder(fs, path);
}

export function checkFolder(fs: SpoolFs, path: string): void {
  const facts = fs.lstatSync(path);
  if (facts.isSymbolicLink()) throw new UnsafeFolder(`${path} is a symbolic link`);
  if (!facts.isDirectory()) throw new UnsafeFolder(`${path} is not a folder`);
  const uid = process.getuid?.();
  if (uid !== undefined && facts.uid !== uid) throw new UnsafeFolder(`${path} belongs to another user`);
}

/** Returns undefined if the path is relative and the working directory was deleted. */
export function spoolFolder(path: string = defaultSpoolDir()): string | undefined {
  return ignoreErrors(() => resolve(path));
}

export function defaultSpoolDir(): string {
  // Many users in containers and many service accounts have no home folder.
  const { homedir, tmpdir } = nodeModule('node:os');
  const home = ignoreErrors(() => (systemFs.statSync(homedir()).isDirectory() ? homedir() : undefined));
  return home === undefined ? join(tmpdir(), 'runspan-spool') : join(home, '.runspan', 'spool');
}

function pathsBelow(spoolDir: string, names: readonly string[]): string[] {
  const root = resolve(spoolDir);
  return [root, ...names.map((_, index) => join(root, ...names.slice(0, index + 1)))];
}

/** Creates a folder and its parents. With `recursive`, `mkdirSync` never returns if it cannot, as in `/proc`. */
function makeFolder(fs: SpoolFs, path: string, makesParents: boolean): void {
  try {
    fs.mkdirSync(path, { mode: 0o700 });
  } catch (thrown) {
    const code = errorCodeOf(thrown);
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || !makesParents || dirname(path) === path) throw thrown;
    makeFolder(fs, dirname(path), true);
    makeFolder(fs, path, false);
  }
}
