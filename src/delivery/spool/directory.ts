import { basename, join, resolve } from 'node:path';
import { ignoreErrors } from '../../base/guard.ts';
import { shownAddress } from '../../config/checker.ts';
import { nodeModule } from '../../platform/node.ts';
import {
  checkFolder,
  checkFolders,
  errorCodeOf,
  ifExists,
  makeFolders,
  readWhole,
  removeFile,
  type SpoolFs,
  writeNewFile,
} from './fs.ts';

/**
 * Folder structure of undelivered runs on disk:
 *
 *     <spool>/v1/<destination>/<owner>/owner.json
 *                             │       /000000000001-<token of the owner that wrote the file>.seg
 *                             /bad/…
 */
export const FORMAT_FOLDER = 'v1';
export const BAD_FOLDER = 'bad';
const OWNER_FILE = 'owner.json';

/** Maximum total size of the files in `bad`, in bytes. The oldest files are deleted first. */
export const BAD_BYTES_MAX: number = 10 * 1024 * 1024;

export const HEARTBEAT_MS = 5_000;

/** A process that no longer exists counts as dead after this many milliseconds without a heartbeat. */
const ENDED_SILENCE_MS = 10_000;
/** A process that cannot be looked up counts as dead after this many milliseconds without a heartbeat. */
const UNKNOWN_SILENCE_MS = 60_000;

const OWNER_BYTES_MAX = 4_096;

/** Takes the place of the keys that a function returns. No key contains a line break. */
export const OF_FUNCTION = '\n';

/** The service and tenant that receive the runs. */
export interface Destination {
  readonly endpoint: URL;
  readonly workspaceId: string | undefined;
  /** The API key, or the other headers with credentials. `OF_FUNCTION` if a function returns them. */
  readonly apiKey: string | undefined;
}

export interface ClaimedSegment {
  readonly path: string;
  readonly bytes: number;
  readonly modifiedAtMs: number;
}

/**
 * State of the process that owns a folder. `ended` means that the process does not exist on this machine, but its last
 * heartbeat is less than 10 s old. The process may run on another machine with the same host name.
 */
export type OwnerState = 'alive' | 'ended' | 'dead';

export class OwnerFolder {
  readonly fs: SpoolFs;
  readonly spoolDir: string;
  readonly destinationHash: string;
  readonly destinationPath: string;
  readonly path: string;
  readonly token: Buffer = nodeModule('node:crypto').randomBytes(8);
  readonly #name: string;
  readonly #wallMs: () => number;
  #ownerJson: Buffer | undefined;

