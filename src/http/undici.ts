import { withoutTracing } from '../platform/suppress-tracing.ts';
import { setSoon } from '../platform/timers.ts';

type Undici = typeof import('undici');

type Load = (path: string) => unknown;

/**
 * Parts of undici, and Node's modules that undici needs. Each part loads in its own turn of the event loop, because all
 * of undici at once blocks the loop for 25 ms. undici documents no path of its files. If a version lacks one of these
 * files, a later part or the last import loads what the file contained.
 */
const PARTS: readonly string[] = [
  'node:tls',
  'node:http2',
  'undici/lib/core/util.js',
  'undici/lib/web/webidl/index.js',
  'undici/lib/web/fetch/body.js',
  'undici/lib/dispatcher/client.js',
  'undici/lib/dispatcher/proxy-agent.js',
  'undici/lib/dispatcher/env-http-proxy-agent.js',
  'undici/lib/api/index.js',
  'undici/lib/mock/mock-agent.js',
  'undici/lib/mock/snapshot-agent.js',
  'undici/lib/interceptor/cache.js',
  'undici/lib/interceptor/dns.js',
  'undici/lib/web/fetch/index.js',
  'undici/lib/web/cache/cachestorage.js',
  'undici/lib/web/websocket/websocket.js',
  'undici/lib/web/websocket/stream/websocketstream.js',
  'undici/lib/web/eventsource/eventsource.js',
];

let loadPart: Load | undefined;

/** Sets a function that loads files from `node_modules/`. A bundled program has none, and loads undici at once. */
export function loadPartsBy(load: Load): void {
  loadPart = load;
}

let loading: Promise<Undici> | undefined;

export function loadUndici(): Promise<Undici> {
  loading ??= loadInParts(loadPart).catch((thrown) => {
    loading = undefined;
    throw thrown;
  });
  return loading;
}

async function loadInParts(load: Load | undefined): Promise<Undici> {
  for (const part of load === undefined ? [] : PARTS) {
    await new Promise<void>((resolve) => {
      setSoon(() => {
        try {
          load?.(part);
        } catch {
          // The import of undici reports the error.
        }
        resolve();
      });
    });
  }
  return withoutTracing(() => import('undici'));
}
