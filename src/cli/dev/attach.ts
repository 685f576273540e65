import { parseJson } from '../../clients/errors.ts';
import { isObject } from '../../config/checker.ts';
import { env } from '../../config/environment.ts';
import { delay } from '../../platform/timers.ts';
import type { StoreChange } from '../../receiver/store/store.ts';
import { CommandFailure } from '../command-line.ts';
import { NoReceiver, receiverAt } from '../query/run-source.ts';
import type { DevReceiver } from './own-receiver.ts';
import { newProgramId } from './program-runs.ts';
import { registeredReceiver } from './registration.ts';

/** Maximum time in milliseconds until the receiver sends its first bytes. */
const CONNECT_MAX_MS = 5_000;
/** Maximum time in milliseconds that the receiver has to end the open runs of a program and to report its last traces. */
const END_MAX_MS = 5_000;

/**
 * Connects to the receiver of another `runspan dev`. With a program, only its traces are reported, and it counts as
 * ended when the connection closes. Throws a `NoReceiver` if the receiver has ended, or another `CommandFailure` if it
 * denies access.
 */
export async function attach(url: string, storePath: string | undefined, hasProgram: boolean): Promise<DevReceiver> {
  const source = receiverAt(new URL(url));
  // Checks the key, and names the variable to set if the receiver denies access.
  await source.traces({ limit: 1 });
  const programId = newProgramId();
  const programUrl = new URL(`/dev/programs/${programId}`, url);
  const closing = new AbortController();
  const limit = setTimeout(() => closing.abort(), CONNECT_MAX_MS);
  const path = hasProgram ? programUrl : new URL('/query/changes', url);
  const chunks = await connect(path, closing.signal).finally(() => clearTimeout(limit));
  const listeners = new Set<(change: StoreChange) => void>();
  let hasArrived = false;
  let isProgramEnded = false;
  // If the receiver has ended before the program, another program may listen on its port.
  let isLost = false;
  const ended = reportTraces(chunks, (traceIds) => {
    hasArrived = true;
    for (const listener of listeners) listener({ traceIds });
  }).then(() => {
    isLost = !isProgramEnded;
    return undefined;
  });
  /** Returns undefined if the receiver has ended. One line has already said so. */
  const unlessLost = async <Answer>(ask: () => Promise<Answer>): Promise<Answer | undefined> => {
    if (isLost) return undefined;
    return await ask().catch((error) => {
      if (error instanceof NoReceiver) return undefined;
      throw error;
    });
  };
  return {
    url,
    isOwn: false,
    isOnDisk: false,
    storePath,
    programId,
    traces: {
      subscribe: (_, listener) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      outline: async (_, traceId) => {
        const runs = await unlessLost(() => source.outline(traceId));
        return runs?.map((run) => JSON.stringify(run)) ?? [];
      },
    },
    hasArrived: () => hasArrived,
    ended,
    exported: (traceId) => unlessLost(() => source.exported(traceId)),
    currentUrl: () => registeredReceiver(storePath),
    endProgram: async (endTime) => {
      if (isLost) return;
      isProgramEnded = true;
      programUrl.searchParams.set('end_time', endTime);
      const request = { method: 'DELETE', headers: headers(), signal: AbortSignal.timeout(END_MAX_MS) };
      await fetch(programUrl, request).catch(() => {});
      // The receiver closes the connection when it has reported the last traces.
      await Promise.race([ended, delay(END_MAX_MS, undefined)]);
    },
    stop: async () => {},
    close: async () => closing.abort(),
  };
}

/** Returns the events of a stream, whose first bytes have arrived. */
async function connect(url: URL, signal: AbortSignal): Promise<AsyncIterable<string>> {
  const response = await fetch(url, { headers: headers(), redirect: 'manual', signal }).catch(() => undefined);
  const reader = response?.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (response?.ok === false) throw new CommandFailure(`${url.origin} responded with status ${response.status}`);
  const first = await reader?.read().catch(() => undefined);
  if (reader === undefined || first?.value === undefined) throw new NoReceiver(`no receiver responds at ${url.origin}`);
  return (async function* () {
    for (let read: { value?: string | undefined } = first; read.value !== undefined; read = await reader.read()) {
      yield read.value;
    }
  })();
}

/** Calls `report` for each event with traces until the stream ends. Never rejects. */
async function reportTraces(chunks: AsyncIterable<string>, report: (traceIds: string[]) => void): Promise<void> {
  let rest = '';
  try {
    for await (const chunk of chunks) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const event = line.startsWith('data: ') ? parseJson(line.slice('data: '.length)) : undefined;
        // An event of `/query/changes` without ids means that many traces have changed. These traces are not drawn.
        if (isObject(event) && Array.isArray(event.trace_ids)) report(event.trace_ids);
      }
    }
  } catch {
    // The receiver was killed, or this command has closed the connection.
  }
}

function headers(): Record<string, string> {
  const apiKey = env('RUNSPAN_RECEIVER_KEY');
  return apiKey === undefined ? {} : { 'x-api-key': apiKey };
}
