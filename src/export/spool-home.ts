import { join } from 'node:path';
import { removeEmptied } from './spool-claim.ts';
import { makePrivateFolders } from './spool-folder.ts';
import { codeOf, isFull, type SpoolFs } from './spool-fs.ts';
import {
  beat,
  HEARTBEAT_MS,
  leave,
  newOwnerName,
  type OwnerFacts,
  ownerToken,
  ownFacts,
  removeOwner,
  writeOwner,
} from './spool-owner.ts';

/** Without a sign of life for so long, somebody may be about to take over. */
const LATE_MS = 3 * HEARTBEAT_MS;

/** The folder of one owner: made when something is written, made again when it is gone, and kept alive. */
export class SpoolHome {
  readonly fs: SpoolFs;
  readonly spoolDir: string;
  /** Folders below the spool's that lead to the destination's. */
  readonly destination: readonly string[];
  readonly name: string;
  readonly token: string;
  readonly path: string;
  readonly #wallMs: () => number;
  #facts: OwnerFacts | undefined;
  /** As far as is known. */
  #isMade = false;
  #mayBeThere = false;
  #lastSignMs = 0;

  constructor(fs: SpoolFs, spoolDir: string, destination: readonly string[], wallMs: () => number) {
    this.fs = fs;
    this.spoolDir = spoolDir;
    this.destination = destination;
    this.#wallMs = wallMs;
    this.name = newOwnerName(wallMs());
    this.token = ownerToken(this.name) as string;
    this.path = join(this.destinationPath, this.name);
  }

  get destinationPath(): string {
    return join(this.spoolDir, ...this.destination);
  }

  get facts(): OwnerFacts {
    this.#facts ??= ownFacts(this.fs);
    return this.#facts;
  }

  /** Throws an UnsafeFolder, or what the file system throws. */
  make(): void {
    if (this.#isMade) return;
    this.#mayBeThere = true;
    makePrivateFolders(this.fs, this.spoolDir, [...this.destination, this.name]);
    try {
      writeOwner(this.fs, this.path, this.facts);
    } catch (thrown) {
      if (codeOf(thrown) !== 'EEXIST') throw thrown;
    }
    this.#lastSignMs = this.#wallMs();
    this.#isMade = true;
  }

  /**
   * Takes a dead owner's folder for its own, where there is no room for a new one: it is renamed, which one claimant alone
   * can do, and the dead owner's file makes room for ours. Gives the folder in which that owner's segments are now: its own
   * still where ours has something in it already. Throws what the file system throws.
   */
  adopt(folder: string): string {
    // Without that file the folder counts as one that is being made, so that nobody else takes it for a dead owner's.
    removeOwner(this.fs, folder);
    let taken = this.path;
    if (existsIn(this.fs, this.path) && !removeEmptied(this.fs, this.path)) taken = folder;
    else this.fs.renameSync(folder, this.path);
    try {
      this.make();
    } catch (thrown) {
      // It is tried again with whatever comes next; meanwhile every file that is renamed is a sign of life.
      if (!isFull(thrown)) throw thrown;
    }
    return taken;
  }

  /** Somebody has deleted it, or has taken over what was in it: it has to be made again. */
  lose(): void {
    this.#isMade = false;
  }

  /**
   * Whether nothing was heard of the owner for so long that somebody may be taking over its files: after a suspension of
   * the process or of the machine, for example.
   */
  get isLate(): boolean {
    return this.#isMade && this.#wallMs() - this.#lastSignMs > LATE_MS;
  }

  /** Gives a sign of life; false when the folder is gone. */
  giveSign(): boolean {
    if (!this.#isMade) return false;
    const wallMs = this.#wallMs();
    try {
      beat(this.fs, this.path, wallMs);
      this.#lastSignMs = wallMs;
    } catch (thrown) {
      if (codeOf(thrown) === 'ENOENT') this.lose();
    }
    return this.#isMade;
  }

  /** Takes it away when it is empty, and else says that the owner has left. */
  leave(): void {
    if (!this.#mayBeThere || removeEmptied(this.fs, this.path)) return;
    try {
      leave(this.fs, this.path);
    } catch {
      // Whoever comes next finds out by itself that this process has ended.
    }
  }
}

function existsIn(fs: SpoolFs, path: string): boolean {
  try {
    fs.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}
