import { join } from 'node:path';
import { deadOwners, isFolderOfOurs, namesIn, removeEmptied } from './spool-claim.ts';
import { checkPrivateFolders, FORMAT_FOLDER, isDestination, sequenceOf } from './spool-folder.ts';
import { readWhole, type SpoolFs } from './spool-fs.ts';
import type { SpoolHome } from './spool-home.ts';
import { ownerToken } from './spool-owner.ts';
import { type RunName, salvageRecord } from './spool-record.ts';
import { SEGMENT_BYTES_MAX, scan } from './spool-segment.ts';

/** Segments that a dead owner left for a destination. No running process is delivering to that destination. */
export interface Leftover {
  readonly destinationHash: string;
  readonly folder: string;
  readonly files: readonly string[];
  /** Time at which the newest file was written. */
  readonly writtenAtMs: number;
}

/** Finds leftovers of all destinations except the destination of `home`. Throws file-system errors. */
export function findLeftovers({ fs, spoolDir, destination, facts }: SpoolHome, wallMs: number): Leftover[] {
  checkPrivateFolders(fs, spoolDir, [FORMAT_FOLDER]);
  const found: Leftover[] = [];
  for (const destinationHash of fs.readdirSync(join(spoolDir, FORMAT_FOLDER)).filter(isDestination)) {
    const folder = join(spoolDir, FORMAT_FOLDER, destinationHash);
    if (destination.includes(destinationHash) || !isFolderOfOurs(fs, folder)) continue;
    const owners = fs.readdirSync(folder).filter((name) => ownerToken(name) !== undefined);
    const dead = deadOwners(fs, folder, facts, '', wallMs);
    // If one of the owners is alive, it takes over the files of the dead owners.
    if (dead.length < owners.length) continue;
    for (const owner of dead) {
      const files = namesIn(fs, owner).filter((name) => sequenceOf(name) !== undefined);
      const paths = files.map((name) => join(owner, name));
      const writtenAtMs = Math.max(...paths.map((path) => fs.lstatSync(path).mtimeMs));
      if (files.length > 0) found.push({ destinationHash, folder: owner, files: paths, writtenAtMs });
    }
  }
  return found;
}

/**
 * Deletes the files of a leftover, one per step, and yields the runs of each file. Each run is yielded once. If the
 * record of a run is damaged, the run is yielded only if its name can be read. Skips files written by a later version
 * and files that another process has already deleted.
 */
export function* deleteLeftover(fs: SpoolFs, { folder, files }: Leftover): Generator<readonly RunName[]> {
  const ids = new Set<string>();
  for (const file of files) {
    try {
      const content = readWhole(fs, file, SEGMENT_BYTES_MAX);
      if (content === undefined) continue;
      const { payloads, damaged, isUnknownVersion } = scan(content.bytes);
      if (isUnknownVersion) continue;
      fs.unlinkSync(file);
      const runs = [...payloads, ...damaged].map(salvageRecord);
      yield runs.filter(({ id }) => id === '' || (!ids.has(id) && ids.add(id)));
    } catch {
      // The next scan tries this file again.
    }
  }
  removeEmptied(fs, folder);
}
