import fs from 'node:fs';

/** What the spool asks of the file system, and nothing else, so that tests can fail each call in turn. */
export type SpoolFs = Pick<
  typeof fs,
  | 'closeSync'
  | 'fstatSync'
  | 'ftruncateSync'
  | 'lstatSync'
  | 'mkdirSync'
  | 'openSync'
  | 'readFileSync'
  | 'readdirSync'
  | 'readlinkSync'
  | 'renameSync'
  | 'rmdirSync'
  | 'unlinkSync'
  | 'utimesSync'
  | 'writeSync'
>;

export const systemFs: SpoolFs = fs;

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY, O_WRONLY } = fs.constants;

/** Opens a file that must not be there yet, for the owner alone; a link planted under its name is not followed. */
export function createFile(fs: SpoolFs, path: string): number {
  return fs.openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
}

/** A file that was read whole. */
export interface FileContent {
  readonly bytes: Buffer;
  readonly modifiedAtMs: number;
}

/**
 * Reads a whole file; undefined where the path stands for something else, a pipe or a link for example, or for more bytes
 * than these. Throws what the file system throws.
 */
export function readWhole(fs: SpoolFs, path: string, bytesMax: number): FileContent | undefined {
  let fd: number;
  try {
    // A pipe without a writer would hold the process.
    fd = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (thrown) {
    if (codeOf(thrown) === 'ELOOP') return undefined;
    throw thrown;
  }
  try {
    const facts = fs.fstatSync(fd);
    if (!facts.isFile() || facts.size > bytesMax) return undefined;
    return { bytes: fs.readFileSync(fd), modifiedAtMs: facts.mtimeMs };
  } finally {
    fs.closeSync(fd);
  }
}

/** The code of an error of the file system, such as `ENOSPC`. */
export function codeOf(thrown: unknown): string {
  const code = thrown instanceof Error ? (thrown as NodeJS.ErrnoException).code : undefined;
  return typeof code === 'string' ? code : 'unknown error';
}

/** Whether the disk, or the user's share of it, has no room. */
export function isFull(thrown: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(codeOf(thrown));
}

/** Deletes a file; one that is not there is as good. */
export function removeFile(fs: SpoolFs, path: string): void {
  try {
    fs.unlinkSync(path);
  } catch (thrown) {
    if (codeOf(thrown) !== 'ENOENT') throw thrown;
  }
}
