import { delay } from '../../platform/timers.ts';
import type { StoreChange } from '../../receiver/store/store.ts';
import { receiverAt } from '../query/run-source.ts';
import type { DevReceiver } from './own-receiver.ts';
import { newProgramId } from './program-runs.ts';
import { registeredReceiver } from './registration.ts';
import { IDLE_MS } from './traced-child.ts';

interface Attachment {
  /** Store of the receiver, which proves that it serves this store. */
  readonly storePath: string;
  /** Maximum number of traces to report. If the program has sent more, the latest are reported. */
  readonly tracesMax: number;
  readonly warn: (line: string) => unknown;
}

/**
 * Uses the receiver of another `runspan dev` for a program. The traces of the program are reported when the program has
 * ended. Throws a `NoReceiver` if the receiver has ended, or another `CommandFailure` if it denies access.
 */
export async function attach(url: string, { storePath, tracesMax, warn }: Attachment): Promise<DevReceiver> {
  const source = receiverAt(new URL(url), storePath);
  // Checks the key, and names the variable to set if the receiver denies access.
  await source.traces({ limit: 1 });
  const programId = newProgramId();
  let report = (_: StoreChange): void => {};
  return {
    url,
    isOwn: false,
    isOnDisk: false,
    storePath,
    programId,
    traces: {
      subscribe: (_, listener) => {
        report = listener;
        return () => {};
      },
      outline: async (_, traceId) => (await source.outline(traceId)).map((run) => JSON.stringify(run)),
    },
    exported: (traceId) => source.exported(traceId),
    currentUrl: () => registeredReceiver(storePath),
    untilIdle: () => delay(IDLE_MS, undefined, true),
    endProgram: async (endTime) => {
      const traceIds = await source.endProgram(programId, endTime);
      if (traceIds.length > tracesMax)
        warn(`${traceIds.length - tracesMax} earlier traces of the command are only on the page`);
      report({ traceIds: traceIds.slice(-tracesMax) });
      return traceIds.length > 0;
    },
    stop: async () => {},
    close: async () => {},
  };
}
