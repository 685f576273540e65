import type { Stats } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { SpoolFs } from '#src/delivery/spool/fs.ts';

interface File {
  bytes: Buffer;
  mtimeMs: number;
  links: number;
}

/** Called before each operation that writes. An error that it throws is the error of the operation. */
export type Obstacle = (call: string, path: string) => void;

/** A disk in memory that several simulated processes share. */
export class MemoryDisk {
  readonly #folders = new Set<string>(['/']);
  readonly #files = new Map<string, File>();
  #processes = 0;
  nowMs = 1_750_000_000_000;
  /** Makes writes fail. Reads and deletions still succeed. */
  obstacle: Obstacle = () => {};
  /** The capacity for the bytes of files. A write beyond it writes only a part. */
  bytesMax: number = Number.POSITIVE_INFINITY;

  get files(): string[] {
    return [...this.#files.keys()];
  }

  get bytes(): number {
    return [...this.#files.values()].reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  get text(): string {
    return [...this.#files.values()].map(({ bytes }) => bytes.toString('latin1')).join('\n');
  }

  /** Replaces the bytes of a file. By default, flips a bit of the last byte. */
  damage(path: string, harm: (bytes: Buffer) => Buffer = flipLastBit): void {
    const file = this.#files.get(path);
    if (file === undefined) throw new Error(`there is no ${path}`);
    file.bytes = harm(Buffer.from(file.bytes));
  }

  /** Creates a file of another program. */
  plant(path: string, bytes: Buffer): void {
    this.#files.set(path, { bytes, mtimeMs: this.nowMs, links: 1 });
  }

  read(path: string): Buffer {
    return Buffer.from(this.#files.get(path)?.bytes ?? []);
  }

  wipe(): void {
    for (const file of this.#files.values()) file.links = 0;
    this.#files.clear();
    this.#folders.clear();
    this.#folders.add('/');
  }

  remove(path: string): void {
    this.#files.delete(path);
  }

  /**
   * Returns the file system of a new process. All processes have the same id and different start times. After `die` is
   * called, all operations of the process fail.
   */
  process(namespace = '1'): { readonly fs: SpoolFs; readonly die: () => void } {
    const view = this.#view(String(++this.#processes), namespace);
    let isDead = false;
    const fs = new Proxy(view, {
      get: (target, name: keyof SpoolFs) => (isDead ? () => fail('EIO', 'of a dead process') : target[name]),
    });
    const die = (): void => {
      isDead = true;
      // The next process starts when this one counts as dead.
      this.nowMs += 11_000;
    };
    return { fs, die };
  }

  #view(startTime: string, namespace: string): SpoolFs {
    const files = this.#files;
    const folders = this.#folders;
    const open = new Map<number, { path: string; file: File }>();
    let fds = 100;
    const missing = (path: string): never => fail('ENOENT', path);
    const fileAt = (path: string): File => files.get(path) ?? missing(path);
    const fs = {
      mkdirSync: (path: string, { recursive = false }: { recursive?: boolean } = {}) => {
        if (folders.has(path)) return recursive ? undefined : fail('EEXIST', path);
        this.obstacle('mkdir', path);
        if (recursive) for (let at = path; at !== '/'; at = dirname(at)) folders.add(at);
        else if (folders.has(dirname(path))) folders.add(path);
        else missing(path);
        return undefined;
      },
      openSync: (path: string, flags: number) => {
        const isNew = (flags & 0o100) !== 0;
        if (isNew) {
          if (files.has(path)) fail('EEXIST', path);
          this.obstacle('open', path);
          if (!folders.has(dirname(path))) missing(path);
          files.set(path, { bytes: Buffer.alloc(0), mtimeMs: this.nowMs, links: 1 });
        }
        open.set(++fds, { path, file: fileAt(path) });
        return fds;
      },
      writeSync: (fd: number, bytes: Uint8Array) => {
        const { path, file } = open.get(fd) ?? fail('EBADF', String(fd));
        this.obstacle('write', path);
        const fitting = bytes.subarray(0, this.bytesMax - this.bytes);
        if (fitting.length === 0) fail('ENOSPC', path);
        file.bytes = Buffer.concat([file.bytes, fitting]);
        file.mtimeMs = this.nowMs;
        return fitting.length;
      },
      ftruncateSync: (fd: number, length: number) => {
        const { file } = open.get(fd) ?? fail('EBADF', String(fd));
        file.bytes = file.bytes.subarray(0, length);
      },
      closeSync: (fd: number) => void open.delete(fd),
      fstatSync: (fd: number) => statsOf((open.get(fd) ?? fail('EBADF', String(fd))).file),
      lstatSync: (path: string) => {
        if (folders.has(path)) return statsOf(undefined);
        return statsOf(fileAt(path));
      },
      readFileSync: (from: number | string) => {
        if (typeof from === 'number') return Buffer.from((open.get(from) ?? fail('EBADF', String(from))).file.bytes);
        // Field 22 is the start time.
        return `1 (node) S ${'0 '.repeat(18)}${startTime} 0`;
      },
      readdirSync: (path: string) => {
        if (!folders.has(path)) return missing(path);
        return [...files.keys(), ...folders]
          .filter((at) => at !== '/' && dirname(at) === path)
          .map((at) => basename(at));
      },
      readlinkSync: () => `pid:[${namespace}]`,
      renameSync: (from: string, to: string) => {
        const file = fileAt(from);
        if (!folders.has(dirname(to))) missing(to);
        files.delete(from);
        files.set(to, file);
      },
      rmdirSync: (path: string) => {
        if (!folders.has(path)) missing(path);
        if (fs.readdirSync(path).length > 0) fail('ENOTEMPTY', path);
        folders.delete(path);
      },
      unlinkSync: (path: string) => {
        fileAt(path).links = 0;
        files.delete(path);
      },
      utimesSync: (path: string, _: number, seconds: number) => {
        fileAt(path).mtimeMs = seconds * 1_000;
      },
    };
    return fs as unknown as SpoolFs;
  }
}

export function fail(code: string, path: string): never {
  throw Object.assign(new Error(`${code}: ${path}`), { code });
}

function statsOf(file: File | undefined): Stats {
  return {
    isFile: () => file !== undefined,
    isDirectory: () => file === undefined,
    isSymbolicLink: () => false,
    uid: process.getuid?.() ?? 0,
    size: file?.bytes.length ?? 0,
    mtimeMs: file?.mtimeMs ?? 0,
    nlink: file?.links ?? 1,
  } as Stats;
}

/** The folder of spools on a memory disk. */
export const MEMORY_SPOOL: string = join('/', 'spool');

function flipLastBit(bytes: Buffer): Buffer {
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
  return bytes;
}
