import { messageOf } from '../../base/text.ts';
import { parseJson } from '../../clients/errors.ts';
import type { Settings } from '../../config/options.ts';
import type { Transport } from '../../http/transport.ts';
import { delay } from '../../platform/timers.ts';
import { startRun } from '../../run/start-run.ts';
import { subscribe } from '../../run/stats.ts';
import { createExporter } from '../../runspan.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { adviceFor, BRIEF, sendsKey } from './service.ts';

const NAME = 'runspan doctor';

const SEND_MAX_MS = 10_000;
/** Time in which a service that refuses the run also refuses its other forms, such as without payloads, in milliseconds. */
const REFUSAL_MS = 1_500;

/** Interval between queries, in milliseconds. A service may return an accepted run only after a delay. */
const QUERY_EVERY_MS = 500;
const QUERIES_MAX = 10;

/** Sends one run as an application would. Reads the run back if the service supports queries. */
export async function* runFindings(settings: Settings, client: Transport): AsyncGenerator<Finding> {
  const exporter = createExporter({ tracing: true, sampleRate: 1, durability: 'memory' });
  let status: number | undefined;
  const stop = subscribe('runspan:request:end', (request) => {
    status = request.status;
  });
  const run = startRun({ name: NAME, exporter, root: true, inputs: { check: 'one test run' } });
  run.end({ result: 'sent' });
  const startedAtMs = performance.now();
  await exporter.flush({ timeoutMs: REFUSAL_MS });
  // While a request is in flight, the status is that of an earlier one, for example of another route.
  const isRefused =
    exporter.stats().inFlight === 0 && status !== undefined && status >= 300 && status < 500 && !BRIEF.includes(status);
  await exporter.close({ timeoutMs: isRefused ? 0 : SEND_MAX_MS });
  stop();
  const { sent, lastError, droppedByReason } = exporter.stats();
  if (sent === 1) {
    yield ok('test run', `accepted in ${Math.max(1, Math.round(performance.now() - startedAtMs))} ms: ${run.id}`);
    if (settings.otlp === undefined) yield await readBack(client, run.traceId);
    return;
  }
  const reason =
    droppedByReason.closed > 0 ? `no response within ${SEND_MAX_MS / 1_000} s` : 'the service rejected the run';
  yield fail(
    'test run',
    `not accepted: ${lastError?.message ?? reason}`,
    adviceFor(status, sendsKey(settings), settings.otlp !== undefined),
  );
}

async function readBack(client: Transport, traceId: string): Promise<Finding> {
  const check = 'read back';
  try {
    for (let query = 0; query < QUERIES_MAX; query++) {
      if (query > 0) await delay(QUERY_EVERY_MS, undefined, true);
      const { status, text } = await client.send({
        method: 'POST',
        path: '/runs/query',
        headers: { 'content-type': 'application/json' },
        body: [JSON.stringify({ trace: traceId, limit: 1 })],
      });
      const json = parseJson(text);
      if (status === 403) return ok(check, 'skipped: the key has no permission to read runs (status 403)');
      if (status !== 200) return ok(check, `skipped: this service has no query endpoint (status ${status})`);
      if (json === undefined) return warn(check, 'the response is not JSON', 'look for the run in the service');
      const { runs } = Object(json) as { runs?: unknown };
      if (Array.isArray(runs) && runs.some((run) => run?.name === NAME)) return ok(check, 'the run was found');
    }
  } catch (thrown) {
    return warn(check, messageOf(thrown), 'look for the run in the service');
  }
  const seconds = (QUERIES_MAX * QUERY_EVERY_MS) / 1_000;
  return warn(check, `not found after ${seconds} s`, 'look for the run in the service; some services take longer');
}
