import { join, resolve } from 'node:path';
import { removeEmptied } from './spool-claim.ts';
import { BAD_FOLDER, checkPrivateFolders, FORMAT_FOLDER, isDestination, sequenceOf } from './spool-folder.ts';
import { codeOf, readWhole, removeFile, type SpoolFs, systemFs } from './spool-fs.ts';
import { isDead, ownerToken, ownFacts } from './spool-owner.ts';
import { decodeRecord } from './spool-record.ts';
import { SEGMENT_BYTES_MAX, scan } from './spool-segment.ts';

/** Files of one folder. */
export interface Files {
  readonly folder: string;
  readonly files: readonly string[];
  readonly bytes: number;
  /** When the oldest file was written last; undefined where there is none. */
  readonly oldestMs: number | undefined;
}

/** What one owner has on disk. */
export interface Holding extends Files {
  readonly runs: number;
}

export interface OwnerSurvey extends Holding {
  readonly name: string;
  readonly isAlive: boolean;
}

/** What is kept for one endpoint and workspace, or key. */
export interface DestinationSurvey {
  readonly hash: string;
  readonly owners: readonly OwnerSurvey[];
  /** Files that were set aside. Their runs are not counted: those that could be read are delivered, as a rule. */
  readonly bad: Files;
}

/**
 * Everything below a spool's folder; nothing is changed. Nothing at all where there is no such folder; throws an
 * UnsafeFolder, or what the file system throws.
 */
export function surveySpool(spoolDir: string, wallMs: number, fs: SpoolFs = systemFs): DestinationSurvey[] {
  try {
    checkPrivateFolders(fs, spoolDir, [FORMAT_FOLDER]);
  } catch (thrown) {
    if (codeOf(thrown) === 'ENOENT') return [];
    throw thrown;
  }
  const hashes = fs.readdirSync(join(resolve(spoolDir), FORMAT_FOLDER)).filter(isDestination);
  return hashes.sort().map((hash) => surveyDestination(fs, spoolDir, hash, wallMs));
}

/** Deletes the files, and their folder when it is empty then. Throws what the file system throws. */
export function purge({ folder, files }: Files, fs: SpoolFs = systemFs): void {
  for (const file of files) removeFile(fs, file);
  removeEmptied(fs, folder);
}

function surveyDestination(fs: SpoolFs, spoolDir: string, hash: string, wallMs: number): DestinationSurvey {
  checkPrivateFolders(fs, spoolDir, [FORMAT_FOLDER, hash]);
  const folder = join(resolve(spoolDir), FORMAT_FOLDER, hash);
  const own = ownFacts(fs);
  const names = fs.readdirSync(folder).filter((name) => ownerToken(name) !== undefined);
  const owners = names.sort().map((name) => {
    const path = join(folder, name);
    return { name, isAlive: !isDead(fs, path, own, wallMs), ...holdingIn(fs, path) };
  });
  return { hash, owners, bad: holdingIn(fs, join(folder, BAD_FOLDER)) };
}

/** What an owner deletes or somebody claims meanwhile is passed over. */
function holdingIn(fs: SpoolFs, folder: string): Holding {
  const files: string[] = [];
  const ids = new Set<string>();
  let bytes = 0;
  let oldestMs: number | undefined;
  for (const name of segmentsIn(fs, folder)) {
    const path = join(folder, name);
    try {
      const content = readWhole(fs, path, SEGMENT_BYTES_MAX);
      if (content === undefined) continue;
      for (const payload of scan(content.bytes).payloads) ids.add(decodeRecord(payload)?.run.id ?? '');
      bytes += content.bytes.length;
      oldestMs = Math.min(oldestMs ?? content.modifiedAtMs, content.modifiedAtMs);
      files.push(path);
    } catch (thrown) {
      if (codeOf(thrown) !== 'ENOENT') throw thrown;
    }
  }
  ids.delete('');
  return { folder, files, runs: ids.size, bytes, oldestMs };
}

function segmentsIn(fs: SpoolFs, folder: string): string[] {
  try {
    if (!fs.lstatSync(folder).isDirectory()) return [];
    return fs.readdirSync(folder).filter((name) => sequenceOf(name) !== undefined);
  } catch (thrown) {
    if (codeOf(thrown) === 'ENOENT') return [];
    throw thrown;
  }
}
