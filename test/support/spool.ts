import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { onTestFinished } from 'vitest';
import { Spool, type SpooledRecord, type SpoolOptions } from '#src/delivery/spool/spool.ts';
import { ended, makeRun } from './encoded-run.ts';
import { temporaryFolder } from './folders.ts';

/** The options of a spool whose files are neither too large nor too old. */
export const SPOOL: Omit<SpoolOptions, 'spoolDir'> = {
  endpoint: new URL('http://127.0.0.1:4777'),
  workspaceId: undefined,
  apiKey: undefined,
  bytesMax: 100_000_000,
  ageMaxMs: 86_400_000,
};

/** Returns a folder for the spools of one destination, with clocks that only the test changes. */
export function spoolFolder(within?: string) {
  const folder = temporaryFolder(within);
  onTestFinished(() => folder.remove());
  const dir = join(folder.path, 'spool');
  const time = { wallMs: Date.now(), monotonicMs: 0 };
  const open = (options: Partial<SpoolOptions> = {}): Spool => {
    const spool = new Spool({
      ...SPOOL,
      spoolDir: dir,
      wallMs: () => time.wallMs,
      monotonicMs: () => time.monotonicMs,
      ...options,
    });
    onTestFinished(() => spool.close());
    return spool;
  };
  return { dir, time, open };
}

/** Creates the record of an ended run whose inputs contain the number. */
export function makeRecord(number: number, padding = 0): SpooledRecord {
  const inputs = JSON.stringify({ number, padding: '.'.repeat(padding) });
  return { op: 'post', isEnded: true, run: ended(makeRun({ inputs })) };
}

export function numberOf({ run }: SpooledRecord): number {
  return (JSON.parse(run.inputs as string) as { number: number }).number;
}

export function filesBelow(dir: string): string[] {
  if (!existsSync(dir)) return [];
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(dir.length + 1))
    .sort();
}

export const segmentsBelow = (dir: string): string[] => filesBelow(dir).filter((path) => path.endsWith('.seg'));

/** Changes all owners, as if their processes had been killed half a minute ago. */
export function killOwners(dir: string, nowMs: number = Date.now()): void {
  for (const path of filesBelow(dir).filter((name) => name.endsWith('owner.json'))) {
    const owner = JSON.parse(readFileSync(join(dir, path), 'utf8'));
    writeFileSync(join(dir, path), `${JSON.stringify({ ...owner, pid: 2 ** 22 + 1 })}\n`);
    utimesSync(join(dir, path), nowMs / 1_000 - 30, nowMs / 1_000 - 30);
  }
}

export function silenceOwners(dir: string, silentMs: number): void {
  const seconds = (Date.now() - silentMs) / 1_000;
  for (const path of filesBelow(dir).filter((name) => name.endsWith('owner.json'))) {
    utimesSync(join(dir, path), seconds, seconds);
  }
}

/** Returns the numbers of all waiting records, and completes their segments. */
export function drain(spool: Spool): number[] {
  const numbers: number[] = [];
  for (let read = spool.next(); read !== undefined; read = spool.next()) {
    numbers.push(...read.records.map(numberOf));
    spool.done(read.segment);
  }
  return numbers;
}

/** Size of the head of each record in a segment file. */
export const HEAD_BYTES = 68;

export function recordStarts(file: Buffer): number[] {
  const starts: number[] = [];
  for (let at = 0; at < file.length; at += HEAD_BYTES + file.readUInt32BE(at + 20)) starts.push(at);
  return starts;
}

/** Changes the record at `at`, and makes both of its checksums valid. */
export function changeRecord(file: Buffer, at: number, change: (head: Buffer, payload: Buffer) => void): void {
  const head = file.subarray(at, at + HEAD_BYTES);
  const payload = file.subarray(at + HEAD_BYTES, at + HEAD_BYTES + head.readUInt32BE(20));
  change(head, payload);
  head.writeUInt32BE(crc32(payload), 60);
  head.writeUInt32BE(crc32(head.subarray(0, 64)), 64);
}

export function laterVersion(file: Buffer): Buffer {
  const later = Buffer.from(file);
  for (const at of recordStarts(later)) changeRecord(later, at, (head) => head.writeUInt8(2, 8));
  return later;
}
