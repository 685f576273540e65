import type { Exporter } from './exporter.ts';

/** What the end of the process has to do for one exporter. */
interface Member {
  readonly flushMs: number;
  /** The last attempt failed; another would only hold the process for as long again. */
  isGivenUp: boolean;
}

const members = new Map<Exporter, Member>();

/**
 * Delivers what is queued when the process ends by itself, within the exporter's limit, and says at the very end what
 * could not be delivered. The listeners are there while there is an exporter with runs.
 */
export function flushAtExit(exporter: Exporter, flushMs: number): void {
  if (members.size === 0) {
    process.on('beforeExit', flushAll);
    process.on('exit', tellAll);
  }
  members.set(exporter, { flushMs, isGivenUp: false });
}

/** The exporter has closed, and needs nothing any more. */
export function forgetAtExit(exporter: Exporter): void {
  members.delete(exporter);
  if (members.size > 0) return;
  process.off('beforeExit', flushAll);
  process.off('exit', tellAll);
}

// A flush lets the event loop turn, so the event comes again when it is done; then there is nothing left, or no hope.
function flushAll(): void {
  for (const [exporter, member] of members) {
    if (member.isGivenUp) continue;
    void exporter.flush({ timeoutMs: member.flushMs }).then(({ ok }) => {
      member.isGivenUp = !ok;
    });
  }
}

function tellAll(): void {
  for (const exporter of members.keys()) exporter.tellLosses();
}
