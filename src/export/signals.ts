import { isatty } from 'node:tty';
import { isMainThread } from 'node:worker_threads';
import { guard } from '../base/guard.ts';
import { setSoon } from '../base/timers.ts';
import { tellAll } from './exit.ts';
import type { Exporter } from './exporter.ts';

/** Those that ask a process to end. */
const SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** Signals reach the main thread alone, and on Windows no process can end itself by one. */
const CAN_END_BY_SIGNAL = isMainThread && process.platform !== 'win32';

/** The exporters that asked for it, and how long each may hold the end of the process. */
const flushLimitsMs = new Map<Exporter, number>();
/** The signal by which the process ends as soon as everything is delivered. */
let ending: NodeJS.Signals | undefined;

/**
 * Delivers what is queued when a signal would end the process, within the exporter's limit, and then lets it end by the same
 * signal. Where the application listens for a signal itself, ending is its own affair. The listeners are there while there is
 * an exporter with runs.
 */
export function flushOnSignals(exporter: Exporter, limitMs: number): void {
  if (!CAN_END_BY_SIGNAL) return;
  flushLimitsMs.set(exporter, limitMs);
  for (const signal of SIGNALS) listen(signal);
}

/** The exporter has closed, and needs nothing any more. */
export function forgetOnSignals(exporter: Exporter): void {
  if (flushLimitsMs.delete(exporter) && flushLimitsMs.size === 0) leave();
}

function onSignal(signal: NodeJS.Signals): void {
  if (ending !== undefined) end(ending);
  else if (process.listenerCount(signal) > 1) stepAside(signal);
  else {
    ending = signal;
    const flushes = [...flushLimitsMs].map(([exporter, timeoutMs]) => exporter.finish({ timeoutMs }));
    // If another copy of the package has removed its listener, it listens again by the next turn of the event loop and
    // delivers its runs.
    const nextTurn = new Promise<void>((resolve) => setSoon(resolve));
    void Promise.allSettled([...flushes, nextTurn]).then(() => end(signal));
  }
}

/**
 * There are packages that end the process by the signal if no listener but their own is there (`signal-exit`). We are called
 * first, and are not there when they look.
 */
function stepAside(signal: NodeJS.Signals): void {
  process.off(signal, onSignal);
  setSoon(() => listen(signal)).unref();
}

function end(signal: NodeJS.Signals): void {
  if (ending === undefined) return;
  ending = undefined;
  // The first process of a container has no default for signals: it lives on, with or without us.
  if (process.pid === 1) return;
  leave();
  if (process.listenerCount(signal) > 0) {
    // Somebody has begun to listen meanwhile, another copy of the package perhaps, and decides what comes of the signal.
    setSoon(listenWhereNobodyDoes).unref();
  } else {
    guard('signal', tellAll);
    guard('signal', restoreTerminal);
  }
  process.kill(process.pid, signal);
}

/** What Node does itself when nobody listens. A listener has taken the place of that for good. */
function restoreTerminal(): void {
  if (isatty(0)) process.stdin.setRawMode(false);
}

function listenWhereNobodyDoes(): void {
  for (const signal of SIGNALS) if (process.listenerCount(signal) === 0) listen(signal);
}

function listen(signal: NodeJS.Signals): void {
  if (flushLimitsMs.size === 0 || process.listeners(signal).includes(onSignal)) return;
  process.prependListener(signal, onSignal);
}

function leave(): void {
  for (const signal of SIGNALS) process.off(signal, onSignal);
}
