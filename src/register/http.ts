import type { IncomingMessage, ServerResponse } from 'node:http';
import { clock } from '../base/clock.ts';
import { guard } from '../base/guard.ts';
import { makeSlot } from '../base/slot.ts';
import { devEnv, env } from '../config/environment.ts';
import { replaceMethod } from '../instrument/methods.ts';
import { abandonment } from '../instrument/results/observer.ts';
import { changesPayloads } from '../integrations/fetch/exchange.ts';
import { defined, fieldsOf, isFields, parsedJson, textOf } from '../payload/fields.ts';
import { encodePayload } from '../payload/serialize.ts';
import { createStorage, nodeModule, runtime } from '../platform/node.ts';
import type { RunContext } from '../run/context/context.ts';
import { type FirstCall, type RequestSource, setRequestSource } from '../run/context/current.ts';
import type { EncodedRun } from '../run/encoded-run.ts';
import { pathPattern, runIdAt } from '../run/ids.ts';
import { fromHeaders } from '../run/propagation/propagation.ts';
import { Run } from '../run/run.ts';
import type { StartOptions } from '../run/run-options.ts';
import { sample } from '../run/sampling/sampling.ts';
import { currentSink, noopSink, type RunSink } from '../run/sink.ts';
import type { Instrumentation } from './module-hooks.ts';

const PLACE = 'runspan/register http';
/** Maximum length of a path in a run, in characters. Node accepts request lines of 16 KiB. */
const PATH_MAX = 1_000;
/**
 * Time after a response in which calls still belong to its request, in microseconds. Later calls come from work that the
 * request has started for others, such as a timer or a pool.
 */
const LATE_MAX_US = 60_000_000;
/** Maximum size of a recorded body in bytes. A larger body is not recorded. */
const BODY_MAX_BYTES = 1_048_576;
/** Variables of platforms that may stop a process once a response is sent, so that a run's end would not be delivered. */
const PLATFORMS = ['AWS_LAMBDA_FUNCTION_NAME', 'VERCEL'] as const;
/** Metadata that identifies the conversation and the user of a trace. The receiver reads it from the first run. */
const IDS = ['thread_id', 'user_id'];

interface Incoming {
  readonly startedUs: number;
  /** Frameworks change `request.url`. */
  readonly url: string;
  closedUs: number | undefined;
  /** Undefined once the response is closed, like `response`, so that later work keeps neither in memory. */
  request: IncomingMessage | undefined;
  response: ServerResponse | undefined;
  /** Undefined if bodies are not recorded. */
  body: RequestBody | undefined;
  /** The pattern of the request's path, from Fastify. */
  route: string | undefined;
  run: RequestRun | undefined;
}

/** Starts a run for each incoming HTTP request with a recorded call. */
export const http: Instrumentation = {
  name: 'http',
  start() {
    if (runtime.runtime !== 'node' || PLATFORMS.some((name) => env(name) !== undefined)) return;
    const { subscribe } = nodeModule('node:diagnostics_channel');
    const keepsBodies = devEnv().recordBody === true;
    subscribe('http.server.request.start', (message) => {
      const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
      const incoming: Incoming = {
        startedUs: clock.monotonicUs(),
        url: request.url as string,
        closedUs: undefined,
        request,
        response,
        body: keepsBodies ? new RequestBody() : undefined,
        route: undefined,
        run: undefined,
      };
      incomings.set(request, incoming);
      storage.enterWith(incoming);
    });
    subscribe('tracing:fastify.request.handler:start', (message) => {
      const { request, route } = fieldsOf(message);
      const incoming = incomings.get(fieldsOf(fieldsOf(request).raw));
      if (incoming !== undefined) incoming.route = textOf(fieldsOf(route).url);
    });
    const { IncomingMessage, ServerResponse } = nodeModule('node:http');
    enterAtEvents(IncomingMessage.prototype, (request) => request);
    enterAtEvents(ServerResponse.prototype, (response) => (response as Partial<ServerResponse>).req);
    setRequestSource(source);
  },
};

