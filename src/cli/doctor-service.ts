import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { env } from '../base/env.ts';
import { messageOf } from '../base/text.ts';
import type { Settings } from '../export/settings.ts';
import type { HttpAnswer, HttpClient } from '../http/client.ts';
import { type NamedProxy, type NoProxy, proxyFor } from '../http/connections.ts';
import { failureOf } from '../http/errors.ts';
import { adviceFor } from './doctor-advice.ts';
import { addressOf } from './doctor-settings.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/** A clock that is further away puts runs into another order than those of other machines. */
const SKEW_MAX_MS = 5_000;

/** The way to the service, what it says of itself, and whether the clocks agree. */
export async function* serviceFindings(settings: Settings, client: HttpClient): AsyncGenerator<Finding> {
  const { endpoint, proxies } = settings;
  const proxy = proxyFor(endpoint, proxies);
  if (proxies !== undefined) yield proxyFinding(proxy);
  if (env('NODE_TLS_REJECT_UNAUTHORIZED') === '0') {
    yield warn(
      'tls',
      'NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates are not checked',
      'unset it; NODE_EXTRA_CA_CERTS adds an authority',
    );
  }
  // Behind a proxy neither the name nor the address of the service has to be known here.
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

/** Whether the service takes the key, asked by a query that reads a trace which nobody has. */
export async function keyFinding(settings: Settings, client: HttpClient): Promise<Finding> {
  const check = 'key';
  const hasKey = sendsKey(settings);
  const answer = await askedFor(client, randomUUID());
  if (answer instanceof Error) return warn(check, `not asked: ${answer.message}`, LATER);
  const { status } = answer;
  if (status === 401) {
    const told = hasKey ? 'refused' : 'none is set, and the service asks for one';
    return fail(check, `${told} (status 401)`, adviceFor(status, hasKey));
  }
  if (status === 403) return warn(check, 'it may not read runs (status 403)', LATER);
  if (status === 200 && !isJson(answer.text))
    return fail(check, 'the answer to POST /runs/query is not JSON', NO_SERVICE);
  if (status !== 200) return ok(check, `the service cannot be asked (status ${status}); ${LATER}`);
  return ok(check, hasKey ? 'accepted' : 'none, and the service asks for none');
}

export function sendsKey({ headers }: Settings): boolean {
  return headers['x-api-key'] !== undefined;
}

export const NO_SERVICE = 'check that the endpoint is the service, not a web page';

const LATER = 'the test run shows whether runs are accepted';

/** The answer to a query for a trace, in the manner of the field; an error when none came. */
export async function askedFor(client: HttpClient, traceId: string): Promise<HttpAnswer | Error> {
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

/** Why requests go directly. */
const DIRECT: Readonly<Record<NoProxy, string>> = {
  'none is named': 'HTTPS_PROXY is for https alone',
  'this machine': 'this machine is never reached through one',
  'an exception': 'NO_PROXY names the host',
};

function proxyFinding(proxy: NamedProxy | NoProxy): Finding {
  const told =
    typeof proxy === 'string' ? `none: ${DIRECT[proxy]}` : `${addressOf(proxy.address)}, from ${proxy.variable}`;
  return ok('proxy', told);
}

async function nameFinding({ hostname }: URL): Promise<Finding> {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) return ok('dns', `${host} is an address`);
  try {
    const found = await lookup(host, { all: true });
    return ok('dns', `${host} is ${found.map(({ address }) => address).join(', ')}`);
  } catch (thrown) {
    const advice = 'check the host in the endpoint, and whether this machine resolves names';
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
    return ok(check, `connected to ${host}:${port} in ${elapsed(startedAtMs)}`);
  } catch (thrown) {
    const advice = isTls
      ? 'check address and port; a certificate of your own authority goes into NODE_EXTRA_CA_CERTS'
      : 'check address and port, whether the service runs, and whether a firewall or proxy is between';
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
    // The first opens the connection, and loads the code for it.
    await client.send(request);
    startedAtMs = performance.now();
    answer = await client.send(request);
  } catch (thrown) {
    const { problem, advice } = failureOf(thrown);
    const checked = typeof proxy === 'string' ? 'that the endpoint is the address of the service' : proxy.variable;
    yield fail('info', `GET /info: ${problem}`, advice ?? `check ${checked}`);
    return;
  }
  yield infoFinding(answer, elapsed(startedAtMs), hasKey);
  yield clockFinding(answer, (performance.now() - startedAtMs) / 2);
}

function infoFinding({ status, text }: HttpAnswer, time: string, hasKey: boolean): Finding {
  const check = 'info';
  const told = `GET /info: status ${status} in ${time}`;
  const advice = adviceFor(status, hasKey);
  if (status >= 300 && status < 400) return fail(check, `${told}, a redirect, which is not followed`, advice);
  if (status >= 500) return fail(check, told, advice);
  if (status === 404) return warn(check, told, 'check the path in the endpoint, unless the service has no /info');
  if (status >= 300) return warn(check, told, advice);
  return isJson(text) ? ok(check, told) : fail(check, `${told}, no JSON`, NO_SERVICE);
}

function clockFinding({ headers }: HttpAnswer, answeredAgoMs: number): Finding {
  const check = 'clock';
  const date = Date.parse(String(headers.date));
  if (Number.isNaN(date)) return ok(check, 'the service tells no time');
  // The header is cut to the second, and was written about half-way.
  const skewMs = Date.now() - answeredAgoMs - (date + 500);
  const seconds = Math.round(Math.abs(skewMs) / 1_000);
  if (Math.abs(skewMs) <= SKEW_MAX_MS) return ok(check, `within ${Math.max(1, seconds)} s of the service`);
  const message = `${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} the service`;
  return warn(check, message, 'set the clock of this machine (NTP): runs are sorted by their times');
}

function elapsed(startedAtMs: number): string {
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
