import { withoutTracing } from '../platform/suppress-tracing.ts';
import { setSoon } from '../platform/timers.ts';

type Undici = typeof import('undici');

type Load = (path: string) => unknown;

/**
 * Files of undici, and Node's modules that undici needs. Each loads in its own turn of the event loop, because all of
 * undici at once blocks the loop for 25 ms. undici documents no path of its files. If a version lacks one of these files,
 * a later one or the last import loads what the file contained.
 */
const FILES: readonly string[] = [
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

let loadFile: Load | undefined;

/** Sets the function that loads `FILES`. In bundled programs and CommonJS it is not set, and undici loads at once. */
export function loadFilesBy(load: Load): void {
  loadFile = load;
}

let loading: Promise<Undici> | undefined;

export function loadUndici(): Promise<Undici> {
  loading ??= loadInTurns(loadFile).catch((thrown) => {
    loading = undefined;
    throw thrown;
  });
  return loading;
}

async function loadInTurns(load: Load | undefined): Promise<Undici> {
  if (load !== undefined) {
    for (const file of FILES) await new Promise<void>((resolve) => void setSoon(() => resolve(tried(load, file))));
  }
  return withoutTracing(() => import('undici'));
}

function tried(load: Load, file: string): void {
  try {
    load(file);
  } catch {
    // The import of undici reports the error.
  }
}