const storage = createStorage<Incoming>();
const incomings = makeSlot<Incoming>();
const openOn = makeSlot<Set<Incoming>>();
const open = new Map<string, RequestRun>();

/**
 * Calls the listeners of requests and responses in the request's context. Since Node 24, the parser's context applies
 * there. Replaces `emit`, because a listener would change `listenerCount` and could cause a warning.
 */
function enterAtEvents(prototype: object, requestOf: (message: object) => object | undefined): void {
  replaceMethod(PLACE, prototype, 'emit', (emit) => {
    return function emitInRequest(this: unknown, ...args: unknown[]): unknown {
      const request = requestOf(this as object);
      const incoming = request && incomings.get(request);
      if (incoming === undefined) return Reflect.apply(emit, this, args);
      if (args[0] === 'close' && this === incoming.response) close(incoming);
      const { body } = incoming;
      if (args[0] === 'data' && body !== undefined && this === request)
        guard(PLACE, () => body.add(args[1], (this as IncomingMessage).readableEncoding));
      if (storage.getStore() === incoming) return Reflect.apply(emit, this, args);
      return storage.run(incoming, Reflect.apply, emit, this, args);
    };
  });
}

function close(incoming: Incoming): void {
  const { request, response, route, run } = incoming;
  if (request === undefined || response === undefined) return;
  incoming.closedUs = clock.monotonicUs();
  incoming.request = undefined;
  incoming.response = undefined;
  openOn.get(request.socket)?.delete(incoming);
  if (run !== undefined) {
    guard(PLACE, () => incoming.body?.attachTo(run.run, request, pathOf(incoming.url)));
    guard(PLACE, () => run.end(request, response, route ?? routeOf(request)));
  }
  incoming.body = undefined;
}

/** Closes a request with its socket. A response that waits for the response to an earlier request emits no `close`. */
function closeWithSocket(incoming: Incoming, { socket }: IncomingMessage): void {
  const known = openOn.get(socket);
  const requests = known ?? new Set<Incoming>();
  if (known === undefined) {
    openOn.set(socket, requests);
    socket.once('close', () => requests.forEach(close));
  }
  requests.add(incoming);
}

function runOf(incoming: Incoming): RequestRun | undefined {
  const { closedUs } = incoming;
  if (closedUs !== undefined && clock.monotonicUs() - closedUs > LATE_MAX_US) incoming.run = undefined;
  return incoming.run;
}

const source: RequestSource = {
  contextIn(around) {
    const incoming = storage.getStore();
    const run = incoming && runOf(incoming);
    return run && contextBelow(run.run, around);
  },
  begin(around, sink, call) {
    const incoming = storage.getStore();
    if (incoming === undefined) return undefined;
    let run = runOf(incoming);
    if (run === undefined) {
      const { request } = incoming;
      // A run that starts after the response is no part of the request, unless the request has a run.
      if (request === undefined) return undefined;
      run = new RequestRun(incoming, request, around, sink, call);
      incoming.run = run;
      closeWithSocket(incoming, request);
    }
    return contextBelow(run.run, around);
  },
  observe(record, sink) {
    if (open.size === 0 || record.parentRunId === undefined) return;
    const parent = open.get(record.parentRunId);
    if (parent?.run.sink === sink) parent?.observe(record);
  },
};

/** A call without an own exporter is sent to the sink that it would have without the request's run. */
function contextBelow({ context, sink: ofRequest }: Run, around: RunContext | undefined): RunContext {
  const sink = around?.exporter ?? currentSink() ?? noopSink;
  const { fields } = around ?? {};
  if (fields === undefined && sink === ofRequest) return context;
  return Object.freeze({ ...context, fields, added: fields, exporter: sink === ofRequest ? undefined : sink });
}

class RequestRun {
  readonly run: Run;
  readonly #name: string;
  readonly #ids = new Set<string>();

