import { parseJson } from '../../clients/errors.ts';
import type { Settings } from '../../config/options.ts';
import { statusText } from '../../delivery/wire/reason.ts';
import { proxyFor } from '../../http/connections.ts';
import { failureOf } from '../../http/failure.ts';
import { type HttpResponse, isKeyRefused, type Transport } from '../../http/transport.ts';
import { startRun } from '../../run/start-run.ts';
import { subscribe } from '../../run/stats.ts';
import { createExporter } from '../../runspan.ts';
import { type Finding, fail, okFinding, warn } from './finding.ts';
import { addressIn } from './settings.ts';

/**
 * Maximum clock difference in milliseconds. With a larger difference, runs from different machines appear in the wrong
 * order.
 */
const SKEW_MAX_MS = 5_000;

const SEND_MAX_MS = 10_000;

/** Checks the connection and the clocks. A service that takes spans has only one route, which the test run checks. */
export async function* connectionFindings(settings: Settings, client: Transport): AsyncGenerator<Finding> {
  const proxy = proxyFor(settings.endpoint, settings.proxies);
  if (typeof proxy === 'object') yield okFinding('proxy', `${addressIn(proxy.address)}, from ${proxy.variable}`);
  if (settings.otlp !== undefined) return;
  try {
    const response = await client.send({ method: 'GET', path: '/info', headers: { accept: 'application/json' } });
    yield infoFinding(response, settings);
    yield* clockFindings(response);
  } catch (thrown) {
    const { problem, advice } = failureOf(thrown);
    const checked = typeof proxy === 'string' ? 'that the endpoint is the URL of the service' : proxy.variable;
    yield fail('info', `GET /info: ${problem}`, advice ?? `check ${checked}`);
  }
}

function infoFinding(response: HttpResponse, settings: Settings): Finding {
  const { status, text } = response;
  const message = `GET /info: ${statusText(response)}`;
  if (status >= 300) {
    const isFailure = status < 400 || status >= 500;
    return (isFailure ? fail : warn)('info', message, adviceFor(status, settings));
  }
  if (parseJson(text) !== undefined) return okFinding('info', message);
  return fail('info', `${message}, not JSON`, 'check that the endpoint is the URL of the service, not of a web page');
}

function* clockFindings({ headers }: HttpResponse): Generator<Finding> {
  // The `Date` header has no fractions, so 500 ms is added on average.
  const skewMs = Date.now() - (Date.parse(String(headers.date)) + 500);
  if (!(Math.abs(skewMs) > SKEW_MAX_MS)) return;
  const message = `${Math.round(Math.abs(skewMs) / 1_000)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the service`;
  yield warn('clock', message, 'synchronize the clock of this machine with NTP, because runs are sorted by time');
}

export async function testRunFinding(settings: Settings): Promise<Finding> {
  const exporter = createExporter({ tracing: true, sampleRate: 1, durability: 'memory' });
  let status: number | undefined;
  const stop = subscribe('runspan:request:end', (request) => {
    status = request.status;
  });
  const run = startRun({ name: 'runspan doctor', exporter, root: true, inputs: { check: 'one test run' } });
  run.end({ result: 'sent' });
  await exporter.flush({ timeoutMs: SEND_MAX_MS });
  stop();
  await exporter.close({ timeoutMs: 0 });
  const { sent, lastError } = exporter.stats();
  if (sent === 1) return okFinding('test run', `accepted: ${run.url ?? run.id}`);
  const reason = lastError?.message ?? `no response within ${SEND_MAX_MS / 1_000} s`;
  return fail('test run', `not accepted: ${reason}`, adviceFor(status, settings));
}

/** Refusals that may not last. */
const BRIEF: readonly number[] = [408, 425, 429];

const ADVICE: Readonly<Record<number, string>> = {
  401: 'copy RUNSPAN_API_KEY again, and set RUNSPAN_WORKSPACE_ID if the key is valid for several workspaces',
  403: 'use a key that may send runs, and set RUNSPAN_WORKSPACE_ID if the key is valid for several workspaces',
  404: 'check the path in the endpoint, to which runspan appends /info and /runs/multipart',
};

/** Returns advice for a response status. If no response arrived, `status` is undefined. */
function adviceFor(status = 503, { headers }: Settings): string {
  if (isKeyRefused(status) && headers['x-api-key'] === undefined) return 'set RUNSPAN_API_KEY';
  if (status >= 500 || BRIEF.includes(status)) return 'the service is unavailable or limits requests; try again later';
  return ADVICE[status] ?? 'check that the endpoint is the URL of a service that accepts runs';
}
