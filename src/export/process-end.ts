import { monotonicNowMs } from '../base/clock.ts';
import { guard } from '../base/guard.ts';
import { nodeModule } from '../base/node.ts';
import { setSoon } from '../base/timers.ts';

/** Methods of an exporter that are called when the process ends. */
export interface EndingExporter {
  readonly isSettled: boolean;
  /** Delivers runs for up to `timeoutMs`. Never rejects. */
  finish(limit: { timeoutMs: number }): Promise<{ readonly ok: boolean }>;
  /** Synchronously writes undelivered runs to disk. Drops runs that cannot be written. */
  endProcess(): void;
}

/**
 * Maximum number of flushes when the process ends. Node emits `beforeExit` again after each flush, so an application
 * that records runs in a `beforeExit` listener would otherwise never end.
 */
const FLUSHES_MAX = 3;

/**
 * If the event loop has been idle for longer than this since the last flush, the program has resumed work after
 * `beforeExit`, and the next flush gets the full time limit again. Idle time is used because, unlike elapsed time, it
 * does not depend on the machine's load.
 */
const CONTINUED_IDLE_MS = 10;

/** Limits how long an exporter's flushes delay the end of the process. */
class Allowance {
  readonly limitMs: number;
  #leftMs = 0;
  #flushes = 0;
  #idleMs = Number.NEGATIVE_INFINITY;

  constructor(limitMs: number) {
    this.limitMs = limitMs;
  }

  async flush(exporter: EndingExporter): Promise<void> {
    if (exporter.isSettled) return;
    if (idleMs() - this.#idleMs > CONTINUED_IDLE_MS) {
      this.#leftMs = this.limitMs;
      this.#flushes = 0;
    }
    if (this.#flushes >= FLUSHES_MAX || this.#leftMs === 0) return;
    this.#flushes++;
    const startedAtMs = monotonicNowMs();
    const { ok } = await exporter.finish({ timeoutMs: this.#leftMs });
    // A failed flush is not repeated.
    this.#leftMs = ok ? Math.max(0, this.#leftMs - (monotonicNowMs() - startedAtMs)) : 0;
    this.#idleMs = idleMs();
  }
}

/** Bun does not measure idle time. On Bun, all time since the last flush counts as idle. */
function idleMs(): number {
  return performance.eventLoopUtilization?.().idle ?? monotonicNowMs();
}

/** Open exporters that have received a run, with their time limits. */
const allowances = new Map<EndingExporter, Allowance>();

/**
 * Flushes the exporter for up to `limitMs` when the process is about to exit. With `handlesSignals`, a signal flushes
 * all exporters and then ends the process. A signal that the application listens for is not handled. When the process
 * exits, undelivered runs are written to disk, and runs that cannot be written are dropped.
 */
export function flushAtEnd(exporter: EndingExporter, limitMs: number, handlesSignals: boolean): void {
  if (allowances.size === 0) {
    process.on('beforeExit', flushAll);
    process.on('exit', exitAll);
  }
  allowances.set(exporter, new Allowance(limitMs));
  // Only the main thread receives signals. On Windows, a process cannot end itself with a signal.
  if (!handlesSignals || !nodeModule('node:worker_threads').isMainThread || process.platform === 'win32') return;
  signalHandlers.add(exporter);
  for (const signal of SIGNALS) listenFor(signal);
}

export function forgetAtEnd(exporter: EndingExporter): void {
  allowances.delete(exporter);
  if (allowances.size === 0) {
    process.off('beforeExit', flushAll);
    process.off('exit', exitAll);
  }
  if (signalHandlers.delete(exporter) && signalHandlers.size === 0) removeSignalListeners();
}

/** Flushes after all other `beforeExit` listeners, so that the runs they record are delivered. */
function flushAll(): void {
  queueMicrotask(() => {
    for (const [exporter, allowance] of allowances) void allowance.flush(exporter);
  });
}

function exitAll(): void {
  for (const exporter of allowances.keys()) exporter.endProcess();
}

const SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** Exporters whose `handleSignals` option is true. */
const signalHandlers = new Set<EndingExporter>();
/** The signal that started a flush and afterwards ends the process. */
let pendingSignal: NodeJS.Signals | undefined;

function onSignal(signal: NodeJS.Signals): void {
  if (pendingSignal !== undefined) endBy(pendingSignal);
  else if (process.listenerCount(signal) > 1) stepAside(signal);
  else {
    pendingSignal = signal;
    // Also flushes exporters without `handleSignals`, because the signal ends the whole process.
    const flushes = [...allowances].map(([exporter, { limitMs }]) => exporter.finish({ timeoutMs: limitMs }));
    // Another copy of the package may have removed its listener until the next turn of the event loop, in which it
    // listens again and delivers its own runs. This process must not end earlier.
    const nextTurn = new Promise<void>((resolve) => setSoon(resolve));
    void Promise.allSettled([...flushes, nextTurn]).then(() => endBy(signal));
  }
}

/**
 * Removes the listener until the next turn of the event loop, because packages such as `signal-exit` end the process
 * only if the signal has no other listener.
 */
function stepAside(signal: NodeJS.Signals): void {
  process.off(signal, onSignal);
  setSoon(() => listenFor(signal)).unref();
}

function endBy(signal: NodeJS.Signals): void {
  if (pendingSignal === undefined) return;
  pendingSignal = undefined;
  // Signals have no default action for a container's process 1.
  if (process.pid === 1) return;
  removeSignalListeners();
  if (process.listenerCount(signal) > 0) {
    // A listener that was added during the flush, for example by another copy of the package, handles the signal.
    setSoon(listenIfAlone).unref();
  } else {
    guard('signal', exitAll);
    guard('signal', restoreTerminal);
  }
  process.kill(process.pid, signal);
}

/** Turns off the terminal's raw mode. Node restores the terminal only if the signal never had a listener. */
function restoreTerminal(): void {
  if (nodeModule('node:tty').isatty(0)) process.stdin.setRawMode(false);
}

function listenIfAlone(): void {
  for (const signal of SIGNALS) if (process.listenerCount(signal) === 0) listenFor(signal);
}

function listenFor(signal: NodeJS.Signals): void {
  if (signalHandlers.size === 0 || process.listeners(signal).includes(onSignal)) return;
  process.prependListener(signal, onSignal);
}

function removeSignalListeners(): void {
  for (const signal of SIGNALS) process.off(signal, onSignal);
}
