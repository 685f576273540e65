import { monotonicNowMs } from '../base/clock.ts';
import { shownAddress } from '../config/checker.ts';
import { isJest } from '../config/environment.ts';
import type { Settings } from '../config/options.ts';
import { credentialsIn, isOnByEnvironment } from '../config/service.ts';
import { loadUndici } from '../http/connections.ts';
import { createClient, usesFetch } from '../http/create-client.ts';
import type { Transport } from '../http/transport.ts';
import { isPerRequest } from '../platform/node.ts';
import { delay, runInRootContext } from '../platform/timers.ts';
import { pagePath } from '../run/page-path.ts';
import type { RunPlace } from '../run/sink.ts';
import { Endpoint } from './endpoint.ts';
import { Exporter } from './exporter.ts';
import type { ExporterParts } from './exporter-parts.ts';
import { DropNotice, type Ledger } from './ledger.ts';
import { flushAtEnd, forgetAtEnd } from './process-end.ts';
import { type Destination, isSameDestination, OF_FUNCTION } from './spool/directory.ts';
import { Spool, type SpoolOptions } from './spool/spool.ts';
import { sendOptions } from './spool/survey.ts';
import type { RunEncoder } from './wire/encoder.ts';
import { multipartEncoder } from './wire/multipart.ts';
import { otlpEncoder } from './wire/otlp.ts';
import { ingestWith } from './wire/outcome.ts';
import { Sender } from './wire/sender.ts';
import { ServiceInfo } from './wire/service-info.ts';
import { SimpleIngestion } from './wire/simple.ts';

/** The clock, random and file-system functions of an exporter. Tests replace these functions. */
export type ExporterTime = Pick<ExporterParts, 'monotonicMs' | 'random' | 'delay'> &
  Pick<SpoolOptions, 'wallMs' | 'fs'>;

const realTime: ExporterTime = { monotonicMs: monotonicNowMs, random: Math.random, delay };

/**
 * Share of `queueBytes` for the bodies of all requests in flight. Their runs take up another quarter. With larger
 * requests, a burst of large runs would fill the queue.
 */
const BODIES_SHARE = 1 / 4;

/** The share of one request is at least this many bytes. */
const REQUEST_BYTES_MIN = 64 * 1024;

const services = new WeakMap<Exporter, { settings: Settings; client: Transport }>();

export function exporterFor(
  settings: Settings,
  ledger: Ledger,
  closed: () => void,
  time: ExporterTime = realTime,
): Exporter {
  const { limits, endpoint, durability, compress, dispatcher, fetch, proxies, otlp } = settings;
  const client = createClient({ ...limits, endpoint, headers: settings.requestHeaders, dispatcher, fetch, proxies });
  const { spoolBytes, spoolAgeMs } = limits;
  const { monotonicMs } = time;
  const requestBytesMax = Math.max(REQUEST_BYTES_MIN, (limits.queueBytes * BODIES_SHARE) / limits.requestsInFlight);
  const batch = { runs: limits.batchRuns, bytes: limits.batchBytes };
  const info = new ServiceInfo(otlp === undefined ? client : undefined, batch, requestBytesMax, monotonicMs);
  const encoder: RunEncoder = otlp === undefined ? multipartEncoder : otlpEncoder(otlp);
  const ingest = ingestWith(client, ledger, endpoint, monotonicMs, encoder.fieldsIn);
  const simple = otlp === undefined ? new SimpleIngestion({ ...time, ingest }) : undefined;
  const isLeft = durability !== 'memory' && settings.headers['x-runspan-program'] === undefined;
  const exporter = new Exporter({
    ...time,
    capture: settings.capture,
    limits,
    sender: (waitingBytes) =>
      new Sender({ ingest, info, encoder, simple, compresses: compress, monotonicMs, waitingBytes }),
    sendsStarts: otlp === undefined,
    info,
    endpoint: new Endpoint({ ...limits, random: time.random }),
    spool:
      durability === 'memory'
        ? undefined
        : new Spool({ ...settings, ...destinationOf(settings), ...time, bytesMax: spoolBytes, ageMaxMs: spoolAgeMs }),
    sendCommand: isLeft
      ? `runspan spool send ${sendOptions(settings.spoolDir, [], ['--endpoint', shownAddress(endpoint)])}`
      : undefined,
    isWriteAhead: durability === 'write-ahead',
    ledger,
    notice: new DropNotice(settings.onDrop, monotonicMs, endpoint.origin),
    address: endpoint.origin,
    urlOf: (run) => (otlp === undefined ? runUrl(settings, run) : undefined),
    isWriting: () => client.isWriting?.() ?? true,
    abort: client.abort?.bind(client),
    opened: (exporter) => {
      if (!isPerRequest) flushAtEnd(exporter, limits.exitFlushMs, settings.signals);
    },
    closed: async (exporter) => {
      if (!isPerRequest) forgetAtEnd(exporter);
      closed();
      await client.destroy();
    },
  });
  services.set(exporter, { settings, client });
  return exporter;
}

