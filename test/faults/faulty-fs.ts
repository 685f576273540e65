import type { SpoolFs } from '../../src/export/spool/fs.ts';
import { fail } from '../support/memory-fs.ts';

/** What a call to the file system may come to. */
export const FS_FAULTS = ['ENOSPC', 'EIO', 'EACCES', 'EMFILE', 'EROFS', 'ENOENT', 'short write'] as const;
export type FsFault = (typeof FS_FAULTS)[number];

type AnyCall = (...args: unknown[]) => unknown;

/** Stands between processes and their disk, counts the calls of them all, and fails one. */
export class FaultyFs {
  /** The calls in their order, by name. */
  readonly calls: string[] = [];
  readonly #failingCall: number;
  readonly #fault: FsFault | undefined;
  readonly #failed: () => void;

  /** Without a fault it counts only. */
  constructor(failingCall = -1, fault?: FsFault, failed: () => void = () => {}) {
    this.#failingCall = failingCall;
    this.#fault = fault;
    this.#failed = failed;
  }

  readonly through = (fs: SpoolFs): SpoolFs =>
    new Proxy(fs, {
      get:
        (target, name: keyof SpoolFs) =>
        (...args: unknown[]) => {
          const call = target[name] as AnyCall;
          return this.calls.push(name) - 1 === this.#failingCall ? this.#fail(call, args) : call(...args);
        },
    });

  #fail(call: AnyCall, args: unknown[]): unknown {
    this.#failed();
    if (this.#fault !== 'short write') return fail(this.#fault ?? 'EIO', String(args[0]));
    const [fd, bytes] = args as [number, Uint8Array];
    return call(fd, bytes.subarray(0, Math.floor(bytes.length / 2)));
  }
}
