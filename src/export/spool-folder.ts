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
 * Returns the name of a destination's folder: a hash of the endpoint and the workspace. If no workspace is set, the API
 * key identifies it, so a fingerprint of the key is hashed instead. Runs recorded for one tenant are therefore never
 * sent with the key of another tenant.
 */
export function destinationHash({ endpoint, workspaceId, apiKey }: Destination): string {
  const workspace =
    workspaceId !== undefined ? `workspace ${workspaceId}` : apiKey !== undefined ? `key ${sha256(apiKey)}` : 'none';
  return sha256(`${addressOf(endpoint)}\n${workspace}`).slice(0, 32);
}

/** Returns the URL of an endpoint without its user, query and trailing slashes. */
export function addressOf(endpoint: URL): string {
  return endpoint.origin + endpoint.pathname.replace(/(?<!\/)\/+$/, '');
}

/** Whether a folder with this name belongs to a destination. */
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

/**
 * Matches segment file names. In earlier versions, `.a1` to `.a5` counted the processes that died after reading the
 * segment.
 */
const SEGMENT_FILE = /^(\d{12})-[0-9a-f]{16}(?:\.a[1-9])?\.seg$/;

/** Returns the sequence number in the file name of a segment, or undefined if the file is not a segment. */
export function sequenceOf(file: string): number | undefined {
  const sequence = SEGMENT_FILE.exec(file)?.[1];
  return sequence === undefined ? undefined : Number(sequence);
}

/** Returns the file name of a segment. The token identifies the writer, even after another owner claims the file. */
export function segmentFile(sequence: number, token: string): string {
  return `${String(sequence).padStart(12, '0')}-${token}.seg`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
