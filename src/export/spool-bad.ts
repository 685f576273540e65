import { basename, join } from 'node:path';
import { BAD_FOLDER, makePrivateFolders } from './spool-folder.ts';
import type { SpoolFs } from './spool-fs.ts';

/** Bytes of damaged files that are kept for a look at them; beyond it the oldest is deleted. */
export const BAD_BYTES_MAX: number = 10 * 1024 * 1024;

/** Moves a damaged file to the folder `bad`; throws what the file system throws. */
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
