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

/** The clocks, random numbers, delays and file system that an exporter uses. Tests replace these functions. */
export type ExporterTime = Pick<ExporterParts, 'monotonicMs' | 'random' | 'delay'> &
  Pick<SpoolOptions, 'wallMs' | 'fs'>;

const realTime: ExporterTime = { monotonicMs: monotonicNowMs, random: Math.random, delay };

/** The settings and the HTTP client of each exporter. */
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
 * Passes the API key of new settings to an existing exporter. Does nothing if the new settings name another endpoint or
 * workspace than the exporter uses. Runs that wait because the service rejected the old key are sent again immediately.
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
 * Returns the destination of runs. An API key that a function returns is not part of the destination, because the key
 * may change.
 */
export function destinationOf({ endpoint, headers }: Settings): Destination {
  return { endpoint, workspaceId: headers['x-tenant-id'], apiKey: headers['x-api-key'] };
}

function spoolFor(settings: Settings, time: ExporterTime): Spool {
  const { spoolBytes, spoolAgeMs } = settings.limits;
  return new Spool({ ...settings, ...destinationOf(settings), ...time, bytesMax: spoolBytes, ageMaxMs: spoolAgeMs });
}

/** Delay before undici is loaded. If the program ends earlier, undici is not loaded. */
const PRELOAD_DELAY_MS = 10;

let isLoading = false;

/**
 * Loads undici and form-data-encoder shortly after the program has started. If the first delivery loaded these modules,
 * the event loop of the application would be blocked for tens of milliseconds.
 */
export function preloadSoon(): void {
  if (isLoading) return;
  isLoading = true;
  setTimer(() => {
    void Promise.allSettled([import('undici'), import('form-data-encoder')]);
  }, PRELOAD_DELAY_MS).unref();
}

/** Calls `preloadSoon` if the environment turns tracing on. */
export function preloadIfConfigured(): void {
  if (!isLoading && isOnByEnvironment()) preloadSoon();
}
