import { parseJson } from '../../clients/errors.ts';
import { env } from '../../config/environment.ts';
import type { Settings } from '../../config/options.ts';
import { type NamedProxy, type NoProxy, proxyFor } from '../../http/connections.ts';
import { failureOf } from '../../http/failure.ts';
import { type HttpResponse, isKeyRefused, type Transport } from '../../http/transport.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { addressIn } from './settings.ts';

/**
 * Maximum clock difference in milliseconds. With a larger difference, runs from different machines appear in the wrong
 * order.
 */
const SKEW_MAX_MS = 5_000;

/**
 * Checks the proxy, the response to `GET /info`, and the clocks. A service that takes spans has only one route, which the
 * test run checks.
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
  if (settings.otlp === undefined) yield* infoFindings(client, proxy, sendsKey(settings));
}

export function sendsKey({ headers }: Settings): boolean {
  return headers['x-api-key'] !== undefined;
}

const NO_SERVICE = 'check that the endpoint is the URL of the service, not of a web page';

const DIRECT: Readonly<Record<NoProxy, string>> = {
  'none is named': 'HTTPS_PROXY applies to https only',
  'this machine': 'a connection to this machine uses no proxy',
  'an exception': 'NO_PROXY contains the host',
};

function proxyFinding(proxy: NamedProxy | NoProxy): Finding {
  if (typeof proxy === 'string') return ok('proxy', `none: ${DIRECT[proxy]}`);
  return ok('proxy', `${addressIn(proxy.address)}, from ${proxy.variable}`);
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

const LATER_ADVICE = 'the service is unavailable; try again later';
const OTLP_ADVICE = 'check the path in the endpoint, and whether the service takes OTLP/protobuf or JSON (otlp-json)';
const NO_ROUTE: readonly number[] = [404, 405, 415, 501];
/** Refusals that may not last. */
export const BRIEF: readonly number[] = [408, 425, 429];

const ADVICE: readonly (readonly [statuses: readonly number[], advice: string])[] = [
  [[401, 403], 'copy RUNSPAN_API_KEY again, and set RUNSPAN_WORKSPACE_ID if the key is valid for several workspaces'],
  [NO_ROUTE, 'check the path in the endpoint; the service has /info, /runs/multipart and /runs below it'],
  [[400, 422], 'check that the endpoint is a service that accepts runs; if it is, report a bug in runspan'],
  [[413], 'raise the request size limit of the service, or of a proxy in front of the service'],
  [[429], 'try again later, or raise the rate limit of the service'],
  [[408, 425], LATER_ADVICE],
];

/** Returns advice for a response status. If no response arrived, `status` is undefined. */
export function adviceFor(status: number | undefined, hasKey: boolean, isOtlp = false): string {
  if (status === undefined || (status >= 500 && !NO_ROUTE.includes(status))) return LATER_ADVICE;
  if (isOtlp && NO_ROUTE.includes(status)) return OTLP_ADVICE;
  if (!hasKey && isKeyRefused(status)) return 'set RUNSPAN_API_KEY';
  if (status >= 300 && status < 400) return 'set the endpoint to the target of the redirect';
  const [, advice] = ADVICE.find(([statuses]) => statuses.includes(status)) ?? [];
  return advice ?? 'see the documentation of the service for the meaning of this status';
}
