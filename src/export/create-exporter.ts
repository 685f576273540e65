import { monotonicNowMs } from '../base/clock.ts';
import { delay, setTimer } from '../base/timers.ts';
import { HttpClient } from '../http/client.ts';
import { Exporter } from './exporter.ts';
import type { ExporterParts } from './exporter-parts.ts';
import { DropNotice, type Ledger } from './ledger.ts';
import { IngestClient } from './outcome.ts';
import { flushAtEnd, forgetAtEnd } from './process-end.ts';
import { Sender } from './sender.ts';
import { SendGate, ServiceInfo } from './service.ts';
import { isOnByEnvironment } from './service-settings.ts';
import type { Settings } from './settings.ts';
import { SimpleIngestion } from './simple-ingestion.ts';
import type { Destination } from './spool/directory.ts';
import { Spool, type SpoolOptions } from './spool/spool.ts';

/** Clocks, random numbers and the file system. Tests replace these functions. */
export type ExporterTime = Pick<ExporterParts, 'monotonicMs' | 'random' | 'delay'> &
  Pick<SpoolOptions, 'wallMs' | 'fs'>;

const realTime: ExporterTime = { monotonicMs: monotonicNowMs, random: Math.random, delay };

/** Settings and HTTP client of each exporter, used by `renewKey`. */
const services = new WeakMap<Exporter, { settings: Settings; client: HttpClient }>();

/** Creates an exporter that counts its runs in `ledger`. Calls `closed` when the exporter has closed. */
export function exporterFor(
  settings: Settings,
  ledger: Ledger,
  closed: () => void,
  time: ExporterTime = realTime,
): Exporter {
  const { limits, endpoint, durability, dispatcher, proxies } = settings;
  const client = new HttpClient({ ...limits, endpoint, headers: settings.requestHeaders, dispatcher, proxies });
  const { monotonicMs } = time;
  const info = new ServiceInfo(client, { runs: limits.batchRuns, bytes: limits.batchBytes }, monotonicMs);
  const gate = new SendGate({ ...limits, random: time.random });
  const ingest = new IngestClient(client, ledger, endpoint.origin, monotonicMs);
  const simple = new SimpleIngestion({ ...time, ...limits, client: ingest });
  const exporter = new Exporter({
    ...time,
    capture: settings.capture,
    limits,
    sender: (heldBytes) => new Sender({ client: ingest, info, simple, monotonicMs, heldBytes }),
    info,
    gate,
    spool: durability === 'memory' ? undefined : spoolFor(settings, time),
    isWriteAhead: durability === 'write-ahead',
    ledger,
    notice: new DropNotice(settings.onDrop, monotonicMs, endpoint.origin),
    endpoint: endpoint.origin,
    opened: (exporter) => flushAtEnd(exporter, limits.exitFlushMs, settings.handleSignals),
    closed: async (exporter) => {
      forgetAtEnd(exporter);
      closed();
      await client.destroy();
    },
  });
  services.set(exporter, { settings, client });
  return exporter;
}

/**
 * Passes the API key of new settings to an exporter that still delivers runs with an older key. Does nothing if the
 * service or the workspace differs. Runs that wait because the old key was rejected are sent again immediately.
 */
export function renewKey(exporter: Exporter, { endpoint, headers, requestHeaders }: Settings): void {
  const service = services.get(exporter);
  const old = service?.settings;
  const isSame = old?.endpoint.href === endpoint.href && old.headers['x-tenant-id'] === headers['x-tenant-id'];
  const hasKey = headers['x-api-key'] !== undefined || typeof requestHeaders === 'function';
  if (service === undefined || !isSame || !hasKey) return;
  service.client.setHeaders(requestHeaders);
  exporter.retryNow();
}

/**
 * Returns the destination. The spool has a separate folder for each destination. A key that is returned by a function
 * may change, so such a key is not part of the destination.
 */
export function destinationOf({ endpoint, headers }: Settings): Destination {
  return { endpoint, workspaceId: headers['x-tenant-id'], apiKey: headers['x-api-key'] };
}

function spoolFor(settings: Settings, time: ExporterTime): Spool {
  const { spoolBytes, spoolAgeMs } = settings.limits;
  return new Spool({ ...settings, ...destinationOf(settings), ...time, bytesMax: spoolBytes, ageMaxMs: spoolAgeMs });
}

/** Delay before the modules are loaded. A program that ends earlier does not load these modules. */
const PRELOAD_DELAY_MS = 10;

let isLoading = false;

/**
 * Schedules loading of the modules that the first delivery needs. Evaluating these modules during a request of the
 * application would block the event loop for tens of milliseconds. The timer does not keep the process alive.
 */
export function preloadSoon(): void {
  if (isLoading) return;
  isLoading = true;
  setTimer(() => {
    void Promise.allSettled([import('undici'), import('form-data-encoder')]);
  }, PRELOAD_DELAY_MS).unref();
}

/** Preloads the modules if the environment turns tracing on. Called by the SDK wrappers. */
export function preloadIfConfigured(): void {
  if (!isLoading && isOnByEnvironment()) preloadSoon();
}
