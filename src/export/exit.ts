import type { Exporter } from './exporter.ts';

/** The exporters that have something to deliver or to tell, and how long each may hold the end of the process. */
const flushLimitsMs = new Map<Exporter, number>();

/**
 * Delivers what is queued when the process ends by itself, within the exporter's limit, gives up the rest, and says at the
 * very end what was lost. The listeners are there while there is an exporter with runs.
 */
export function flushAtExit(exporter: Exporter, limitMs: number): void {
  if (flushLimitsMs.size === 0) {
    process.on('beforeExit', flushAll);
    process.on('exit', tellAll);
  }
  flushLimitsMs.set(exporter, limitMs);
}

/** The exporter has closed, and needs nothing any more. */
export function forgetAtExit(exporter: Exporter): void {
  flushLimitsMs.delete(exporter);
  if (flushLimitsMs.size > 0) return;
  process.off('beforeExit', flushAll);
  process.off('exit', tellAll);
}

// A flush lets the event loop turn, so the event comes again when it is done. What could not be delivered then is given up:
// a request that hangs must not hold the process, whoever's socket it is on.
function flushAll(): void {
  for (const [exporter, timeoutMs] of flushLimitsMs) {
    void exporter.flush({ timeoutMs }).then(({ ok }) => {
      if (!ok) void exporter.close({ timeoutMs: 0 });
    });
  }
}

function tellAll(): void {
  for (const exporter of flushLimitsMs.keys()) exporter.tellLosses();
}
