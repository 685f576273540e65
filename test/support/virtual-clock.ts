export class VirtualTimer {
  dueMs: number;
  readonly callback: () => void;
  readonly #restart: (timer: VirtualTimer) => void;

  constructor(dueMs: number, callback: () => void, restart: (timer: VirtualTimer) => void) {
    this.dueMs = dueMs;
    this.callback = callback;
    this.#restart = restart;
  }

  refresh(): this {
    this.#restart(this);
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** A clock that a test advances, with its timers. */
export class VirtualClock {
  /** Sorted by due time. */
  #timers: VirtualTimer[] = [];
  #nowMs = 0;

  get nowMs(): number {
    return this.#nowMs;
  }

  readonly setTimeout = (callback: () => void, ms = 0): VirtualTimer => {
    const restart = (timer: VirtualTimer): void => {
      this.clearTimeout(timer);
      timer.dueMs = this.#nowMs + Math.max(1, ms);
      const at = this.#timers.findLastIndex(({ dueMs }) => dueMs <= timer.dueMs);
      this.#timers.splice(at + 1, 0, timer);
    };
    const timer = new VirtualTimer(0, callback, restart);
    restart(timer);
    return timer;
  };

  readonly clearTimeout = (timer: VirtualTimer | undefined): void => {
    const at = timer === undefined ? -1 : this.#timers.indexOf(timer);
    if (at >= 0) this.#timers.splice(at, 1);
  };

  /** The due time of the next timer, or undefined without timers. */
  get nextMs(): number | undefined {
    return this.#timers[0]?.dueMs;
  }

  /**
   * Calls the timers that become due. `pass` waits for the work of all timers that are due at the same time, as Node calls
   * them in one turn of its event loop.
   */
  async advance(ms: number, pass: () => Promise<void> = turn): Promise<void> {
    const endMs = this.#nowMs + ms;
    for (let next = this.#timers[0]; next !== undefined && next.dueMs <= endMs; next = this.#timers[0]) {
      this.#timers.shift();
      this.#nowMs = next.dueMs;
      next.callback();
      await (this.#timers[0]?.dueMs === this.#nowMs ? undefined : pass());
    }
    this.#nowMs = endMs;
  }

  clear(): void {
    this.#timers = [];
  }

  /** Removes all timers and sets the time to 0. */
  reset(): void {
    this.clear();
    this.#nowMs = 0;
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const { setTimeout: ofNode, clearTimeout: clearOfNode } = globalThis;

export const virtualClock = new VirtualClock();

Object.assign(globalThis, { setTimeout: virtualClock.setTimeout, clearTimeout: virtualClock.clearTimeout });

export function restoreTimers(): void {
  Object.assign(globalThis, { setTimeout: ofNode, clearTimeout: clearOfNode });
}
