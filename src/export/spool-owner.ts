import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { codeOf, createFile, readWhole, removeFile, type SpoolFs } from './spool-fs.ts';

/** Between two signs of life of an owner. */
export const HEARTBEAT_MS = 10_000;

/** Without a sign of life for so long, an owner of whom nothing else can be known is dead. */
const SILENCE_MAX_MS = 60_000;

/** Bytes of the file that an owner leaves; what is larger was not written by us. */
const OWNER_BYTES_MAX = 4_096;

const OWNER_FILE = 'owner.json';

/**
 * Who writes to a folder. A process id says little by itself: it is given again to other processes, and in containers
 * nearly every program has number 1. What could not be found out is undefined.
 */
export interface OwnerFacts {
  readonly pid: number;
  readonly host: string;
  /** A new one at each start of the machine. */
  readonly bootId: string | undefined;
  /** Within which the process id holds. */
  readonly pidNamespace: string | undefined;
  /** Of the process, in ticks since the machine started. */
  readonly startTime: string | undefined;
}

/** What is known of this process; everything but number and host is Linux's. */
export function ownFacts(fs: SpoolFs): OwnerFacts {
  return {
    pid: process.pid,
    host: hostname(),
    bootId: textOf(() => fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    pidNamespace: textOf(() => fs.readlinkSync('/proc/self/ns/pid')),
    startTime: textOf(() => startTimeIn(fs.readFileSync('/proc/self/stat', 'utf8'))),
  };
}

/** The name of a new owner's folder: two exporters of a process are two owners. */
export function newOwnerName(wallMs: number): string {
  return `${process.pid}-${Math.floor(wallMs).toString(36)}-${randomBytes(8).toString('hex')}`;
}

const OWNER_NAME = /^\d{1,10}-[0-9a-z]{1,12}-([0-9a-f]{16})$/;

/** The random part of an owner's name; undefined for a folder of another kind. */
export function ownerToken(name: string): string | undefined {
  return OWNER_NAME.exec(name)?.[1];
}

/** Whether the name is that of the file in which an owner says who it is. */
export function isOwnerFile(name: string): boolean {
  return name === OWNER_FILE;
}

/** Says in its folder who the owner is; the time of that file is the sign of life. */
export function writeOwner(fs: SpoolFs, folder: string, facts: OwnerFacts): void {
  const text = Buffer.from(`${JSON.stringify(facts)}\n`);
  const fd = createFile(fs, join(folder, OWNER_FILE));
  let written = 0;
  try {
    written = fs.writeSync(fd, text);
  } finally {
    fs.closeSync(fd);
    if (written < text.length) removeFile(fs, join(folder, OWNER_FILE));
  }
  if (written < text.length) throw Object.assign(new Error('short write'), { code: 'ENOSPC' });
}

/** Gives a sign of life. */
export function beat(fs: SpoolFs, folder: string, wallMs: number): void {
  fs.utimesSync(join(folder, OWNER_FILE), wallMs / 1_000, wallMs / 1_000);
}

/** Says that the owner has left in order: whoever comes next may take what it has left, at once. */
export function leave(fs: SpoolFs, folder: string): void {
  fs.utimesSync(join(folder, OWNER_FILE), 0, 0);
}

export function removeOwner(fs: SpoolFs, folder: string): void {
  removeFile(fs, join(folder, OWNER_FILE));
}

/**
 * Whether nobody writes to the folder any more. When in doubt the owner is alive: what it has is delivered later, by
 * itself or by somebody else.
 */
export function isDead(fs: SpoolFs, folder: string, own: OwnerFacts, wallMs: number): boolean {
  let lastSignMs: number;
  let facts: OwnerFacts | undefined;
  try {
    const file = readWhole(fs, join(folder, OWNER_FILE), OWNER_BYTES_MAX);
    facts = file === undefined ? undefined : factsIn(file.bytes.toString());
    lastSignMs = file?.modifiedAtMs ?? fs.lstatSync(folder).mtimeMs;
  } catch (thrown) {
    if (codeOf(thrown) !== 'ENOENT') return false;
    // It is being made at this moment, or its owner died before it could say who it is.
    const madeAtMs = textOf(() => String(fs.lstatSync(folder).mtimeMs));
    if (madeAtMs === undefined) return false;
    lastSignMs = Number(madeAtMs);
  }
  if (lastSignMs === 0) return true;
  return isProcessDead(fs, facts, own) ?? wallMs - lastSignMs > SILENCE_MAX_MS;
}

/** Undefined where only the silence of the owner tells. */
function isProcessDead(fs: SpoolFs, facts: OwnerFacts | undefined, own: OwnerFacts): boolean | undefined {
  if (facts === undefined || facts.host !== own.host) return undefined;
  const isLinux = facts.bootId !== undefined && own.bootId !== undefined;
  if (isLinux && facts.bootId !== own.bootId) return true;
  if (facts.pidNamespace !== own.pidNamespace) return undefined;
  if (facts.pid === own.pid && facts.startTime === own.startTime) return false;
  if (!isRunning(facts.pid)) return isLinux && own.pidNamespace !== undefined ? true : undefined;
  // It could not read its own, as without free descriptors: another process may have its number now.
  if (facts.startTime === undefined) return own.startTime === undefined ? false : undefined;
  try {
    return startTimeIn(fs.readFileSync(`/proc/${facts.pid}/stat`, 'utf8')) !== facts.startTime;
  } catch (thrown) {
    // Gone since, or a table of processes that cannot be read.
    return codeOf(thrown) === 'ENOENT' || codeOf(thrown) === 'ESRCH';
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return codeOf(thrown) !== 'ESRCH';
  }
}

/** The 22nd field of `/proc/<pid>/stat`. The second one is the name of the program, which may hold blanks and brackets. */
function startTimeIn(stat: string): string | undefined {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

function factsIn(json: string): OwnerFacts | undefined {
  try {
    const { pid, host, bootId, pidNamespace, startTime } = JSON.parse(json) as Record<string, unknown>;
    if (!Number.isSafeInteger(pid) || (pid as number) < 1 || typeof host !== 'string') return undefined;
    const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
    return {
      pid: pid as number,
      host,
      bootId: text(bootId),
      pidNamespace: text(pidNamespace),
      startTime: text(startTime),
    };
  } catch {
    return undefined;
  }
}

function textOf(read: () => string | undefined): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
