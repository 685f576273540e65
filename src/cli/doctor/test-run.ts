import * as channels from 'node:diagnostics_channel';
import type { Settings } from '../../export/settings.ts';
import type { HttpAnswer, HttpClient } from '../../http/client.ts';
import { startRun } from '../../run/start-run.ts';
import { subscribe } from '../../run/stats.ts';
import { createExporter } from '../../runspan.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { adviceFor, isJson, NO_SERVICE, queryTrace, sendsKey } from './service.ts';

const SEND_MAX_MS = 10_000;

/** A service may return an accepted run only after a delay. */
const QUERY_EVERY_MS = 500;
const QUERIES_MAX = 10;

/** Sends one run as an application does, and reads it back if the service supports queries. */
export async function* runFindings(settings: Settings, client: HttpClient): AsyncGenerator<Finding> {
  const exporter = createExporter({ tracing: true, sampleRate: 1, durability: 'memory' });
  let status: number | undefined;
  const stop = subscribe('runspan:request:end', (request) => {
    status = request.status;
  });
  const run = startRun({ name: 'runspan doctor', exporter, root: true, inputs: { check: 'one test run' } });
  run.end({ result: 'sent' });
  const startedAtMs = performance.now();
  const type = await responseType(() => exporter.close({ timeoutMs: SEND_MAX_MS }));
  stop();
  const { sent, lastError, droppedByReason } = exporter.stats();
  if (sent !== 1) {
    const reason =
      droppedByReason.closed > 0 ? `no response within ${SEND_MAX_MS / 1_000} s` : 'the service rejected it';
    yield fail('test run', `not accepted: ${lastError?.message ?? reason}`, adviceFor(status, sendsKey(settings)));
    return;
  }
  if (type !== undefined && !/\bjson\b/i.test(type)) {
    yield fail('test run', `status ${status}, but the response is ${type}, not JSON`, NO_SERVICE);
    return;
  }
  yield ok('test run', `accepted in ${Math.max(1, Math.round(performance.now() - startedAtMs))} ms: ${run.id}`);
  yield await readBack(client, run.traceId);
}

/**
 * Returns the content type of the last response to an ingestion request, if it has a body. The exporter itself reads
 * only the status.
 */
async function responseType(send: () => Promise<unknown>): Promise<string | undefined> {
  let type: string | undefined;
  const listen = (message: unknown): void => {
    const { request, response } = message as UndiciHeaders;
    if (!/\/runs(?:\/multipart)?$/.test(request.path)) return;
    const headers = response.headers.map((one) => one.toString('latin1'));
    const headerOf = (name: string): string | undefined =>
      headers.find((_, at) => headers[at - 1]?.toLowerCase() === name && at % 2 === 1);
    type = headerOf('content-length') === '0' ? undefined : headerOf('content-type');
  };
  channels.subscribe('undici:request:headers', listen);
  try {
    await send();
  } finally {
    channels.unsubscribe('undici:request:headers', listen);
  }
  return type;
}

/** The fields of undici's diagnostics message that are read. `headers` alternates names and values. */
interface UndiciHeaders {
  readonly request: { readonly path: string };
  readonly response: { readonly headers: readonly Buffer[] };
}

async function readBack(client: HttpClient, traceId: string): Promise<Finding> {
  const check = 'read back';
  for (let query = 0; query < QUERIES_MAX; query++) {
    if (query > 0) await new Promise((resolve) => setTimeout(resolve, QUERY_EVERY_MS));
    const response = await queryTrace(client, traceId);
    if (response instanceof Error) return warn(check, response.message, 'look for the run in the service');
    if (response.status !== 200) {
      return ok(check, `skipped: this service has no query endpoint (status ${response.status})`);
    }
    if (!isJson(response.text)) return warn(check, 'the response is not JSON', 'look for the run in the service');
    if (namesIn(response).includes('runspan doctor')) return ok(check, 'the run was found');
  }
  const seconds = (QUERIES_MAX * QUERY_EVERY_MS) / 1_000;
  return warn(check, `not found after ${seconds} s`, 'look for it in the project; some services take longer');
}

function namesIn({ text }: HttpAnswer): unknown[] {
  try {
    const { runs } = JSON.parse(text) as { runs: { name?: unknown }[] };
    return runs.map(({ name }) => name);
  } catch {
    return [];
  }
}
