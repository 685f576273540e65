import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { connect as connectTcp, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { messageOf } from '../../base/text.ts';
import { parseJson } from '../../clients/errors.ts';
import { env } from '../../config/environment.ts';
import type { Settings } from '../../config/options.ts';
import { type NamedProxy, type NoProxy, proxyFor } from '../../http/connections.ts';
import { failureOf } from '../../http/failure.ts';
import { type HttpResponse, isKeyRefused, type Transport } from '../../http/transport.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { addressOf } from './settings.ts';

/**
 * Maximum clock difference in milliseconds. With a larger difference, runs from different machines appear in the wrong
 * order.
 */
const SKEW_MAX_MS = 5_000;

/**
 * Checks the connection to the service, the response to `GET /info`, and the difference between the clocks. A service that
 * takes spans has only one route, which the test run checks.
 */
export async function* serviceFindings(settings: Settings, client: Transport): AsyncGenerator<Finding> {
  const { endpoint, proxies } = settings;
  const proxy = proxyFor(endpoint, proxies);
  if (proxies !== undefined) yield proxyFinding(proxy);
  if (env('NODE_TLS_REJECT_UNAUTHORIZED') === '0') {
    yield warn(
      'tls',
      'NODE_TLS_REJECT_UNAUTHORIZED is 0, so certificates are not checked',
      'unset this variable, and add your certificate authority with NODE_EXTRA_CA_CERTS',
    );
  }
  // With a proxy, the connection is not checked, because the proxy connects to the service.
  if (typeof proxy === 'string') yield* connectionFindings(settings);
  if (settings.otlp === undefined) yield* infoFindings(client, proxy, sendsKey(settings));
}

/** Checks the API key with a query for a trace that does not exist. */
export async function keyFinding(settings: Settings, client: Transport): Promise<Finding> {
  const check = 'key';
  const hasKey = sendsKey(settings);
  try {
    const { status, json } = await queryTrace(client, randomUUID());
    if (status === 401) {
      const message = hasKey ? 'rejected' : 'not set, but the service requires a key';
      return fail(check, `${message} (status 401)`, adviceFor(status, hasKey));
    }
    if (status === 403) return warn(check, 'the key has no permission to read runs (status 403)', LATER);
    if (status !== 200) return ok(check, `skipped: this service has no query endpoint (status ${status}); ${LATER}`);
    if (json === undefined) return fail(check, 'the response to POST /runs/query is not JSON', NO_SERVICE);
    return ok(check, hasKey ? 'accepted' : 'not set, and the service requires no key');
  } catch (thrown) {
    return warn(check, `not checked: ${messageOf(thrown)}`, LATER);
  }
}

export function sendsKey({ headers }: Settings): boolean {
  return headers['x-api-key'] !== undefined;
}

const NO_SERVICE = 'check that the endpoint is the URL of the service, not of a web page';

const LATER = 'the test run shows whether runs are accepted';

/** Queries the runs of a trace. `json` is undefined if the response is not JSON. */
export async function queryTrace(client: Transport, traceId: string): Promise<{ status: number; json: unknown }> {
  const { status, text } = await client.send({
    method: 'POST',
    path: '/runs/query',
    headers: { 'content-type': 'application/json' },
    body: [JSON.stringify({ trace: traceId, limit: 1 })],
  });
  return { status, json: parseJson(text) };
}

const DIRECT: Readonly<Record<NoProxy, string>> = {
  'none is named': 'HTTPS_PROXY applies to https only',
  'this machine': 'a connection to this machine uses no proxy',
  'an exception': 'NO_PROXY contains the host',
};

function proxyFinding(proxy: NamedProxy | NoProxy): Finding {
  if (typeof proxy === 'string') return ok('proxy', `none: ${DIRECT[proxy]}`);
  return ok('proxy', `${addressOf(proxy.address)}, from ${proxy.variable}`);
}

/** Resolves the host name and connects to the service. If the connection fails, the last finding is a failure. */
async function* connectionFindings({ endpoint, limits }: Settings): AsyncGenerator<Finding> {
  const isTls = endpoint.protocol === 'https:';
  const host = endpoint.hostname.replace(/^\[|\]$/g, '');
  const port = Number(endpoint.port) || (isTls ? 443 : 80);
  let check = 'dns';
  let advice = 'check the host in the endpoint, and the DNS settings of this machine';
  let name = host;
  try {
    const found = isIP(host) === 0 ? await lookup(host, { all: true }) : undefined;
    yield ok(check, `${host} is ${found?.map(({ address }) => address).join(', ') ?? 'an IP address'}`);
    check = isTls ? 'tls' : 'tcp';
    advice = isTls
      ? 'check the host and port; add the certificate of your own authority with NODE_EXTRA_CA_CERTS'
      : 'check the host and port, whether the service is running, and firewalls and proxies';
    name = `${host}:${port}`;
    const startedAtMs = performance.now();
    await connected(host, port, isTls, limits.connectTimeoutMs);
    yield ok(check, `connected to ${name} in ${elapsedText(startedAtMs)}`);
  } catch (thrown) {
    const { code, problem } = failureOf(thrown);
    if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' && (await speaksHttp(host, port, limits.connectTimeoutMs))) {
      yield fail(check, `${name}: the port speaks http, not https`, 'use http:// in the endpoint');
      return;
    }
    // The messages of OpenSSL contain addresses and file names of its source code.
    yield fail(check, `${name}: ${code?.startsWith('ERR_SSL_') ? problem : messageOf(thrown)}`, advice);
  }
}

