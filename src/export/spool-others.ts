import { join, resolve } from 'node:path';
import { claimAll, deadOwners, isFolderOfOurs, namesIn, removeEmptied } from './spool-claim.ts';
import { checkPrivateFolders, FORMAT_FOLDER, isDestination, sequenceOf } from './spool-folder.ts';
import { readWhole, type SpoolFs } from './spool-fs.ts';
import { SpoolHome } from './spool-home.ts';
import { ownerToken } from './spool-owner.ts';
import { type RunName, salvageRecord } from './spool-record.ts';
import { SEGMENT_BYTES_MAX, scan } from './spool-segment.ts';

/** Segments that a dead owner has left for a destination to which no living process delivers. */
export interface Leftover {
  readonly destinationHash: string;
  readonly folder: string;
  readonly files: readonly string[];
  /** When the youngest of the files was written. */
  readonly writtenAtMs: number;
}

/** Finds what waits for other destinations than that of `home`. Throws what the file system throws. */
export function findLeftovers({ fs, spoolDir, destination, facts }: SpoolHome, wallMs: number): Leftover[] {
  checkPrivateFolders(fs, spoolDir, [FORMAT_FOLDER]);
  const found: Leftover[] = [];
  for (const destinationHash of fs.readdirSync(join(spoolDir, FORMAT_FOLDER)).filter(isDestination)) {
    const folder = join(spoolDir, FORMAT_FOLDER, destinationHash);
    if (destination.includes(destinationHash) || !isFolderOfOurs(fs, folder)) continue;
    const owners = fs.readdirSync(folder).filter((name) => ownerToken(name) !== undefined);
    const dead = deadOwners(fs, folder, facts, '', wallMs);
    // A living owner takes over what the dead ones have left.
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
 * Deletes the files of a leftover, one at each step, and yields the runs of each file that have not been yielded before: runs
 * whose records are damaged are yielded as far as their names can be read. Skips files of a later version, and files that
 * another process deletes first.
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
      // It is tried again at the next look.
    }
  }
  removeEmptied(fs, folder);
}

/**
 * Moves what dead owners have left for one destination to the folder of a new owner of another destination, which has left, so
 * that the next exporter of that destination takes it over. Throws what the file system throws.
 */
export function redirectLeftovers(fs: SpoolFs, spoolDir: string, from: string, to: string, wallMs: number): void {
  checkPrivateFolders(fs, spoolDir, [FORMAT_FOLDER, from]);
  const home = new SpoolHome(fs, resolve(spoolDir), [FORMAT_FOLDER, to], () => wallMs);
  home.make();
  const folder = join(home.spoolDir, FORMAT_FOLDER, from);
  for (const owner of deadOwners(fs, folder, home.facts, home.name, wallMs)) claimAll(fs, owner, home.path);
  home.leave();
}