  constructor(
    { startedUs, url }: Incoming,
    { method, headers }: IncomingMessage,
    around: RunContext | undefined,
    sink: RunSink,
    { project }: FirstCall,
  ) {
    const path = pathOf(url);
    const monotonicUs = clock.monotonicUs();
    const startUs = Math.floor(clock.stampUs(monotonicUs) - (monotonicUs - startedUs));
    const name = `${method} ${pathPattern(path)}`;
    const options: StartOptions = { name, startUs, id: runIdAt(startUs), project };
    const parent = fromHeaders(headers)?.contextFor(sink);
    this.run = new Run({ options, parent, sink, sampling: sample(options, parent, sink), capture: sink.capture });
    this.#name = this.run.name;
    // Set after the start, because nested runs inherit what a run starts with.
    this.run.set({ metadata: { 'http.request.method': method, 'url.path': path } });
    if (around?.fields !== undefined) this.run.set(defined(around.fields));
    if (this.run.isOpen) open.set(this.run.id, this);
    this.run.started();
  }

  observe({ metadata }: EncodedRun): void {
    for (const key of IDS) {
      const json = metadata?.get(key);
      if (json === undefined || this.#ids.has(key)) continue;
      this.#ids.add(key);
      this.run.set({ metadata: { [key]: parsedJson(json) } });
    }
  }

  end({ method }: IncomingMessage, response: ServerResponse, route?: string): void {
    const { run } = this;
    const { errored, headersSent, statusCode, writableFinished } = response;
    open.delete(run.id);
    if (route !== undefined && run.name === this.#name) run.set({ name: `${method} ${route}` });
    const status = headersSent ? statusCode : undefined;
    run.set({ metadata: defined({ 'http.route': route, 'http.response.status_code': status }) });
    if (!writableFinished) {
      // The application has destroyed the response. From Node 24, `errored` is also set if the client closed the socket.
      if (errored && fieldsOf(errored).code !== 'ECONNRESET') run.fail(errored);
      else run.cancel();
      abandonment.leave(run.dottedOrder);
    } else if (statusCode >= 500) run.fail(`HTTP ${statusCode}`);
    else run.end();
  }
}

/** The body of an incoming request, which is recorded while the application reads it. */
class RequestBody {
  #chunks: Buffer[] = [];
  #sizeBytes = 0;

  /** Adds the data of an event `data`. `encoding` is that of a text. */
  add(chunk: unknown, encoding: BufferEncoding | null): void {
    const bytes = Buffer.from(chunk as string, encoding ?? undefined);
    this.#sizeBytes += bytes.length;
    if (this.#sizeBytes > BODY_MAX_BYTES) this.#chunks = [];
    else this.#chunks.push(bytes);
  }

  /**
   * Attaches what a test needs to send the request again. Only a JSON body is recorded, because secrets are masked by the
   * names of fields. Headers and the query are left out, because they may contain secrets.
   */
  attachTo(run: Run, { method, headers }: IncomingMessage, path: string): void {
    if (this.#sizeBytes > BODY_MAX_BYTES || run.capture.hideInputs || changesPayloads(run.capture)) return;
    const body = Buffer.concat(this.#chunks).toString();
    if (body !== '' && !isFields(parsedJson(body))) return;
    const { json } = encodePayload(
      'inputs',
      defined({ method, path, contentType: headers['content-type'], body }),
      run.capture,
    );
    run.attach('request', new TextEncoder().encode(json), 'application/json');
  }
}

/** Returns the path of a request target, which a client of a proxy sends as a URL. */
function pathOf(url: string): string {
  return (/^(?:[a-z][a-z\d+.-]*:\/\/[^/?#]*)?([^?#]*)/i.exec(url)?.[1] || '/').slice(0, PATH_MAX);
}

/** Returns the pattern of the path in Express, and in NestJS on Express. */
function routeOf(request: IncomingMessage): string | undefined {
  const { route, baseUrl } = fieldsOf(request);
  const path = textOf(fieldsOf(route).path);
  if (path === undefined) return undefined;
  const prefix = textOf(baseUrl) ?? '';
  return path === '/' && prefix !== '' ? prefix : `${prefix}${path}`;
}
