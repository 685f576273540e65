import { monotonicNowMs } from '../base/clock.ts';
import { ExitAllowance } from './exit-allowance.ts';
import type { Exporter } from './exporter.ts';

/** Something that has a word to say at the very end of the process. */
export interface Teller {
  tell(): void;
}

const idleMs = (): number => performance.eventLoopUtilization().idle;

/** The exporters that have something to deliver, and how long each may hold the end of the process. */
const allowances = new Map<Exporter, ExitAllowance>();
const tellers = new Set<Teller>();

/**
 * Delivers what is queued when the process ends by itself, within the exporter's limit, gives up the rest, and says at the
 * very end what was lost. The listeners are there while there is an exporter with runs.
 */
export function flushAtExit(exporter: Exporter, limitMs: number): void {
  listen();
  allowances.set(exporter, new ExitAllowance(limitMs));
}

/** The exporter has closed, and needs nothing any more. */
export function forgetAtExit(exporter: Exporter): void {
  allowances.delete(exporter);
  leave();
}

/** Lets something be told at the end, unless it has been told before. */
export function tellAtExit(teller: Teller): void {
  listen();
  tellers.add(teller);
}

export function forgetTeller(teller: Teller): void {
  tellers.delete(teller);
  leave();
}

function listen(): void {
  if (allowances.size + tellers.size > 0) return;
  process.on('beforeExit', flushAll);
  process.on('exit', tellAll);
}

function leave(): void {
  if (allowances.size + tellers.size > 0) return;
  process.off('beforeExit', flushAll);
  process.off('exit', tellAll);
}

// Behind all listeners of the event: what they record is delivered too. A request on a socket of the application's own
// dispatcher holds the process before this event comes, until its deadline.
function flushAll(): void {
  queueMicrotask(() => {
    for (const [exporter, allowance] of allowances) void finish(exporter, allowance);
  });
}

async function finish(exporter: Exporter, allowance: ExitAllowance): Promise<void> {
  if (exporter.isSettled) return;
  const timeoutMs = allowance.beginMs(idleMs());
  if (timeoutMs === 0) return;
  const startedMs = monotonicNowMs();
  await exporter.finish({ timeoutMs });
  allowance.end(monotonicNowMs() - startedMs, idleMs());
}

/** The last that is done, in what time the end of the process leaves: nothing that has to be waited for. */
export function tellAll(): void {
  for (const teller of tellers) teller.tell();
  for (const exporter of allowances.keys()) exporter.endProcess();
}
