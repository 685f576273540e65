import { HttpClient } from '../http/client.ts';
import { DropNotice } from './drop-notice.ts';
import { flushAtExit, forgetAtExit } from './exit.ts';
import { Exporter } from './exporter.ts';
import { FallbackTransport } from './fallback-transport.ts';
import { IsolatingTransport } from './isolating-transport.ts';
import type { Stats } from './ledger.ts';
import { MultipartTransport } from './multipart-transport.ts';
import { delay, Pace } from './pace.ts';
import { RetryingTransport } from './retrying-transport.ts';
import { ServiceInfo } from './service-info.ts';
import type { Settings } from './settings.ts';
import { flushOnSignals, forgetOnSignals } from './signals.ts';
import { SimpleTransport } from './simple-transport.ts';

const monotonicMs = performance.now.bind(performance);

/**
 * Puts an exporter together: retry ∘ fallback ∘ isolation ∘ multipart, over one HTTP client. It counts in `stats`;
 * `closed` is called when it has closed.
 */
export function exporterFor(settings: Settings, stats: Stats, closed: () => void): Exporter {
  const { limits, endpoint } = settings;
  const client = new HttpClient({
    endpoint,
    headers: settings.headers,
    connectTimeoutMs: limits.connectTimeoutMs,
    requestTimeoutMs: limits.requestTimeoutMs,
    dispatcher: settings.dispatcher,
  });
  const info = new ServiceInfo(client, { runs: limits.batchRuns, bytes: limits.batchBytes });
  const pace = new Pace(monotonicMs);
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
    endpoint: endpoint.origin,
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
    stats,
    notice: new DropNotice(settings.onDrop, monotonicMs),
    monotonicMs,
    opened: (exporter) => {
      flushAtExit(exporter, limits.exitFlushMs);
      if (settings.handleSignals) flushOnSignals(exporter, limits.exitFlushMs);
    },
    closed: async (exporter) => {
      forgetAtExit(exporter);
      forgetOnSignals(exporter);
      await client.destroy();
      closed();
    },
  });
}
