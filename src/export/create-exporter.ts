import { HttpClient } from '../http/client.ts';
import { DropNotice } from './drop-notice.ts';
import { flushAtExit, forgetAtExit } from './exit.ts';
import { Exporter } from './exporter.ts';
import { FallbackTransport } from './fallback-transport.ts';
import { IsolatingTransport } from './isolating-transport.ts';
import type { Stats } from './ledger.ts';
import { MultipartTransport } from './multipart-transport.ts';
import { Outage } from './outage.ts';
import { delay, Pace } from './pace.ts';
import { RetryingTransport } from './retrying-transport.ts';
import { ServiceInfo } from './service-info.ts';
import type { Settings } from './settings.ts';
import { SimpleTransport } from './simple-transport.ts';
import { openSpool, type Spool } from './spool.ts';

const monotonicMs = performance.now.bind(performance);

/**
 * Puts an exporter together: retry ∘ fallback ∘ isolation ∘ multipart, over one HTTP client. It counts in `stats`;
 * `closed` is called when it has closed.
 */
export function exporterFor(settings: Settings, stats: Stats, closed: () => void): Exporter {
  const { limits, endpoint, durability } = settings;
  const client = new HttpClient({
    endpoint,
    headers: settings.headers,
    connectTimeoutMs: limits.connectTimeoutMs,
    requestTimeoutMs: limits.requestTimeoutMs,
    dispatcher: settings.dispatcher,
  });
  const info = new ServiceInfo(client, { runs: limits.batchRuns, bytes: limits.batchBytes });
  const pace = new Pace(monotonicMs);
  const outage = new Outage(monotonicMs);
  const multipart = new IsolatingTransport(new MultipartTransport(client, info, pace, stats.requests));
  const simple = new IsolatingTransport(
    new SimpleTransport(
      client,
      {
        inFlight: limits.simpleInFlight,
        requestsPerSecond: limits.simpleRequestsPerSecond,
        pace,
        monotonicMs,
        delay,
      },
      stats.requests,
    ),
  );
  const transport = new RetryingTransport(new FallbackTransport(multipart, simple, monotonicMs), pace, {
    ...limits,
    // What waits for long goes to the disk, where another age holds.
    ageMs: durability === 'memory' ? limits.ageMs : limits.spoolAgeMs,
    endpoint: endpoint.origin,
    outage,
    monotonicMs,
    random: Math.random,
    delay,
  });
  return new Exporter({
    capture: settings.capture,
    limits,
    transport,
    info,
    pace,
    outage,
    spool: durability === 'memory' ? undefined : spoolFor(settings),
    isWriteAhead: durability === 'write-ahead',
    stats,
    notice: new DropNotice(settings.onDrop, monotonicMs),
    monotonicMs,
    opened: (exporter) => flushAtExit(exporter, limits.exitFlushMs),
    closed: async (exporter) => {
      forgetAtExit(exporter);
      await client.destroy();
      closed();
    },
  });
}

function spoolFor({ endpoint, headers, spoolDir, limits }: Settings): Spool {
  return openSpool({
    spoolDir,
    endpoint,
    workspaceId: headers['x-tenant-id'],
    apiKey: headers['x-api-key'],
    bytesMax: limits.spoolBytes,
    ageMaxMs: limits.spoolAgeMs,
  });
}
