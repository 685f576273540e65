import { diagnostics } from '../../base/diagnostics.ts';
import { RunspanError } from '../../base/errors.ts';
import { messageOf } from '../../base/text.ts';
import { isLoopback } from '../../config/checker.ts';
import { env } from '../../config/environment.ts';
import { delay } from '../../platform/timers.ts';
import { exportTrace } from '../../receiver/api/export/trace-export.ts';
import type { Route } from '../../receiver/http/route.ts';
import { SpanSelection } from '../../receiver/ingest/span-selection.ts';
import { type Receiver, type ReceiverOptions, receiverWith } from '../../receiver/receiver.ts';
import { SqliteStore } from '../../receiver/store/sqlite/sqlite-store.ts';
import { DEFAULT_SCOPE, type StoreChange } from '../../receiver/store/store.ts';
import { CommandFailure, UsageError, withCommandNames } from '../command-line.ts';
import { receiverAt } from '../query/run-source.ts';
import { rerunRoutes } from '../rerun/rerun-routes.ts';
import { setRoutes } from '../sets/set-routes.ts';
import { DEFAULT_PORT, openStore, type StoreOptions } from '../stores.ts';
import { sendLeftSpools } from './child-spool.ts';
import { newProgramId, Programs } from './program-runs.ts';
import { Registration, registeredReceiver } from './registration.ts';
import type { TraceFeed } from './trace-watch.ts';
import { IDLE_MS, waitForIdle } from './traced-child.ts';

/** The receiver that `runspan dev` uses, of this process or of another one. */
export interface DevReceiver {
  readonly url: string;
  readonly isOwn: boolean;
  /** Whether this process has opened the store as a file. */
  readonly isOnDisk: boolean;
  /** Path of the store without symbolic links. Undefined if the receiver has no file. */
  readonly storePath: string | undefined;
  /** Id of the program of this command. */
  readonly programId: string;
  readonly traces: TraceFeed;
  /** Exports a trace as JSON text. */
  exported(traceId: string): Promise<string | undefined>;
  /** Returns the address of the receiver that now serves the store, if there is one. */
  currentUrl(): Promise<string | undefined>;
  /** Waits for requests that arrive after the program of this command has ended. */
  untilIdle(): Promise<void>;
  /**
   * Ends the runs that the program of this command left open, unless they started after `endTime`. Returns whether runs
   * have arrived that may be of the program.
   */
  endProgram(endTime: string): Promise<boolean>;
  /** Stops receiving runs. Traces can be read until `close`. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

export interface OwnReceiverOptions extends StoreOptions {
  readonly port?: number | undefined;
  readonly host?: string | undefined;
  readonly allowHost?: readonly string[] | undefined;
  readonly allowOrigin?: readonly string[] | undefined;
  readonly strict?: true | undefined;
  readonly allSpans?: true | undefined;
  readonly allowService?: readonly string[] | undefined;
}

interface Start {
  readonly storePath: string | undefined;
  /** Whether there is a program, whose traces are drawn. If not, all traces are drawn. */
  readonly hasProgram: boolean;
  readonly warn: (line: string) => unknown;
}

/** How often the spools are read, in milliseconds. A killed process counts as dead after 10 s. */
const SEND_EVERY_MS = 12_000;

/**
 * Opens the store and starts a receiver in this process. Throws `RUNSPAN_STORE_IN_USE` if another process has the store
 * open, or `RUNSPAN_ADDRESS_IN_USE` if another process uses the port.
 */
