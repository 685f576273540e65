import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cut } from '../base/text.ts';
import { mistake } from './field-check.ts';
import { sourceFiles } from './source-files.ts';
import { InvalidRequestError, type ValidationError } from './validation-error.ts';

/** Bytes of an archive that the service takes. */
export const ARCHIVE_BYTES_MAX: number = 200 * 1024 * 1024;

/** The same for all files, so that the same source gives the same bytes; that of npm's packages. */
const FILE_TIME = new Date('1985-10-26T08:15:00Z');

const GZIP = [0x1f, 0x8b];

/** Characters of a path that an error shows. */
const SHOWN_MAX = 300;

/** A source as it is sent. */
export interface SourceArchive {
  readonly path: string;
  readonly bytes: number;
  /** Takes away what was made for it. */
  readonly remove: () => Promise<void>;
}

/** What is sent of a source: an archive of a directory, or a tarball as it is. Rejects with an InvalidRequestError where there is none to send. */
export async function sourceArchive(
  call: string,
  given: string | URL,
  signal: AbortSignal | undefined,
  bytesMax: number = ARCHIVE_BYTES_MAX,
): Promise<SourceArchive> {
  const path = given instanceof URL ? pathOf(given) : given;
  if (typeof path !== 'string') throw refused(call, 'Expected a path, or a URL that begins with file:');
  const stats = await stat(path).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') throw refused(call, `There is nothing at ${cut(path, SHOWN_MAX)}`);
  });
  if (stats?.isDirectory()) return packed(call, path, signal, bytesMax);
  if (!stats?.isFile()) throw refused(call, 'Expected the path of a directory or a tarball');
  if (stats.size > bytesMax) throw tooLarge(call, bytesMax);
  if (!(await isGzip(path))) throw refused(call, 'Expected a directory or a tarball that is compressed with gzip');
  return { path, bytes: stats.size, remove: async () => undefined };
}

/** Undefined for an address that is no file's. */
function pathOf(url: URL): string | undefined {
  try {
    return fileURLToPath(url);
  } catch {
    return undefined;
  }
}

async function packed(
  call: string,
  directory: string,
  signal: AbortSignal | undefined,
  bytesMax: number,
): Promise<SourceArchive> {
  const { paths, errors } = await sourceFiles(directory, signal);
  if (errors.length > 0) throw new InvalidRequestError(call, errors);
  if (paths.length === 0) throw refused(call, 'Expected files in the directory, but there are none or all are ignored');
  const folder = await mkdtemp(join(tmpdir(), 'runspan-source-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const path = join(folder, 'source.tar.gz');
    const bytes = await write(path, directory, paths, signal, bytesMax);
    if (bytes === undefined) throw tooLarge(call, bytesMax);
    return { path, bytes, remove };
  } catch (thrown) {
    await remove();
    throw thrown;
  }
}

/** How many bytes the archive has; undefined where they are too many. */
async function write(
  file: string,
  directory: string,
  paths: readonly string[],
  signal: AbortSignal | undefined,
  bytesMax: number,
): Promise<number | undefined> {
  const { Pack } = await import('tar');
  let isOver = false;
  // Not `create`, which takes a path that begins with @ for another archive.
  const pack = new Pack({
    cwd: directory,
    gzip: true,
    portable: true,
    mtime: FILE_TIME,
    noDirRecurse: true,
    filter: () => !isOver,
  });
  // It listens by itself only while the loop waits for a chunk; a file that is gone meanwhile would end the process.
  pack.on('error', () => undefined);
  const handle = await open(file, 'wx', 0o600);
  let bytes = 0;
  try {
    for (const path of paths) pack.add(path);
    pack.end();
    for await (const chunk of pack) {
      signal?.throwIfAborted();
      bytes += chunk.length;
      if (bytes > bytesMax) return undefined;
      await handle.write(chunk);
    }
    return bytes;
  } finally {
    // It closes the files that it has open, at most four, when they are read to their end.
    isOver = true;
    pack.resume();
    await handle.close();
  }
}

async function isGzip(path: string): Promise<boolean> {
  const handle = await open(path);
  try {
    const { buffer } = await handle.read(Buffer.alloc(GZIP.length), 0, GZIP.length, 0);
    return GZIP.every((byte, index) => buffer[index] === byte);
  } finally {
    await handle.close();
  }
}

function tooLarge(call: string, bytesMax: number): InvalidRequestError {
  const advice = 'name what the build does not need in .gitignore or .dockerignore';
  return refused(call, `The archive is larger than ${bytesMax / 1024 / 1024} MiB; ${advice}`);
}

function refused(call: string, msg: string): InvalidRequestError {
  const errors: ValidationError[] = [mistake(['source'], msg)];
  return new InvalidRequestError(call, errors);
}
