import type { ClientRequest } from 'node:http';
import { guard } from '../base/guard.ts';
import { ownRequests } from '../base/own-requests.ts';
import { isLoopback } from '../config/checker.ts';
import { devEnv, env } from '../config/environment.ts';
import { isSameOrigin } from '../config/service.ts';
import { replaceMethod } from '../instrument/methods.ts';
import type { Method } from '../instrument/results/observer.ts';
import { fetchShapedLike } from '../integrations/fetch/record-fetch.ts';
import { type Fields, fieldsOf } from '../payload/fields.ts';
import { channel, createStorage, runtime } from '../platform/node.ts';
import type { RunContext } from '../run/context/context.ts';
import { currentContext } from '../run/context/current.ts';
import { sinkBeside } from '../run/context/inherited.ts';
import { headersToAdd } from '../run/propagation/propagation.ts';
import type { RunSink } from '../run/sink.ts';
import { addressOf, onHttpRequest } from './http-requests.ts';
import { type Instrumentation, patchModule } from './module-hooks.ts';

const PLACE = 'runspan/register propagation';

/**
 * Adds the current run to requests, so that programs that call each other make one trace. Under `runspan dev`, requests
 * to loopback hosts get the headers. Requests to other hosts get them only if `propagateTo` lists their origin.
 */
export const propagation: Instrumentation = {
  name: 'propagation',
  start() {
    if (runtime.runtime !== 'node') return;
    onHttpRequest(addToHttp);
    if (typeof globalThis.fetch === 'function') {
      replaceMethod(PLACE, globalThis, 'fetch', (fetch) => fetchShapedLike(marking(fetch), fetch));
    }
    patchModule({ module: 'undici/index', patch: markUndici });
  },
};

function markUndici(exports: Fields): void {
  const { prototype } = exports.Dispatcher as { readonly prototype: object };
  replaceMethod(PLACE, exports, 'fetch', marking);
  for (const owner of [exports, prototype]) {
    for (const name of ['request', 'stream', 'pipeline']) replaceMethod(PLACE, owner, name, marking);
  }
}

/** The context of a call, for the call's first request. */
interface Mark {
  readonly context: RunContext | undefined;
  readonly sink: RunSink;
  isUsed: boolean;
}

/**
 * The mark of the call that sends a request. The current run of a request can be another call's: a request that waited
 * for a free connection is sent in the context of the call that opened the connection, and so is a retry. That call's
 * mark is used already, so such requests get no headers. A redirect gets none either, as it may lead to another origin.
 */
const marks = createStorage<Mark>();

function marking(method: Method): Method {
  return function (this: unknown, ...args: unknown[]): unknown {
    const mark = ownRequests.has(args[1] as object) ? undefined : guard(PLACE, currentMark);
    if (mark === undefined) return Reflect.apply(method, this, args);
    // Subscribed again as the last, so that the headers of OpenTelemetry and other subscribers are known.
    created.unsubscribe(observe);
    created.subscribe(observe);
    return marks.run(mark, Reflect.apply, method, this, args);
  };
}

const created = channel('undici:request:create');

function observe(message: unknown): void {
  guard(PLACE, () => addToFirst(fieldsOf(message).request as UndiciRequest));
}

const isDev = (): boolean => devEnv().program !== undefined;

/** Returns undefined if tracing is off, or if no request may get headers. */
function currentMark(): Mark | undefined {
  const context = currentContext();
  const sink = sinkBeside(context);
  if (sink === undefined || (sink.capture.propagateTo === undefined && !isDev())) return undefined;
  return { context, sink, isUsed: false };
}

/** A request of undici. In version 5, `headers` is a text. In later versions, names and values alternate. */
interface UndiciRequest {
  readonly origin: string | URL;
  readonly method: string;
  readonly path: string;
  readonly upgrade?: unknown;
  readonly headers: string | readonly unknown[];
  addHeader(name: string, value: string): void;
}

function addToFirst(request: UndiciRequest): void {
  const mark = marks.getStore();
  if (mark === undefined || mark.isUsed) return;
  mark.isUsed = true;
  const { origin, method, path, upgrade, headers } = request;
  if (method === 'CONNECT' || upgrade || !path.startsWith('/')) return;
  const texts = typeof headers === 'string' ? headers.split(/\r\n|:/) : headers.map(String);
  for (const [name, value] of added(mark, new URL(origin), texts)) request.addHeader(name, value);
}

function addToHttp(request: ClientRequest): void {
  const url = request.hasHeader('upgrade') ? undefined : addressOf(request);
  const mark = url && currentMark();
  if (mark === undefined) return;
  for (const [name, value] of added(mark, url as URL, request.getHeaderNames())) request.setHeader(name, value);
}

/** Returns the headers to add to a request. `texts` contains the names of its headers. */
function added({ context, sink }: Mark, { origin, hostname }: URL, texts: readonly string[]): [string, string][] {
  const isLocal = isLoopback(hostname) && isDev() && !isSameOrigin(origin, env('RUNSPAN_ENDPOINT') ?? '');
  if (!isLocal && sink.capture.propagateTo?.has(origin) !== true) return [];
  return headersToAdd(context, sink, new Set(texts.map((text) => text.toLowerCase())));
}