export async function openReceiver(options: OwnReceiverOptions, start: Start): Promise<DevReceiver> {
  const { storePath, hasProgram, warn } = start;
  const lines: string[] = [];
  const store = await openStore(storePath, options, (line) => lines.push(line));
  const isOnDisk = store instanceof SqliteStore;
  const close = async (): Promise<void> => (isOnDisk ? store.close() : undefined);
  try {
    const programs = new Programs(store);
    const registration = storePath === undefined ? undefined : new Registration(storePath);
    const routes = [programs.route, registration?.route ?? [], actionRoutes(options)].flat();
    const received: Programs['received'] = (request, operations) => programs.received(request, operations);
    const selection = options.allSpans === true ? undefined : new SpanSelection();
    const additions = { received, routes, ...(selection && { select: selection.select.bind(selection) }) };
    const listen = (port: number) => receiverWith({ ...receiverOptions(options), port, store }, additions);
    const mayMove = hasProgram && options.port === undefined;
    const receiver = await listenAt(options.port ?? DEFAULT_PORT, mayMove, listen, lines);
    const { url } = receiver;
    for (const line of lines) warn(line);
    try {
      registration?.write(url);
      if (isOnDisk) await store.setAddress(url);
    } catch (error) {
      warn(`other \`runspan dev\` commands cannot use this receiver: ${messageOf(error)}`);
    }
    const stopSending = startSending(url, storePath);
    return {
      url,
      isOwn: true,
      isOnDisk,
      storePath,
      programId: programs.ownId,
      traces: hasProgram ? programs.ownTraces : store,
      exported: (traceId) => exportTrace({ store, scope: DEFAULT_SCOPE }, traceId),
      currentUrl: async () => url,
      untilIdle: () => waitForIdle(store),
      endProgram: async (endTime) => {
        await programs.end(programs.ownId, endTime);
        return programs.hasArrived;
      },
      stop: async () => {
        registration?.remove();
        await stopSending();
        await receiver.close();
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The routes that use the keys and the folder of this process. Not served if other machines can reach the receiver. */
function actionRoutes({ host = '127.0.0.1', allowHost, allowService = [] }: OwnReceiverOptions): readonly Route[] {
  if (!isLoopback(host) || allowHost !== undefined) return [];
  const folder = process.cwd();
  return [...setRoutes(folder), ...rerunRoutes({ folder, allowed: allowService })];
}

/** Listens on the port, or on any free port if the port is in use and `mayMove` is true. */
async function listenAt(
  port: number,
  mayMove: boolean,
  listen: (port: number) => Promise<Receiver>,
  lines: string[],
): Promise<Receiver> {
  try {
    return await listen(port);
  } catch (error) {
    if (!mayMove || !(error instanceof RunspanError) || error.code !== 'RUNSPAN_ADDRESS_IN_USE') throw error;
    lines.push(`port ${port} is in use by another program, so the receiver listens on another port`);
    return await listen(0);
  }
}

/** Sends the runs that programs of ended commands left beside the store. Returns a function that stops sending. */
function startSending(url: string, storePath: string | undefined): () => Promise<void> {
  if (storePath === undefined) return async () => {};
  const target = { url, apiKey: env('RUNSPAN_RECEIVER_KEY'), programId: newProgramId() };
  const send = (): Promise<void> =>
    sendLeftSpools(target, storePath).catch((error) =>
      diagnostics.error(`runs beside the store cannot be read: ${messageOf(error)}`),
    );
  let sending = send();
  const again = setInterval(() => {
    sending = sending.then(send);
  }, SEND_EVERY_MS).unref();
  return async () => {
    clearInterval(again);
    await sending;
  };
}

function receiverOptions({ host, allowHost, allowOrigin, strict }: OwnReceiverOptions): ReceiverOptions {
  const apiKey = env('RUNSPAN_RECEIVER_KEY');
  if (host !== undefined && !isLoopback(host) && apiKey === undefined) {
    throw new UsageError(`--host ${host} requires RUNSPAN_RECEIVER_KEY with at least 16 characters`);
  }
  return {
    strict: strict === true,
    allowedHosts: allowHost ?? [],
    allowedOrigins: allowOrigin ?? [],
    ...(host && { host }),
    ...(apiKey && { apiKey }),
  };
}

const OPTION_NAMES = { apiKey: 'RUNSPAN_RECEIVER_KEY', host: '--host', port: '--port' };

/** Replaces the names of the receiver's options in an error with those of the command. */
export function withDevNames(error: unknown, port: number | undefined): unknown {
  const named = withCommandNames(error, OPTION_NAMES);
  const isInUse = error instanceof RunspanError && error.code === 'RUNSPAN_STORE_IN_USE';
  if (!isInUse || port === undefined || !(named instanceof CommandFailure)) return named;
  return new CommandFailure(
    `${named.message}; without --port, this command uses that receiver, and with --memory its own`,
  );
}

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
export async function attachTo(url: string, { storePath, tracesMax, warn }: Attachment): Promise<DevReceiver> {
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