/** Returns whether the server answers a plain HTTP request. TLS reports the same error for every other protocol. */
async function speaksHttp(host: string, port: number, timeoutMs: number): Promise<boolean> {
  const socket = connectTcp({ host, port });
  socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no response within ${timeoutMs} ms`)));
  try {
    socket.write(`HEAD / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    // Ends without a value if the server closes the connection without a response.
    for await (const data of socket) return String(data).startsWith('HTTP/');
    return false;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function connected(host: string, port: number, isTls: boolean, timeoutMs: number): Promise<void> {
  const servername = isIP(host) === 0 ? { servername: host } : {};
  const socket = isTls ? connectTls({ host, port, ...servername }) : connectTcp({ host, port });
  socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no connection within ${timeoutMs} ms`)));
  try {
    // `once` rejects if the socket emits `error`.
    await once(socket, isTls ? 'secureConnect' : 'connect');
  } finally {
    socket.destroy();
  }
}

async function* infoFindings(client: Transport, proxy: NamedProxy | NoProxy, hasKey: boolean): AsyncGenerator<Finding> {
  const request = { method: 'GET', path: '/info', headers: { accept: 'application/json' } } as const;
  let startedAtMs = 0;
  let response: HttpResponse;
  try {
    // The first request opens the connection and loads undici, so the second request measures the latency.
    await client.send(request);
    startedAtMs = performance.now();
    response = await client.send(request);
  } catch (thrown) {
    const { problem, advice } = failureOf(thrown);
    const checked = typeof proxy === 'string' ? 'that the endpoint is the URL of the service' : proxy.variable;
    yield fail('info', `GET /info: ${problem}`, advice ?? `check ${checked}`);
    return;
  }
  yield infoFinding(response, elapsedText(startedAtMs), hasKey);
  yield clockFinding(response, (performance.now() - startedAtMs) / 2);
}

function infoFinding({ status, text }: HttpResponse, time: string, hasKey: boolean): Finding {
  const check = 'info';
  const message = `GET /info: status ${status} in ${time}`;
  const advice = adviceFor(status, hasKey);
  if (status >= 300 && status < 400) return fail(check, `${message}; redirects are not followed`, advice);
  if (status >= 500) return fail(check, message, advice);
  if (status === 404) return warn(check, message, 'check the path in the endpoint, unless the service has no /info');
  if (status >= 300) return warn(check, message, advice);
  return parseJson(text) === undefined ? fail(check, `${message}, not JSON`, NO_SERVICE) : ok(check, message);
}

function clockFinding({ headers }: HttpResponse, answeredAgoMs: number): Finding {
  const check = 'clock';
  const date = Date.parse(String(headers.date));
  if (Number.isNaN(date)) return ok(check, 'the service sends no Date header');
  // The `Date` header has no fractions, so 500 ms is added on average. The service is assumed to set the header halfway
  // through the request.
  const skewMs = Date.now() - answeredAgoMs - (date + 500);
  const seconds = Math.round(Math.abs(skewMs) / 1_000);
  if (Math.abs(skewMs) <= SKEW_MAX_MS) return ok(check, `within ${Math.max(1, seconds)} s of the service`);
  const message = `${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} the service`;
  return warn(check, message, 'synchronize the clock of this machine with NTP, because runs are sorted by time');
}

function elapsedText(startedAtMs: number): string {
  return `${Math.max(1, Math.round(performance.now() - startedAtMs))} ms`;
}

const KEY_ADVICE =
  'copy RUNSPAN_API_KEY again, and set RUNSPAN_WORKSPACE_ID if the key is valid for several workspaces';
const CONTENT_ADVICE = 'check that the endpoint is a service that accepts runs; if it is, report a bug in runspan';
const PATH_ADVICE = 'check the path in the endpoint; the service has /info, /runs/multipart and /runs below it';
const LATER_ADVICE = 'the service is unavailable; try again later';

const ADVICE: Readonly<Record<number, string>> = {
  400: CONTENT_ADVICE,
  401: KEY_ADVICE,
  402: 'check the plan and the payment of your account with the service',
  403: KEY_ADVICE,
  404: PATH_ADVICE,
  405: PATH_ADVICE,
  408: LATER_ADVICE,
  413: 'raise the request size limit of the service, or of a proxy in front of the service',
  415: PATH_ADVICE,
  422: CONTENT_ADVICE,
  425: LATER_ADVICE,
  429: 'try again later, or raise the rate limit of the service',
  501: PATH_ADVICE,
};

const OTLP_ADVICE = 'check the path in the endpoint, and whether the service takes OTLP/protobuf or JSON (otlp-json)';

/** Returns advice for a response status. If no response arrived, `status` is undefined. */
export function adviceFor(status: number | undefined, hasKey: boolean, isOtlp = false): string {
  if (status === undefined) return LATER_ADVICE;
  if (isOtlp && ADVICE[status] === PATH_ADVICE) return OTLP_ADVICE;
  if (!hasKey && isKeyRefused(status)) return 'set RUNSPAN_API_KEY';
  if (status >= 300 && status < 400) return 'set the endpoint to the target of the redirect';
  const other = 'see the documentation of the service for the meaning of this status';
  return ADVICE[status] ?? (status >= 500 ? LATER_ADVICE : other);
}
