/** A timer that waits, as its owner has it in hand. */
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

/** A time that passes when it is told to, with the timers that fall due in it, in their order. */
export class VirtualClock {
  /** Soonest first. */
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

  /** When the next timer is due; undefined when there is none. */
  get nextMs(): number | undefined {
    return this.#timers[0]?.dueMs;
  }

  /** As in Node, the work that a timer starts goes on before the next timer fires: `pass` waits for it. */
  async advance(ms: number, pass: () => Promise<void> = turn): Promise<void> {
    const endMs = this.#nowMs + ms;
    for (let next = this.#timers[0]; next !== undefined && next.dueMs <= endMs; next = this.#timers[0]) {
      this.#timers.shift();
      this.#nowMs = next.dueMs;
      next.callback();
      await pass();
    }
    this.#nowMs = endMs;
  }

  /** Forgets whoever waits, as when a process dies. */
  clear(): void {
    this.#timers = [];
  }

  /** Starts anew. */
  reset(): void {
    this.clear();
    this.#nowMs = 0;
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const { setTimeout: ofNode, clearTimeout: clearOfNode } = globalThis;

export const virtualClock = new VirtualClock();

/** From now on whoever takes Node's timers gets those of the clock. */
Object.assign(globalThis, { setTimeout: virtualClock.setTimeout, clearTimeout: virtualClock.clearTimeout });

/** Gives Node's timers back to the process. */
export function restoreTimers(): void {
  Object.assign(globalThis, { setTimeout: ofNode, clearTimeout: clearOfNode });
}