  constructor(fs: SpoolFs, spoolDir: string, destinationHash: string, wallMs: () => number) {
    this.fs = fs;
    this.spoolDir = resolve(spoolDir);
    this.destinationHash = destinationHash;
    this.destinationPath = join(this.spoolDir, FORMAT_FOLDER, destinationHash);
    this.#wallMs = wallMs;
    this.#name = `${process.pid}-${Math.floor(wallMs()).toString(36)}-${this.token.toString('hex')}`;
    this.path = join(this.destinationPath, this.#name);
  }

  /** Creates the folder if necessary. Throws an `UnsafeFolder` or a file-system error. */
  make(): void {
    this.#ownerJson ??= Buffer.from(`${JSON.stringify(ownProcess(this.fs))}\n`);
    makeFolders(this.fs, this.spoolDir, [FORMAT_FOLDER, this.destinationHash, this.#name]);
    try {
      writeNewFile(this.fs, join(this.path, OWNER_FILE), this.#ownerJson);
    } catch (thrown) {
      // If the disk is full, the folder's modification time serves as the heartbeat.
      if (!['EEXIST', 'ENOSPC', 'EDQUOT'].includes(errorCodeOf(thrown))) throw thrown;
    }
  }

  segmentPath(sequence: number): string {
    return join(this.path, `${String(sequence).padStart(12, '0')}-${this.token.toString('hex')}.seg`);
  }

  /** Updates the heartbeat, without which other processes take over the files. */
  heartbeat(seconds: number = this.#wallMs() / 1_000): void {
    // If the disk was full, `owner.json` does not exist, and the folder's modification time is the heartbeat.
    if (!touch(this.fs, join(this.path, OWNER_FILE), seconds)) touch(this.fs, this.path, seconds);
  }

  /** Deletes the folder if it has no segment files. Else sets the heartbeat to 0, so that others take them over. */
  leave(): void {
    if (this.#ownerJson !== undefined && !removeIfEmpty(this.fs, this.path)) this.heartbeat(0);
  }

  /**
   * Moves segment files that dead processes left for the same destination to this folder. Returns the files, oldest
   * first. If several processes try to move the same file, only one succeeds. Throws an `UnsafeFolder` or a file-system
   * error.
   */
  takeOver(): ClaimedSegment[] {
    checkFolders(this.fs, this.spoolDir, [FORMAT_FOLDER, this.destinationHash]);
    const claimed: ClaimedSegment[] = [];
    for (const { name, path, state } of ownersIn(this.fs, this.destinationPath, this.#wallMs())) {
      if (state !== 'dead' || name === this.#name || removeIfEmpty(this.fs, path)) continue;
      this.make();
      claimed.push(...segmentsIn(this.fs, path).flatMap((file) => ignoreErrors(() => this.#claim(path, file)) ?? []));
      removeIfEmpty(this.fs, path);
    }
    return claimed;
  }

  /** Moves a damaged segment file to the folder `bad`. Throws an `UnsafeFolder` or a file-system error. */
  setAside(path: string): void {
    makeFolders(this.fs, this.spoolDir, [FORMAT_FOLDER, this.destinationHash, BAD_FOLDER]);
    const folder = join(this.destinationPath, BAD_FOLDER);
    this.fs.renameSync(path, join(folder, basename(path)));
    // Another process may delete the same files at the same time.
    ignoreErrors(() => deleteOldest(this.fs, folder));
  }

  /** Moves one segment file to this folder. Throws if another process has moved the file. */
  #claim(from: string, file: string): ClaimedSegment[] {
    const path = join(this.path, file);
    const facts = this.fs.lstatSync(join(from, file));
    if (!facts.isFile()) return [];
    this.fs.renameSync(join(from, file), path);
    return [{ path, bytes: facts.size, modifiedAtMs: facts.mtimeMs }];
  }
}

export interface Owner {
  readonly name: string;
  readonly path: string;
  readonly state: OwnerState;
}

const OWNER_NAME = /^\d{1,10}-[0-9a-z]{1,12}-[0-9a-f]{16}$/;

export function ownersIn(fs: SpoolFs, destinationPath: string, wallMs: number): Owner[] {
  const own = ownProcess(fs);
  return fs
    .readdirSync(destinationPath)
    .map((name) => ({ name, path: join(destinationPath, name) }))
    .filter(({ name, path }) => OWNER_NAME.test(name) && ignoreErrors(() => checkFolder(fs, path) ?? true))
    .sort((one, other) => startedAtMs(one.name) - startedAtMs(other.name))
    .map(({ name, path }) => ({ name, path, state: stateOf(fs, path, own, wallMs) }));
}

const SEGMENT_NAME = /^\d{12}-([0-9a-f]{16})\.seg$/;

export function segmentsIn(fs: SpoolFs, folder: string): string[] {
  const names = ifExists(() => fs.readdirSync(folder)) ?? [];
  return names.filter((name) => SEGMENT_NAME.test(name)).sort();
}

/** Returns the token with which each record in a segment file starts. */
export function segmentToken(path: string): Buffer {
  return Buffer.from(SEGMENT_NAME.exec(basename(path))?.[1] ?? '', 'hex');
}

export function removeIfEmpty(fs: SpoolFs, folder: string): boolean {
  try {
    if (!fs.readdirSync(folder).every((name) => name === OWNER_FILE)) return false;
    removeFile(fs, join(folder, OWNER_FILE));
    fs.rmdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

/** Whether runs for one destination may be sent with the key of the other. */
export function isSameDestination(one: Destination, other: Destination): boolean {
  return destinationText(one) === destinationText(other);
}

export function destinationHash(destination: Destination): string {
  return nodeModule('node:crypto').createHash('sha256').update(destinationText(destination)).digest('hex').slice(0, 32);
}

/** If no workspace is set, the API key identifies the tenant. */
function destinationText({ endpoint, workspaceId, apiKey }: Destination): string {
  const tenant =
    workspaceId !== undefined ? `workspace ${workspaceId}` : apiKey !== undefined ? `key ${apiKey}` : 'none';
  return `${shownAddress(endpoint)}\n${tenant}`;
}

export function isDestination(name: string): boolean {
  return /^[0-9a-f]{32}$/.test(name);
}

/** Identifies a process. The namespace and the start time are known only if the system has `/proc`. */
interface OwnerProcess {
  readonly pid: number;
  readonly host: string;
  /** Process ids are unique only within a namespace. In containers, the main program usually has the process id 1. */
  readonly pidNamespace: string | undefined;
  /** Process start time in clock ticks since boot. Distinguishes a process from a later process with the same id. */
  readonly startTime: string | undefined;
}

function ownProcess(fs: SpoolFs): OwnerProcess {
  return {
    pid: process.pid,
    host: nodeModule('node:os').hostname(),
    pidNamespace: ignoreErrors(() => fs.readlinkSync('/proc/self/ns/pid')),
    startTime: ignoreErrors(() => startTimeOf(fs, 'self')),
  };
}

function stateOf(fs: SpoolFs, folder: string, own: OwnerProcess, wallMs: number): OwnerState {
  let owner: Partial<OwnerProcess>;
  let heartbeatAtMs: number;
  try {
    const file = ifExists(() => readWhole(fs, join(folder, OWNER_FILE), OWNER_BYTES_MAX));
    owner = ignoreErrors(() => ({ ...(JSON.parse(String(file?.bytes)) as object) })) ?? {};
    heartbeatAtMs = file?.facts.mtimeMs ?? fs.lstatSync(folder).mtimeMs;
  } catch {
    return 'alive';
  }
  if (heartbeatAtMs === 0) return 'dead';
  // A heartbeat in the future must not keep the folder's owner alive forever.
  const silentMs = Math.abs(wallMs - heartbeatAtMs);
  const { pid, host, pidNamespace, startTime } = owner;
  const isSameNamespace = host === own.host && pidNamespace === own.pidNamespace;
  if (isSameNamespace && pid === own.pid && startTime === own.startTime) return 'alive';
  if (!isSameNamespace || pidNamespace === undefined || startTime === undefined)
    return silentMs > UNKNOWN_SILENCE_MS ? 'dead' : 'alive';
  if (isRunning(fs, Number(pid), startTime)) return 'alive';
  return silentMs > ENDED_SILENCE_MS ? 'dead' : 'ended';
}

function isRunning(fs: SpoolFs, pid: number, startTime: string): boolean {
  try {
    return startTimeOf(fs, pid) === startTime;
  } catch (thrown) {
    return !['ENOENT', 'ESRCH'].includes(errorCodeOf(thrown));
  }
}

/**
 * Returns a process's start time from field 22 in `/proc/<pid>/stat`. Searches for the last parenthesis, because the
 * program name in field 2 may contain spaces and parentheses.
 */
function startTimeOf(fs: SpoolFs, pid: number | 'self'): string | undefined {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

function startedAtMs(name: string): number {
  return Number.parseInt(name.split('-')[1] ?? '', 36);
}

function touch(fs: SpoolFs, path: string, seconds: number): boolean {
  try {
    fs.utimesSync(path, seconds, seconds);
    return true;
  } catch (thrown) {
    return errorCodeOf(thrown) !== 'ENOENT';
  }
}

function deleteOldest(fs: SpoolFs, folder: string): void {
  const files = fs.readdirSync(folder).map((name) => {
    const path = join(folder, name);
    const { size, mtimeMs } = fs.lstatSync(path);
    return { path, size, mtimeMs };
  });
  files.sort((one, other) => other.mtimeMs - one.mtimeMs);
  let bytes = 0;
  for (const { path, size } of files) {
    bytes += size;
    if (bytes > BAD_BYTES_MAX) fs.unlinkSync(path);
  }
}
