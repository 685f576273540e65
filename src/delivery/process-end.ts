import { monotonicNowMs } from '../base/clock.ts';
import { guard } from '../base/guard.ts';
import { SIGNALS } from '../config/options.ts';
import { nodeModule, setImmediate } from '../platform/node.ts';
import { setSoon } from '../platform/timers.ts';
import { releaseAll } from '../run/delayed-ends.ts';

/** The exporter methods that are called when the process ends. */
export interface EndingExporter {
  readonly isSettled: boolean;
  /** Number of starts and ends of runs that the application has recorded so far. */
  readonly records: number;
  /** Delivers runs for up to `timeoutMs`, and open runs as interrupted if `interrupts`. Never rejects. */
  finish(limit: { timeoutMs: number }, interrupts?: boolean): Promise<{ readonly ok: boolean }>;
  /** Synchronously writes undelivered runs to disk, and drops runs that cannot be written. */
  endProcess(): void;
}

/**
 * Maximum number of flushes when the process ends. Node emits `beforeExit` again after each flush. Without this limit,
 * an application that records runs in a `beforeExit` listener would never end.
 */
const FLUSHES_MAX = 3;

/** Limits how long an exporter's flushes delay the end of the process. */
class Allowance {
  readonly limitMs: number;
  #leftMs: number;
  #flushes = 0;
  /** Number of records when the `beforeExit` listeners had been called. */
  #records = 0;

  constructor(limitMs: number) {
    this.limitMs = limitMs;
    this.#leftMs = limitMs;
  }

  /**
   * Gives the next flush the full time limit if the program has recorded since the last `beforeExit`. Called before the
   * listeners: what they record does not show that the program goes on, because each flush makes Node call them again.
   */
  renew({ records }: EndingExporter): void {
    if (records === this.#records) return;
    this.#leftMs = this.limitMs;
    this.#flushes = 0;
  }

  async flush(exporter: EndingExporter): Promise<void> {
    this.#records = exporter.records;
    if (exporter.isSettled || this.#flushes >= FLUSHES_MAX || this.#leftMs === 0) return;
    this.#flushes++;
    const startedAtMs = monotonicNowMs();
    const { ok } = await exporter.finish({ timeoutMs: this.#leftMs });
    // A failed flush is not repeated.
    this.#leftMs = ok ? Math.max(0, this.#leftMs - (monotonicNowMs() - startedAtMs)) : 0;
  }
}

/** Time limits of all open exporters that have recorded a run. */
const allowances = new Map<EndingExporter, Allowance>();

/**
 * Flushes the exporter for up to `limitMs` when the process is about to exit. Each of `signals` flushes all exporters and
 * then ends the process. Signals that the application listens for are ignored. When the process exits, undelivered runs
 * are written to disk or dropped.
 */
export function flushAtEnd(exporter: EndingExporter, limitMs: number, signals: readonly NodeJS.Signals[]): void {
  if (allowances.size === 0) {
    process.prependListener('beforeExit', flushAll);
    process.on('exit', exitAll);
  }
  allowances.set(exporter, new Allowance(limitMs));
  // Only the main thread receives signals, and Windows processes cannot end themselves with a signal.
  if (signals.length === 0 || process.platform === 'win32' || !nodeModule('node:worker_threads').isMainThread) return;
  handledSignals.set(exporter, signals);
  listen();
}

export function forgetAtEnd(exporter: EndingExporter): void {
  allowances.delete(exporter);
  if (allowances.size === 0) {
    process.off('beforeExit', flushAll);
    process.off('exit', exitAll);
  }
  if (handledSignals.delete(exporter)) listen();
}

/** Called before all other `beforeExit` listeners. Flushes after them, because they may record runs. */
function flushAll(): void {
  for (const [exporter, allowance] of allowances) allowance.renew(exporter);
  queueMicrotask(() => {
    releaseAll();
    for (const [exporter, allowance] of allowances) void allowance.flush(exporter);
  });
}

function exitAll(): void {
  releaseAll();
  for (const exporter of allowances.keys()) exporter.endProcess();
}

const handledSignals = new Map<EndingExporter, readonly NodeJS.Signals[]>();
/** Signals that are no longer handled: another listener has received them, or they end the process. */
const leftAlone = new Set<NodeJS.Signals>();
/** The signal that started the current flush. After the flush, this signal ends the process. */
let pendingSignal: NodeJS.Signals | undefined;

/** Marks the listeners of all copies and versions of the package. */
const OURS = Symbol.for('runspan.signal-listener');
Object.assign(onSignal, { [OURS]: true });

function onSignal(signal: NodeJS.Signals | undefined): void {
  // The application has called `process.emit('SIGTERM')`, which does not end a process.
  if (signal === undefined) return;
  if (pendingSignal !== undefined) endBy(pendingSignal);
  else if (process.listenerCount(signal) > 1) stepAside(signal);
  else {
    pendingSignal = signal;
    // Flushes every exporter, because the signal ends the whole process. The decision on a held trace may give an exporter
    // its first run, which adds the exporter to the map during this loop.
    const flushes = Array.from(allowances, ([exporter, { limitMs }]) => exporter.finish({ timeoutMs: limitMs }, true));
    // Waits until the next turn of the event loop, in which another copy of the package may add its listener again, and
    // then delivers its own runs. Also, an error of another listener is then uncaught as without tracing.
    void Promise.allSettled(flushes).then(() => void setImmediate(() => endBy(signal)));
  }
}

/**
 * Removes the listener. Packages such as `signal-exit` end the process only if the signal has no other listeners, and
 * some check this only after their own work. If the others are those of copies of this package, it returns.
 */
function stepAside(signal: NodeJS.Signals): void {
  process.off(signal, onSignal);
  if (areOurs(signal)) setSoon(listen).unref();
  else leftAlone.add(signal);
}

function areOurs(signal: NodeJS.Signals): boolean {
  return process.listeners(signal).every((listener) => OURS in listener);
}

function endBy(signal: NodeJS.Signals): void {
  if (pendingSignal === undefined) return;
  pendingSignal = undefined;
  // In a container, signals do not end the process with id 1.
  if (process.pid === 1) return;
  leftAlone.add(signal);
  process.off(signal, onSignal);
  // If the application added a listener during the flush, that listener decides whether the process ends.
  if (areOurs(signal)) {
    guard('signal', exitAll);
    guard('signal', restoreTerminal);
  }
  // Without a listener that it can count, Node no longer watches the signal. Hidden ones, as of tsx, are called directly.
  const isHeard = process.rawListeners(signal).length > 0;
  if (isHeard) Reflect.apply(process.emit, process, [signal, signal, nodeModule('node:os').constants.signals[signal]]);
  else process.kill(process.pid, signal);
}

/** Turns off the terminal's raw mode. Node resets the terminal only if the signal never had a listener. */
function restoreTerminal(): void {
  if (nodeModule('node:tty').isatty(0)) process.stdin.setRawMode(false);
}

/** Listens for the signals that the open exporters handle, and for no other. */
function listen(): void {
  const wanted = new Set([...handledSignals.values()].flat());
  for (const signal of SIGNALS) {
    if (!wanted.has(signal) || leftAlone.has(signal)) process.off(signal, onSignal);
    else if (!process.listeners(signal).includes(onSignal)) process.prependListener(signal, onSignal);
  }
}
