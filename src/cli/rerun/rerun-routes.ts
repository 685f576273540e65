import { PassThrough } from 'node:stream';
import { messageOf } from '../../base/text.ts';
import { type Exchange, isExchange } from '../../integrations/fetch/exchange.ts';
import { exactJson, type Fields, fieldsOf, isFields, parseExact, put } from '../../payload/fields.ts';
import type { RunDetails, RunOutline } from '../../receiver/domain/run-view.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import { type Call, get, idOf, type Route, type RouteResponse, readJson } from '../../receiver/http/route.ts';
import { startRun, withContext, withRun } from '../../run/start-run.ts';
import { createExporter, type Exporter } from '../../runspan.ts';
import { SERVICE_ORIGINS } from '../../services/keys.ts';
import { CommandFailure } from '../command-line.ts';
import { newProgramId } from '../dev/program-runs.ts';
import { type RerunChanges, type RerunEvent, SAMPLES_MAX } from './rerun-events.ts';
import { type ServiceRequest, send, serviceRequest } from './send.ts';
import type { ServiceRules } from './service-key.ts';

/** What the routes need to know of the receiver that serves them. */
export interface RerunOptions extends ServiceRules {
  /** The receiver's address and a key with which it accepts runs. */
  readonly receiver: () => { readonly url: string; readonly apiKey: string | undefined };
}

const BODY_MAX = 64 * 1024 * 1024;

/** The routes that send a recorded model call again, with the keys of this process. */
export function rerunRoutes(options: RerunOptions): readonly Route[] {
  return [
    get('/query/rerun', () => ({ status: 200, body: { services: [...SERVICE_ORIGINS, ...options.allowed] } })),
    { method: 'POST', path: '/query/runs/:id/rerun', admission: 'admin', handle: (call) => rerun(call, options) },
  ];
}

async function rerun(call: Call, options: RerunOptions): Promise<RouteResponse> {
  const { request, set = {}, samples = 1 } = checked(await readJson(call, BODY_MAX));
  const [run, exchange] = await exchangeOf(call, idOf(call));
  const prepared = refusedIfNot(() => serviceRequest(exchange, changed(request ?? exchange.request, set), options));
  const { url, apiKey } = options.receiver();
  const exporter = createExporter({
    ...{ endpoint: url, tracing: true, protocol: 'runs', sampleRate: 1, keep: [], durability: 'memory' },
    // The traces are not those of the command's program.
    headers: { 'x-runspan-program': newProgramId() },
    ...(apiKey !== undefined && { apiKey }),
    ...(run.session_name !== undefined && { project: run.session_name }),
  });
  return {
    status: 200,
    headers: { 'content-type': 'application/x-ndjson' },
    content: (left) => {
      const lines = new PassThrough({ encoding: 'utf8' });
      const write = (event: RerunEvent): void => void lines.write(`${JSON.stringify(event)}\n`);
      void sendAll(prepared, run, samples, exporter, left, write).finally(() => lines.end());
      return lines;
    },
  };
}

/** Sends all samples at once, and records them in one trace. Never rejects. */
async function sendAll(
  request: ServiceRequest,
  { id, name }: RunDetails,
  samples: number,
  exporter: Exporter,
  left: AbortSignal,
  write: (event: RerunEvent) => void,
): Promise<void> {
  const root = startRun({ name: `rerun of ${name}`, exporter, inputs: { rerun_of: id, samples } });
  const one = async (sample: number): Promise<void> => {
    const metadata = { rerun_of: id };
    const sent = withContext({ metadata }, () => send(request, left, (text) => write({ sample, text })));
    const { runId, error } = await sent;
    await exporter.flush();
    write({ sample, run_id: runId, trace_id: root.traceId, ...(error !== undefined && { error }) });
  };
  await withRun(root, () => Promise.all(Array.from({ length: samples }, (_, sample) => one(sample))));
  root.end();
  await exporter.close();
}

function checked(body: unknown): RerunChanges {
  const { request, set, samples } = fieldsOf(body);
  const isWhole = Number.isInteger(samples) && Number(samples) >= 1 && Number(samples) <= SAMPLES_MAX;
  if (samples !== undefined && !isWhole) throw new HttpError(422, `Expected \`samples\` to be 1 to ${SAMPLES_MAX}`);
  for (const [name, value] of Object.entries({ request, set })) {
    if (value !== undefined && !isFields(value)) throw new HttpError(422, `Expected \`${name}\` to be an object`);
  }
  return body as RerunChanges;
}

/** Returns the last request that is attached to a run, or to another record of the same call, with the run that has it. */
async function exchangeOf({ store, scope }: Call, id: string): Promise<[RunDetails, Exchange]> {
  const given = await store.details(scope, id);
  if (given === undefined) throw new HttpError(404, `The run ${id} is not stored`);
  const outline = (await store.outline(scope, given.trace_id)).map((text): RunOutline => JSON.parse(text));
  const others = outline.filter(({ same_call_as: head }) => head === id);
  for (const run of [given, ...(await Promise.all(others.map((other) => store.details(scope, other.id))))]) {
    const name = run?.attachments?.map((attachment) => attachment.name).findLast(isExchange);
    const attachment = run && name && (await store.attachment(scope, run.id, name));
    const exchange = attachment && fieldsOf(parseExact(new TextDecoder().decode(attachment.bytes)));
    if (run && exchange && isFields(exchange.request)) return [run, exchange as unknown as Exchange];
  }
  throw new HttpError(409, `The request of the run ${id} is not recorded; record the program with runspan dev`);
}

/** Returns a copy with values at paths such as `generationConfig.temperature`. A number in a path is the index in a list. */
function changed(request: Fields, set: Fields): Fields {
  const copy: Fields = parseExact(exactJson(request));
  for (const [path, value] of Object.entries(set)) {
    const keys = path.split('.');
    let target = copy;
    for (const key of keys.slice(0, -1)) {
      const inner = Object.hasOwn(target, key) ? target[key] : undefined;
      if (typeof inner !== 'object' || inner === null) put(target, key, {});
      target = target[key] as Fields;
    }
    put(target, keys.at(-1) as string, value);
  }
  return copy;
}

function refusedIfNot<Result>(prepare: () => Result): Result {
  try {
    return prepare();
  } catch (error) {
    if (error instanceof CommandFailure) throw new HttpError(409, messageOf(error));
    throw error;
  }
}
