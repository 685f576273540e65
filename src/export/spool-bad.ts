import { basename, join, resolve } from 'node:path';
import { BAD_FOLDER, checkPrivateFolders, FORMAT_FOLDER, makePrivateFolders, sequenceOf } from './spool-folder.ts';
import { codeOf, readWhole, type SpoolFs } from './spool-fs.ts';
import { SpoolHome } from './spool-home.ts';
import { decodeRecord } from './spool-record.ts';
import { SEGMENT_BYTES_MAX, scan } from './spool-segment.ts';

/** Bytes of damaged files that are kept for a look at them; beyond it the oldest is deleted. */
export const BAD_BYTES_MAX: number = 10 * 1024 * 1024;

/** Moves a damaged file to the folder `bad`. Throws file-system errors. */
export function setAside(fs: SpoolFs, path: string, spoolDir: string, destination: readonly string[]): void {
  const names = [...destination, BAD_FOLDER];
  makePrivateFolders(fs, spoolDir, names);
  const folder = join(spoolDir, ...names);
  fs.renameSync(path, join(folder, basename(path)));
  try {
    trim(fs, folder);
  } catch {
    // Another process trims it too; it is bounded again when the next file comes.
  }
}

/**
 * Moves the deliverable segments from `bad` to a new owner folder that is marked as abandoned, so that the next exporter of
 * the destination takes them over. Resets their age. Throws file-system errors.
 */
export function restoreBad(fs: SpoolFs, spoolDir: string, destinationHash: string, wallMs: number): void {
  const home = new SpoolHome(fs, resolve(spoolDir), [FORMAT_FOLDER, destinationHash], () => wallMs);
  const bad = join(home.destinationPath, BAD_FOLDER);
  try {
    checkPrivateFolders(fs, spoolDir, [...home.destination, BAD_FOLDER]);
  } catch (thrown) {
    if (codeOf(thrown) === 'ENOENT') return;
    throw thrown;
  }
  try {
    for (const file of fs.readdirSync(bad)) {
      const path = join(bad, file);
      if (!isUndelivered(fs, path)) continue;
      home.make();
      fs.utimesSync(path, wallMs / 1_000, wallMs / 1_000);
      fs.renameSync(path, join(home.path, file));
    }
  } finally {
    home.leave();
  }
}

/**
 * Matches segments that earlier versions set aside without reading them, because five processes had died while
 * delivering them.
 */
const UNREAD = /\.a5\.seg$/;

/**
 * Whether a segment still has records to deliver. A damaged segment has none if its readable records were already read
 * before it was set aside.
 */
function isUndelivered(fs: SpoolFs, path: string): boolean {
  if (sequenceOf(basename(path)) === undefined) return false;
  const content = readWhole(fs, path, SEGMENT_BYTES_MAX);
  if (content === undefined) return false;
  const { payloads, damaged } = scan(content.bytes);
  const readable = payloads.filter((payload) => decodeRecord(payload) !== undefined).length;
  const isWhole = damaged.length === 0 && readable === payloads.length;
  return readable > 0 && (isWhole || UNREAD.test(path));
}

function trim(fs: SpoolFs, folder: string): void {
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
