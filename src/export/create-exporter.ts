import { HttpClient } from '../http/client.ts';
import { DropNotice } from './drop-notice.ts';
import { flushAtExit, forgetAtExit } from './exit.ts';
import { Exporter } from './exporter.ts';
import { FallbackTransport } from './fallback-transport.ts';
import { IsolatingTransport } from './isolating-transport.ts';
import type { Ledger } from './ledger.ts';
import { MultipartTransport } from './multipart-transport.ts';
import { delay, Pace } from './pace.ts';
import { RequestLog } from './request-log.ts';
import { RetryingTransport } from './retrying-transport.ts';
import { ServiceInfo } from './service-info.ts';
import type { Settings } from './settings.ts';
import { SimpleTransport } from './simple-transport.ts';

const monotonicMs = performance.now.bind(performance);

/**
 * Puts an exporter together: retry ∘ fallback ∘ isolation ∘ multipart, over one HTTP client. It counts in the
 * ledger;
 * `closed` is called when it has closed.
 */
export function exporterFor(settings: Settings, ledger: Ledger, closed: () => void): Exporter {
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
  const requests = new RequestLog({ ledger, endpoint: endpoint.origin, headers: settings.headers, monotonicMs });
  const multipart = new IsolatingTransport(new MultipartTransport(client, info, pace, requests));
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
      requests,
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
    ledger,
    notice: new DropNotice(settings.onDrop, monotonicMs, endpoint.origin),
    monotonicMs,
    opened: (exporter) => flushAtExit(exporter, limits.exitFlushMs),
    closed: async (exporter) => {
      forgetAtExit(exporter);
      await client.destroy();
      closed();
    },
  });
}
