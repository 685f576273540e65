import { createFile, type SpoolFs } from './spool-fs.ts';

/** A segment that is being written: whole frames at its end, and nothing half written as far as the disk allows. */
export class SegmentFile {
  readonly #fs: SpoolFs;
  readonly #fd: number;
  #bytes = 0;

  /** Creates the file; throws what the file system throws. */
  constructor(fs: SpoolFs, path: string) {
    this.#fs = fs;
    this.#fd = createFile(fs, path);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether it was deleted meanwhile; what is written to it then is on no disk. */
  get isLost(): boolean {
    return this.#fs.fstatSync(this.#fd).nlink === 0;
  }

  /** Throws when not all of it could be written, with nothing of it left in the file. */
  append(frames: Uint8Array): void {
    let written = 0;
    try {
      written = this.#fs.writeSync(this.#fd, frames);
    } finally {
      if (written < frames.byteLength) this.#truncate();
    }
    // A disk that is full, or a limit on the size of files, takes a part and says nothing.
    if (written < frames.byteLength) throw Object.assign(new Error('short write'), { code: 'ENOSPC' });
    this.#bytes += written;
  }

  close(): void {
    this.#fs.closeSync(this.#fd);
  }

  #truncate(): void {
    try {
      this.#fs.ftruncateSync(this.#fd, this.#bytes);
    } catch {
      // Whoever reads the file goes past what is half written.
    }
  }
}
