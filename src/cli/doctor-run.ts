import * as channels from 'node:diagnostics_channel';
import type { Settings } from '../export/settings.ts';
import type { HttpAnswer, HttpClient } from '../http/client.ts';
import { startRun } from '../run/start-run.ts';
import { subscribe } from '../run/stats.ts';
import { createExporter } from '../runspan.ts';
import { adviceFor } from './doctor-advice.ts';
import { askedFor, isJson, NO_SERVICE, sendsKey } from './doctor-service.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

const SEND_MAX_MS = 10_000;

/** A service may take a moment until it shows what it has accepted. */
const ASK_EVERY_MS = 500;
const ASKS_MAX = 10;

/** Sends one run the way that an application would, and reads it back where the service can be asked. */
export async function* runFindings(settings: Settings, client: HttpClient): AsyncGenerator<Finding> {
  const exporter = createExporter({ tracing: true, sampleRate: 1, durability: 'memory' });
  let status: number | undefined;
  const stop = subscribe('runspan:request:end', (request) => {
    status = request.status;
  });
  const run = startRun({ name: 'runspan doctor', exporter, root: true, inputs: { check: 'one test run' } });
  run.end({ result: 'sent' });
  const startedAtMs = performance.now();
  const type = await typeOfAnswers(() => exporter.close({ timeoutMs: SEND_MAX_MS }));
  stop();
  const { sent, lastError, droppedByReason } = exporter.stats();
  if (sent !== 1) {
    const reason = droppedByReason.closed > 0 ? `no answer within ${SEND_MAX_MS / 1_000} s` : 'the service rejects it';
    yield fail('test run', `not accepted: ${lastError?.message ?? reason}`, adviceFor(status, sendsKey(settings)));
    return;
  }
  if (type !== undefined && !/\bjson\b/i.test(type)) {
    yield fail('test run', `status ${status}, but the answer is ${type}, not JSON`, NO_SERVICE);
    return;
  }
  yield ok('test run', `accepted in ${Math.max(1, Math.round(performance.now() - startedAtMs))} ms: ${run.id}`);
  yield await readBack(client, run.traceId);
}

/**
 * Returns the content type of the last response to an ingestion request, if it has a body. The exporter itself reads
 * only the status.
 */
async function typeOfAnswers(send: () => Promise<unknown>): Promise<string | undefined> {
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
  for (let ask = 0; ask < ASKS_MAX; ask++) {
    if (ask > 0) await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    const answer = await askedFor(client, traceId);
    if (answer instanceof Error) return warn(check, answer.message, 'look for the run in the service');
    if (answer.status !== 200)
      return ok(check, `the service cannot be asked (status ${answer.status}); look for the run there`);
    if (!isJson(answer.text)) return warn(check, 'the answer is not JSON', 'look for the run in the service');
    if (namesIn(answer).includes('runspan doctor')) return ok(check, 'the run is there');
  }
  const seconds = (ASKS_MAX * ASK_EVERY_MS) / 1_000;
  return warn(
    check,
    `not there after ${seconds} s`,
    'look for it in the project that is named above; some services take longer',
  );
}

function namesIn({ text }: HttpAnswer): unknown[] {
  try {
    const { runs } = JSON.parse(text) as { runs: { name?: unknown }[] };
    return runs.map(({ name }) => name);
  } catch {
    return [];
  }
}
