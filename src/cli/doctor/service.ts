import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { env } from '../../base/env.ts';
import { messageOf } from '../../base/text.ts';
import type { Settings } from '../../export/settings.ts';
import type { HttpAnswer, HttpClient } from '../../http/client.ts';
import { type NamedProxy, type NoProxy, proxyFor } from '../../http/connections.ts';
import { failureOf } from '../../http/errors.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { addressOf } from './settings.ts';

/** With a larger difference, runs of this machine are sorted wrongly among runs of other machines. */
const SKEW_MAX_MS = 5_000;

/** Checks the connection to the service, `GET /info` and the clocks. */
export async function* serviceFindings(settings: Settings, client: HttpClient): AsyncGenerator<Finding> {
  const { endpoint, proxies } = settings;
  const proxy = proxyFor(endpoint, proxies);
  if (proxies !== undefined) yield proxyFinding(proxy);
  if (env('NODE_TLS_REJECT_UNAUTHORIZED') === '0') {
    yield warn(
      'tls',
      'NODE_TLS_REJECT_UNAUTHORIZED is 0, so certificates are not checked',
      'unset it, and add your own authority with NODE_EXTRA_CA_CERTS',
    );
  }
  // A proxy resolves the name and connects to the service.
  if (typeof proxy === 'string') {
    const name = await nameFinding(endpoint);
    yield name;
    if (name.level === 'fail') return;
    const connection = await connectionFinding(settings);
    yield connection;
    if (connection.level === 'fail') return;
  }
  yield* infoFindings(client, proxy, sendsKey(settings));
}

/** Checks the key with a query for a trace that does not exist. */
export async function keyFinding(settings: Settings, client: HttpClient): Promise<Finding> {
  const check = 'key';
  const hasKey = sendsKey(settings);
  const answer = await queryTrace(client, randomUUID());
  if (answer instanceof Error) return warn(check, `not checked: ${answer.message}`, LATER);
  const { status } = answer;
  if (status === 401) {
    const message = hasKey ? 'rejected' : 'none is set, and the service requires one';
    return fail(check, `${message} (status 401)`, adviceFor(status, hasKey));
  }
  if (status === 403) return warn(check, 'the key may not read runs (status 403)', LATER);
  if (status === 200 && !isJson(answer.text))
    return fail(check, 'the response to POST /runs/query is not JSON', NO_SERVICE);
  if (status !== 200) return ok(check, `skipped: this service has no query endpoint (status ${status}); ${LATER}`);
  return ok(check, hasKey ? 'accepted' : 'none, and the service requires none');
}

export function sendsKey({ headers }: Settings): boolean {
  return headers['x-api-key'] !== undefined;
}

export const NO_SERVICE = 'check that the endpoint is the address of the service, not of a web page';

const LATER = 'the test run shows whether runs are accepted';

/** Returns the response to a query for a trace, or the error if there is no response. */
export async function queryTrace(client: HttpClient, traceId: string): Promise<HttpAnswer | Error> {
  try {
    return await client.send({
      method: 'POST',
      path: '/runs/query',
      headers: { 'content-type': 'application/json' },
      body: [JSON.stringify({ trace: traceId, limit: 1 })],
    });
  } catch (thrown) {
    return new Error(messageOf(thrown));
  }
}

/** Reasons for a direct connection. */
const DIRECT: Readonly<Record<NoProxy, string>> = {
  'none is named': 'HTTPS_PROXY applies to https only',
  'this machine': 'a connection to this machine uses no proxy',
  'an exception': 'NO_PROXY contains the host',
};

function proxyFinding(proxy: NamedProxy | NoProxy): Finding {
  if (typeof proxy === 'string') return ok('proxy', `none: ${DIRECT[proxy]}`);
  return ok('proxy', `${addressOf(proxy.address)}, from ${proxy.variable}`);
}

async function nameFinding({ hostname }: URL): Promise<Finding> {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) return ok('dns', `${host} is an address`);
  try {
    const found = await lookup(host, { all: true });
    return ok('dns', `${host} is ${found.map(({ address }) => address).join(', ')}`);
  } catch (thrown) {
    const advice = 'check the host in the endpoint, and the DNS settings of this machine';
    return fail('dns', `${host}: ${messageOf(thrown)}`, advice);
  }
}

