import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { codeOf, type SpoolFs } from './spool-fs.ts';

/** Where a destination's records go, and under which key of which workspace. */
export interface Destination {
  readonly endpoint: URL;
  readonly workspaceId: string | undefined;
  readonly apiKey: string | undefined;
}

/**
 * Every folder of the spool:
 *
 *     <spool>/v1/<destination>/<owner>/owner.json
 *                             │       /000000000001-<token of the owner that wrote it>.seg
 *                             /bad/…
 */
export const FORMAT_FOLDER = 'v1';
export const BAD_FOLDER = 'bad';

/**
 * The folder's name of a destination: a hash of the endpoint's address, and of the workspace.
 * Where no workspace is named, the key alone says which it is, and a fingerprint of it stands there: what was recorded
 * for one tenant never goes out under the key of another.
 */
export function destinationHash({ endpoint, workspaceId, apiKey }: Destination): string {
  const workspace =
    workspaceId !== undefined ? `workspace ${workspaceId}` : apiKey !== undefined ? `key ${sha256(apiKey)}` : 'none';
  return sha256(`${addressOf(endpoint)}\n${workspace}`).slice(0, 32);
}

/** An endpoint without its user, query and last slashes. */
export function addressOf(endpoint: URL): string {
  return endpoint.origin + endpoint.pathname.replace(/(?<!\/)\/+$/, '');
}

/** Whether the name is that of the folder of a destination. */
export function isDestination(name: string): boolean {
  return /^[0-9a-f]{32}$/.test(name);
}

/** Where the spool is unless somebody says otherwise: in the home of the user, or among temporary files where there is none. */
export function defaultSpoolDir(): string {
  try {
    const home = homedir();
    if (statSync(home).isDirectory()) return join(home, '.runspan', 'spool');
  } catch {
    // A user without a name has no home, and that of an account for services often does not exist.
  }
  return join(tmpdir(), 'runspan-spool');
}

/** A folder that somebody else could have laid out for us; its message is for the log. */
export class UnsafeFolder extends Error {}

/**
 * Makes the folders below `spoolDir` where they are missing, for this user alone, each checked before something is made in
 * it. Throws an UnsafeFolder, or what the file system throws.
 */
export function makePrivateFolders(fs: SpoolFs, spoolDir: string, names: readonly string[]): void {
  let path = resolve(spoolDir);
  makeFolder(fs, path, true);
  checkPrivate(fs, path);
  for (const name of names) {
    path = join(path, name);
    makeFolder(fs, path, false);
    checkPrivate(fs, path);
  }
}

/** Node's own way to make parents never returns where the system has no folders, as below `/proc`. */
function makeFolder(fs: SpoolFs, path: string, makesParents: boolean): void {
  try {
    fs.mkdirSync(path, { mode: 0o700 });
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || !makesParents || dirname(path) === path) throw thrown;
    makeFolder(fs, dirname(path), true);
    makeFolder(fs, path, false);
  }
}

/** Checks folders that are there, and makes none. */
export function checkPrivateFolders(fs: SpoolFs, spoolDir: string, names: readonly string[]): void {
  let path = resolve(spoolDir);
  checkPrivate(fs, path);
  for (const name of names) {
    path = join(path, name);
    checkPrivate(fs, path);
  }
}

/** Throws unless it is a real folder of this user. */
export function checkPrivate(fs: SpoolFs, path: string): void {
  const facts = fs.lstatSync(path);
  if (facts.isSymbolicLink()) throw new UnsafeFolder(`${path} is a symbolic link`);
  if (!facts.isDirectory()) throw new UnsafeFolder(`${path} is no folder`);
  const uid = process.getuid?.();
  if (uid !== undefined && facts.uid !== uid) throw new UnsafeFolder(`${path} belongs to another user`);
}

/** Earlier versions counted in `.a1` to `.a5` how many processes had died after they read the segment. */
const SEGMENT_FILE = /^(\d{12})-[0-9a-f]{16}(?:\.a[1-9])?\.seg$/;

/** The position of a segment among those of its writer, from its file name; undefined for a file of another kind. */
export function sequenceOf(file: string): number | undefined {
  const sequence = SEGMENT_FILE.exec(file)?.[1];
  return sequence === undefined ? undefined : Number(sequence);
}

/** The file name of a segment; the token is that of the owner that writes it, and stays when another owner claims the file. */
export function segmentFile(sequence: number, token: string): string {
  return `${String(sequence).padStart(12, '0')}-${token}.seg`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
