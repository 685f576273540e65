import { createWriteStream } from 'node:fs';
import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createGzip } from 'node:zlib';
import { ignoreErrors } from '../../../base/guard.ts';
import { cut } from '../../../base/text.ts';
import { InvalidRequestError } from '../../errors.ts';
import { sourceFiles } from './source-files.ts';

/** Maximum archive size that the service accepts, in bytes. */
export const ARCHIVE_BYTES_MAX: number = 200 * 1024 * 1024;

/** Modification time of all files in the archive. With a fixed time, archives of the same source are identical. */
const FILE_TIME = new Date('1985-10-26T08:15:00Z');

const GZIP = [0x1f, 0x8b];
const PATH_SHOWN_MAX = 300;

export interface SourceArchive {
  readonly path: string;
  readonly bytes: number;
  /** Deletes the archive's temporary files. */
  readonly remove: () => Promise<void>;
}

/**
 * Packs a directory, or returns an existing tarball unchanged. Rejects with an InvalidRequestError if the path is
 * neither a directory nor a tarball.
 */
export async function sourceArchive(
  call: string,
  given: string | URL,
  signal: AbortSignal | undefined,
  bytesMax: number = ARCHIVE_BYTES_MAX,
): Promise<SourceArchive> {
  const path = given instanceof URL ? ignoreErrors(() => fileURLToPath(given)) : given;
  if (typeof path !== 'string') throw sourceError(call, 'Expected a path, or a URL that starts with file:');
  const stats = await stat(path).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') throw sourceError(call, `${cut(path, PATH_SHOWN_MAX)} does not exist`);
  });
  if (stats?.isDirectory()) return packDirectory(call, path, signal, bytesMax);
  if (!stats?.isFile()) throw sourceError(call, 'Expected the path of a directory or a tarball');
  if (stats.size > bytesMax) throw sizeError(call, bytesMax);
  if (!(await isGzip(path))) throw sourceError(call, 'Expected a directory or a tarball that is compressed with gzip');
  return { path, bytes: stats.size, remove: async () => undefined };
}

async function packDirectory(
  call: string,
  directory: string,
  signal: AbortSignal | undefined,
  bytesMax: number,
): Promise<SourceArchive> {
  const { paths, errors } = await sourceFiles(directory, signal);
  if (errors.length > 0) throw new InvalidRequestError(call, errors);
  if (paths.length === 0) throw sourceError(call, 'The directory contains no files, or all files are ignored');
  const folder = await mkdtemp(join(tmpdir(), 'runspan-source-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const path = join(folder, 'source.tar.gz');
    let bytes = 0;
    await pipeline(
      await tarball(directory, paths),
      createGzip(),
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          signal?.throwIfAborted();
          bytes += chunk.length;
          if (bytes > bytesMax) throw sizeError(call, bytesMax);
          yield chunk;
        }
      },
      createWriteStream(path, { flags: 'wx', mode: 0o600 }),
    );
    return { path, bytes, remove };
  } catch (thrown) {
    await remove();
    throw thrown;
  }
}

/**
 * Creates a reproducible archive. The bytes depend only on the paths, contents and execute permissions of the files.
 */
async function tarball(directory: string, paths: readonly string[]): Promise<NodeJS.ReadableStream> {
  const { packTar } = await import('modern-tar/fs');
  const owner = { uid: 0, gid: 0, uname: '', gname: '' };
  const sources = paths.map((path) => {
    return { type: 'file', source: join(directory, path), target: path, mtime: FILE_TIME, ...owner } as const;
  });
  const map = (header: TarHeader): TarHeader => ({ ...header, mode: ((header.mode ?? 0) | 0o600) & 0o755 });
  return packTar(sources, { map, concurrency: 4 });
}

type TarHeader = Parameters<NonNullable<NonNullable<Parameters<typeof import('modern-tar/fs').packTar>[1]>['map']>>[0];

async function isGzip(path: string): Promise<boolean> {
  const handle = await open(path);
  try {
    const { buffer } = await handle.read(Buffer.alloc(GZIP.length), 0, GZIP.length, 0);
    return GZIP.every((byte, index) => buffer[index] === byte);
  } finally {
    await handle.close();
  }
}

function sizeError(call: string, bytesMax: number): InvalidRequestError {
  const advice = 'list files that the build does not need in .gitignore or .dockerignore';
  return sourceError(call, `The archive is larger than ${bytesMax / 1024 / 1024} MiB; ${advice}`);
}

function sourceError(call: string, msg: string): InvalidRequestError {
  return new InvalidRequestError(call, [{ loc: ['source'], msg, type: 'value_error' }]);
}