async function connectionFinding({ endpoint, limits }: Settings): Promise<Finding> {
  const isTls = endpoint.protocol === 'https:';
  const host = endpoint.hostname.replace(/^\[|\]$/g, '');
  const port = Number(endpoint.port) || (isTls ? 443 : 80);
  const startedAtMs = performance.now();
  const check = isTls ? 'tls' : 'tcp';
  try {
    await connected(host, port, isTls, limits.connectTimeoutMs);
    return ok(check, `connected to ${host}:${port} in ${elapsedText(startedAtMs)}`);
  } catch (thrown) {
    const advice = isTls
      ? 'check address and port; add a certificate of your own authority with NODE_EXTRA_CA_CERTS'
      : 'check address and port, that the service is running, and firewalls and proxies';
    return fail(check, `${host}:${port}: ${messageOf(thrown)}`, advice);
  }
}

function connected(host: string, port: number, isTls: boolean, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const servername = isIP(host) === 0 ? { servername: host } : {};
    const socket = isTls ? connectTls({ host, port, ...servername }) : connectTcp({ host, port });
    const end = (settle: () => void): void => {
      socket.destroy();
      settle();
    };
    socket.setTimeout(timeoutMs, () => end(() => reject(new Error(`no connection within ${timeoutMs} ms`))));
    socket.once('error', (error) => end(() => reject(error)));
    socket.once(isTls ? 'secureConnect' : 'connect', () => end(resolve));
  });
}

async function* infoFindings(
  client: HttpClient,
  proxy: NamedProxy | NoProxy,
  hasKey: boolean,
): AsyncGenerator<Finding> {
  const request = { method: 'GET', path: '/info', headers: { accept: 'application/json' } } as const;
  let startedAtMs = 0;
  let answer: HttpAnswer;
  try {
    // The first request opens the connection and loads undici.
    await client.send(request);
    startedAtMs = performance.now();
    answer = await client.send(request);
  } catch (thrown) {
    const { problem, advice } = failureOf(thrown);
    const checked = typeof proxy === 'string' ? 'that the endpoint is the address of the service' : proxy.variable;
    yield fail('info', `GET /info: ${problem}`, advice ?? `check ${checked}`);
    return;
  }
  yield infoFinding(answer, elapsedText(startedAtMs), hasKey);
  yield clockFinding(answer, (performance.now() - startedAtMs) / 2);
}

function infoFinding({ status, text }: HttpAnswer, time: string, hasKey: boolean): Finding {
  const check = 'info';
  const message = `GET /info: status ${status} in ${time}`;
  const advice = adviceFor(status, hasKey);
  if (status >= 300 && status < 400) return fail(check, `${message}, a redirect, which is not followed`, advice);
  if (status >= 500) return fail(check, message, advice);
  if (status === 404) return warn(check, message, 'check the path in the endpoint, unless the service has no /info');
  if (status >= 300) return warn(check, message, advice);
  return isJson(text) ? ok(check, message) : fail(check, `${message}, not JSON`, NO_SERVICE);
}

function clockFinding({ headers }: HttpAnswer, answeredAgoMs: number): Finding {
  const check = 'clock';
  const date = Date.parse(String(headers.date));
  if (Number.isNaN(date)) return ok(check, 'the service sends no Date header');
  // The header has a resolution of one second, and was written in about the middle of the request.
  const skewMs = Date.now() - answeredAgoMs - (date + 500);
  const seconds = Math.round(Math.abs(skewMs) / 1_000);
  if (Math.abs(skewMs) <= SKEW_MAX_MS) return ok(check, `within ${Math.max(1, seconds)} s of the service`);
  const message = `${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} the service`;
  return warn(check, message, 'synchronize the clock of this machine (NTP), because runs are sorted by time');
}

function elapsedText(startedAtMs: number): string {
  return `${Math.max(1, Math.round(performance.now() - startedAtMs))} ms`;
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const KEY_ADVICE =
  'copy RUNSPAN_API_KEY again, and set RUNSPAN_WORKSPACE_ID if the key is valid for several workspaces';

/** Returns what to do if the service responds with this status, or does not respond. */
export function adviceFor(status: number | undefined, hasKey: boolean): string {
  switch (status) {
    case 400:
    case 422:
      return 'check that the endpoint is a service that accepts runs; if it is, report this as a defect of runspan';
    case 401:
    case 403:
      return hasKey ? KEY_ADVICE : 'set RUNSPAN_API_KEY';
    case 402:
      return 'check the payment and the plan of the account with the service';
    case 404:
    case 405:
    case 415:
    case 501:
      return 'check the path in the endpoint; the service has /info, /runs/multipart and /runs below it';
    case 413:
      return 'raise the limit for the size of a request in the service, or in a proxy in front of it';
    case 429:
      return 'try again later, or raise the rate limit of the service';
  }
  if (status !== undefined && status >= 300 && status < 400) return 'set the endpoint to the target of the redirect';
  if (status === undefined || status === 408 || status === 425 || status >= 500) {
    return 'the service has a problem; try again later';
  }
  return 'check the meaning of this status in the documentation of the service';
}
