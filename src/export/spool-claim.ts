import { join } from 'node:path';
import { checkPrivate, sequenceOf } from './spool-folder.ts';
import type { SpoolFs } from './spool-fs.ts';
import { isDead, isOwnerFile, type OwnerFacts, ownerToken, removeOwner } from './spool-owner.ts';

/** A segment of an owner that is dead, now in the claimant's folder. */
export interface ClaimedSegment {
  readonly path: string;
  readonly sequence: number;
  readonly bytes: number;
  readonly modifiedAtMs: number;
}

/** The folders of those dead owners of a destination that have left something, oldest first. */
export function deadOwners(fs: SpoolFs, folder: string, own: OwnerFacts, ownName: string, wallMs: number): string[] {
  return fs
    .readdirSync(folder)
    .filter((name) => name !== ownName && ownerToken(name) !== undefined)
    .sort((one, other) => startOf(one) - startOf(other))
    .map((name) => join(folder, name))
    .filter((path) => isFolderOfOurs(fs, path) && isDead(fs, path, own, wallMs));
}

/**
 * Moves the segments of a dead owner, one by one: a file has one name, so that of several claimants one gets it. Files of
 * another kind stay, and their folder with them. Never throws.
 */
export function claimAll(fs: SpoolFs, from: string, to: string): ClaimedSegment[] {
  const claimed: ClaimedSegment[] = [];
  // Those of one writer stay in their order, whatever was done to the clock.
  let latestMs = 0;
  for (const file of namesIn(fs, from).sort()) {
    const sequence = sequenceOf(file);
    if (sequence === undefined) continue;
    const path = join(to, file);
    try {
      const facts = fs.lstatSync(join(from, file));
      if (!facts.isFile()) continue;
      fs.renameSync(join(from, file), path);
      latestMs = Math.max(latestMs, facts.mtimeMs);
      claimed.push({ path, sequence, bytes: facts.size, modifiedAtMs: latestMs });
    } catch {
      // Another claimant was first, or it can be tried again later.
    }
  }
  removeEmptied(fs, from);
  return claimed;
}

/** Removes an owner's folder if there is nothing in it but who it was; says whether it is gone. Never throws. */
export function removeEmptied(fs: SpoolFs, folder: string): boolean {
  try {
    if (!fs.readdirSync(folder).every(isOwnerFile)) return false;
    removeOwner(fs, folder);
    fs.rmdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

export function namesIn(fs: SpoolFs, folder: string): string[] {
  try {
    return fs.readdirSync(folder);
  } catch {
    return [];
  }
}

export function isFolderOfOurs(fs: SpoolFs, path: string): boolean {
  try {
    checkPrivate(fs, path);
    return true;
  } catch {
    return false;
  }
}

/** When an owner began, as its name says. */
function startOf(name: string): number {
  return Number.parseInt(name.split('-')[1] ?? '', 36);
}
