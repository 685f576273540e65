import { monotonicNowMs } from '../base/clock.ts';
import { guard } from '../base/guard.ts';
import { nodeModule } from '../base/node.ts';
import { setSoon } from '../base/timers.ts';

/** The part of an exporter that is used when the process ends. */
export interface EndingExporter {
  /** Whether nothing is left to deliver. */
  readonly isSettled: boolean;
  /** Delivers as much as possible within the limit. Never rejects. */
  finish(limit: { timeoutMs: number }): Promise<{ readonly ok: boolean }>;
  /** Keeps or drops what is left. Synchronous, because the process ends right after. */
  endProcess(): void;
}

/**
 * Maximum number of flushes at one end of the process. Each flush lets the event loop turn, after which Node emits
 * `beforeExit` again. An application that traces in a `beforeExit` listener would otherwise never end.
 */
const FLUSHES_MAX = 3;

/** After this much idle time beside our own flushes, the event loop had other work, and the process ends anew. */
const SAME_END_IDLE_MS = 10;

/** Time that an exporter may still delay the end of the process. */
class Allowance {
  readonly #limitMs: number;
  #leftMs = 0;
  #flushes = 0;
  #idleMs = Number.NEGATIVE_INFINITY;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  async flush(exporter: EndingExporter): Promise<void> {
    if (exporter.isSettled) return;
    if (idleMs() - this.#idleMs > SAME_END_IDLE_MS) {
      this.#leftMs = this.#limitMs;
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

function idleMs(): number {
  return performance.eventLoopUtilization().idle;
}

/** The exporters that have received a run and are not closed. */
const allowances = new Map<EndingExporter, Allowance>();

/**
 * Flushes the exporter for at most `limitMs` when the process ends by itself and, if `handlesSignals`, when a signal would end
 * it. The process then ends by the same signal. If the application listens for the signal, nothing is done. Runs that are left
 * when the process exits are kept on disk or dropped. The listeners exist only while there is such an exporter.
 */
export function flushAtEnd(exporter: EndingExporter, limitMs: number, handlesSignals: boolean): void {
  if (allowances.size === 0) {
    process.on('beforeExit', flushAll);
    process.on('exit', exitAll);
  }
  allowances.set(exporter, new Allowance(limitMs));
  // Only the main thread receives signals. On Windows, a process cannot end itself by a signal.
  if (!handlesSignals || !nodeModule('node:worker_threads').isMainThread || process.platform === 'win32') return;
  signalLimitsMs.set(exporter, limitMs);
  for (const signal of SIGNALS) listenFor(signal);
}

export function forgetAtEnd(exporter: EndingExporter): void {
  allowances.delete(exporter);
  if (allowances.size === 0) {
    process.off('beforeExit', flushAll);
    process.off('exit', exitAll);
  }
  if (signalLimitsMs.delete(exporter) && signalLimitsMs.size === 0) removeSignalListeners();
}

/** Runs after all other listeners of the event, so that runs which they record are delivered too. */
function flushAll(): void {
  queueMicrotask(() => {
    for (const [exporter, allowance] of allowances) void allowance.flush(exporter);
  });
}

function exitAll(): void {
  for (const exporter of allowances.keys()) exporter.endProcess();
}

const SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** The exporters that handle signals, and how long each may delay the end of the process. */
const signalLimitsMs = new Map<EndingExporter, number>();
/** The signal by which the process ends once the exporters have flushed. */
let pendingSignal: NodeJS.Signals | undefined;

function onSignal(signal: NodeJS.Signals): void {
  if (pendingSignal !== undefined) endBy(pendingSignal);
  else if (process.listenerCount(signal) > 1) stepAside(signal);
  else {
    pendingSignal = signal;
    const flushes = [...signalLimitsMs].map(([exporter, timeoutMs]) => exporter.finish({ timeoutMs }));
    // If another copy of the package has removed its listener, it listens again by the next turn of the event loop and
    // delivers its runs.
    const nextTurn = new Promise<void>((resolve) => setSoon(resolve));
    void Promise.allSettled([...flushes, nextTurn]).then(() => endBy(signal));
  }
}

/**
 * Removes the listener for the rest of this event. Packages such as `signal-exit` end the process by the signal only if
 * theirs is the only listener.
 */
function stepAside(signal: NodeJS.Signals): void {
  process.off(signal, onSignal);
  setSoon(() => listenFor(signal)).unref();
}

function endBy(signal: NodeJS.Signals): void {
  if (pendingSignal === undefined) return;
  pendingSignal = undefined;
  // Signals have no default action for the first process of a container, so it goes on.
  if (process.pid === 1) return;
  removeSignalListeners();
  if (process.listenerCount(signal) > 0) {
    // A listener was added during the flush, for example by another copy of the package. It decides what the signal does.
    setSoon(listenIfAlone).unref();
  } else {
    guard('signal', exitAll);
    guard('signal', restoreTerminal);
  }
  process.kill(process.pid, signal);
}

/** Node restores the terminal only if there has never been a listener for the signal. */
function restoreTerminal(): void {
  if (nodeModule('node:tty').isatty(0)) process.stdin.setRawMode(false);
}

function listenIfAlone(): void {
  for (const signal of SIGNALS) if (process.listenerCount(signal) === 0) listenFor(signal);
}

function listenFor(signal: NodeJS.Signals): void {
  if (signalLimitsMs.size === 0 || process.listeners(signal).includes(onSignal)) return;
  process.prependListener(signal, onSignal);
}

function removeSignalListeners(): void {
  for (const signal of SIGNALS) process.off(signal, onSignal);
}