/** Sets a new API key for an exporter of the same service and tenant, which then sends its next request at once. */
export function renewKey(exporter: Exporter, settings: Settings): void {
  const service = services.get(exporter);
  const destination = destinationOf(settings);
  if (service === undefined || destination.apiKey === undefined) return;
  if (!isSameDestination(destinationOf(service.settings), destination)) return;
  service.client.setHeaders(settings.requestHeaders);
  exporter.retryNow();
}

/**
 * Returns the address of a run's page. LangSmith's API has a host of its own, or on a self-hosted instance the path
 * `/api` or `/api/v1`. Any other service is taken to be a receiver of runspan.
 */
export function runUrl(
  { endpoint, headers }: Pick<Settings, 'endpoint' | 'headers'>,
  { id, traceId, project }: RunPlace,
): string | undefined {
  const address = shownAddress(endpoint);
  const page = address.replace(LANGSMITH_HOST, '$1$2').replace(LANGSMITH_PATH, '');
  if (page === address) return address + pagePath({ id, traceId });
  const { 'x-tenant-id': workspaceId } = headers;
  if (workspaceId === undefined || typeof project !== 'object') return undefined;
  const [workspace, projectId] = [workspaceId, project.id].map(encodeURIComponent);
  return `${page}/o/${workspace}/projects/p/${projectId}/r/${id}?trace_id=${traceId}`;
}

/** Matches the regions of the API, for example `https://eu.api.smith.langchain.com`. */
const LANGSMITH_HOST = /^(https:\/\/(?:[^./]+\.)?)api\.(smith\.langchain\.com)(?=[:/]|$)/;

const LANGSMITH_PATH = /\/api(\/v1)?$/;

/** Returns the service and tenant of runs. What functions return may change, so all of it is one tenant. */
export function destinationOf({ endpoint, headers, requestHeaders }: Settings): Destination {
  const ofFunction = typeof requestHeaders === 'function' ? OF_FUNCTION : undefined;
  const apiKey = headers['x-api-key'] ?? credentialsIn(headers) ?? ofFunction;
  return { endpoint, workspaceId: headers['x-tenant-id'], apiKey };
}

/** Pause before each part of undici. A program that ends sooner loads nothing. */
const PRELOAD_PAUSE_MS = 10;

let isLoading = false;

/**
 * Loads undici in parts, shortly after startup. At the first delivery, or as a whole, it would block the event loop for
 * tens of milliseconds. Jest may end a test file before a pause ends, so in Jest the first delivery loads undici.
 */
export function preloadSoon(): void {
  if (isLoading || usesFetch || isJest) return;
  isLoading = true;
  const loaded = runInRootContext(() => loadUndici(() => delay(PRELOAD_PAUSE_MS, undefined)));
  loaded.then(() => import('form-data-encoder')).catch(() => {});
}

export function preloadIfConfigured(): void {
  if (!isLoading && isOnByEnvironment()) preloadSoon();
}
