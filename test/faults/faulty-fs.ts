import { expect } from 'vitest';
import type { SpoolFs } from '#src/delivery/spool/fs.ts';
import { World } from '../delivery/model/world.ts';
import { fail } from '../support/memory-fs.ts';
import { virtualClock } from '../support/virtual-timers.ts';

export const FS_FAULTS = ['ENOSPC', 'EIO', 'EACCES', 'EMFILE', 'EROFS', 'ENOENT', 'short write'] as const;
export type FsFault = (typeof FS_FAULTS)[number];

type AnyCall = (...args: unknown[]) => unknown;

/** A failed disk is tried again after this time. */
const RETRY_MS = 60_000;

/** Additional processes that may follow, to take over what a failed call has left. */
const MORE_PROCESSES = 3;

/** Stands between processes and their disk. Counts all calls, and makes one fail. */
class FaultyFs {
  readonly calls: string[] = [];
  readonly #failingCall: number;
  readonly #fault: FsFault | undefined;
  readonly #failed: () => void;

  /** Only counts if no fault is given. */
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

/** Returns the names of the calls of three processes on a disk that works. */
export async function callsOf(durability: 'spill' | 'write-ahead'): Promise<readonly string[]> {
  const fs = new FaultyFs();
  const world = new World(durability, { limits: {}, throughFs: fs.through });
  await threeProcesses(world);
  expect(world.missing()).toEqual([]);
  return fs.calls;
}

/** Makes one call in three processes fail. Expects that every missing run was reported or not promised. */
export async function failAt(durability: 'spill' | 'write-ahead', index: number, fault: FsFault): Promise<World> {
  let failedAtMs = Number.NEGATIVE_INFINITY;
  const fs = new FaultyFs(index, fault, () => {
    failedAtMs = virtualClock.nowMs;
  });
  const isDiskSound = (): boolean => virtualClock.nowMs - failedAtMs > RETRY_MS;
  const world = new World(durability, { limits: {}, throughFs: fs.through, isDiskSound });
  const where = `${fault} at call ${index}`;
  try {
    await threeProcesses(world);
  } catch (thrown) {
    throw new Error(where, { cause: thrown });
  }
  expect(failedAtMs, where).toBeGreaterThanOrEqual(0);
  expect(world.missing(), where).toEqual([]);
  expect(world.isEmpty, where).toBe(true);
  return world;
}

/**
 * Records runs in three processes: one is killed in an outage, one exits in another outage, and one delivers what is
 * left.
 */
async function threeProcesses(world: World): Promise<void> {
  const many = async (count: number): Promise<void> => {
    for (let run = 0; run < count; run++) world.whole(0);
    await pass(world, 250);
  };
  await many(3);
  world.start(0, 'long');
  await pass(world, 1_000);
  world.turnTo(0, 'down');
  await many(5);
  world.start(0, 'never ended');
  await pass(world, 6_000);
  world.end(0, 0);
  await many(2);
  await pass(world, RETRY_MS + 1);
  await many(3);
  await pass(world, 6_000);
  world.crash();

  await many(2);
  await pass(world, RETRY_MS + 1);
  world.turnTo(0, 'up');
  await pass(world, RETRY_MS + 1);
  world.flush(0, 1_000);
  await pass(world, 1_000);
  world.turnTo(0, 'down');
  await many(8);
  await pass(world, 6_000);
  await many(1);
  world.exit();

  world.turnTo(0, 'up');
  await many(2);
  await pass(world, RETRY_MS + 1);
  await world.drain();
  await world.close(0);
  for (let more = 0; more < MORE_PROCESSES && !world.isEmpty; more++) {
    await world.drain();
    await world.close(0);
  }
}

async function pass(world: World, ms: number): Promise<void> {
  await world.advance(ms);
  world.check();
}
