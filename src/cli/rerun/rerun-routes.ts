import { PassThrough } from 'node:stream';
import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import type { Exchange } from '../../integrations/fetch/exchange.ts';
import { defined, exactJson, type Fields, fieldsOf, isFields, parsedJson, put } from '../../payload/fields.ts';
import type { RunOperation } from '../../receiver/domain/run-message.ts';
import type { RunDetails, RunOutline } from '../../receiver/domain/run-view.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import { type Call, get, idOf, type Route, type RouteResponse, readJson } from '../../receiver/http/route.ts';
import { requiredObject } from '../../receiver/http/validation.ts';
import { startRun, withContext, withRun } from '../../run/start-run.ts';
import { EXCHANGE_NAME } from '../../services/conversation.ts';
import { SERVICE_ORIGINS } from '../../services/keys.ts';
import { type RecordedRun, recordRuns } from '../../testing/record-runs.ts';
import { type RerunChanges, type RerunEvent, SAMPLES_MAX } from './rerun-events.ts';
import { type ServiceRequest, send, serviceRequest } from './send.ts';
import type { ServiceRules } from './service-key.ts';

const BODY_MAX = 64 * 1024 * 1024;

/** The routes that send a recorded model call again, with the keys of this process. */
export function rerunRoutes(rules: ServiceRules): readonly Route[] {
  return [
    get('/query/rerun', () => ({ status: 200, body: { services: [...SERVICE_ORIGINS, ...rules.allowed] } })),
    { method: 'POST', path: '/query/runs/:id/rerun', admission: 'admin', handle: (call) => rerun(call, rules) },
  ];
}

async function rerun(call: Call, rules: ServiceRules): Promise<RouteResponse> {
  const { request, set = {}, samples = 1 } = checked(requiredObject(await readJson(call, BODY_MAX)));
  const [run, exchange] = await exchangeOf(call, idOf(call));
  const prepared = serviceRequest(exchange, changed(request ?? exchange.request, set), rules);
  return {
    status: 200,
    headers: { 'content-type': 'application/x-ndjson' },
    content: (left) => {
      const lines = new PassThrough({ encoding: 'utf8' });
      const write = (event: RerunEvent): void => {
        // A slow client gets only the last text of an answer.
        if (event.trace_id !== undefined || !lines.writableNeedDrain) lines.write(`${JSON.stringify(event)}\n`);
      };
      sendAll(call, { request: prepared, run, samples, left, write })
        .catch((error) => diagnostics.error(`the answers of a rerun could not be stored: ${messageOf(error)}`))
        .finally(() => lines.end());
      return lines;
    },
  };
}

interface Rerun {
  readonly request: ServiceRequest;
  readonly run: RunDetails;
  readonly samples: number;
  /** Aborts if the client leaves or the receiver closes. */
  readonly left: AbortSignal;
  readonly write: (event: RerunEvent) => void;
}

/** Sends all samples at once, and stores them as one trace. */
async function sendAll({ store, scope }: Call, { request, run, samples, left, write }: Rerun): Promise<void> {
  const { id, name, session_name: project } = run;
  const recorder = recordRuns(defined({ project }));
  // Records only the runs that name its exporter.
  recorder.stop();
  const root = startRun({ name: `rerun of ${name}`, exporter: recorder.exporter });
  const apply = async (runs = recorder.runs): Promise<undefined> => {
    await store.apply(scope, await Promise.all(runs.map(operationOf)));
  };
  const one = async (sample: number): Promise<void> => {
    const { runId, text, error } = await withContext({ metadata: { rerun_of: id } }, () =>
      send(request, left, (text) => write({ sample, text })),
    );
    // An answer that cannot be stored must not end the requests of the other samples.
    const own = recorder.runs.filter((one) => one.id === root.id || one.id === runId);
    const problem = await apply(own).catch((thrown) => `the answer could not be stored: ${messageOf(thrown)}`);
    write({ sample, text, run_id: runId, trace_id: root.traceId, ...defined({ error: error ?? problem }) });
  };
  await withRun(root, () => Promise.all(Array.from({ length: samples }, (_, sample) => one(sample))));
  root.end();
  await apply();
}

async function operationOf({ id, attachments = [], ...fields }: RecordedRun): Promise<RunOperation> {
  const whole = attachments.map(async ({ bytes, ...rest }) => ({
    ...rest,
    bytes: bytes instanceof Blob ? new Uint8Array(await bytes.arrayBuffer()) : bytes,
  }));
  return { kind: 'post', id, fields, attachments: await Promise.all(whole) };
}

function checked(body: Fields): RerunChanges {
  const { request, set, samples } = body;
  const isWhole = Number.isInteger(samples) && Number(samples) >= 1 && Number(samples) <= SAMPLES_MAX;
  if (samples !== undefined && !isWhole) throw new HttpError(422, `Expected \`samples\` to be 1 to ${SAMPLES_MAX}`);
  for (const [name, value] of Object.entries({ request, set })) {
    if (value !== undefined && !isFields(value)) throw new HttpError(422, `Expected \`${name}\` to be an object`);
  }
  return body;
}

/** Returns the last request that is attached to a run, or to another record of the same call, with the run that has it. */
async function exchangeOf({ store, scope }: Call, id: string): Promise<[RunDetails, Exchange]> {
  const given = await store.details(scope, id);
  if (given === undefined) throw new HttpError(404, `The run ${id} is not stored`);
  const outline = (await store.outline(scope, given.trace_id)).map((text): RunOutline => JSON.parse(text));
  const others = outline.filter(({ same_call_as: head }) => head === id);
  for (const run of [given, ...(await Promise.all(others.map((other) => store.details(scope, other.id))))]) {
    const name = run?.attachments?.findLast((attachment) => EXCHANGE_NAME.test(attachment.name))?.name;
    const attachment = run && name && (await store.attachment(scope, run.id, name));
    const exchange = attachment && fieldsOf(parsedJson(new TextDecoder().decode(attachment.bytes)));
    if (run && exchange && isFields(exchange.request)) return [run, exchange as unknown as Exchange];
  }
  throw new HttpError(409, `The request of the run ${id} is not recorded; record the program with runspan dev`);
}

/** Returns a copy with values at paths such as `generationConfig.temperature`. A number in a path is the index in a list. */
function changed(request: Fields, set: Fields): Fields {
  const copy = parsedJson(exactJson(request)) as Fields;
  for (const [path, value] of Object.entries(set)) {
    const keys = path.split('.');
    let target = copy;
    for (const [at, key] of keys.entries()) {
      // A far index would fill the list with millions of items.
      if (Array.isArray(target) && !(/^(?:0|[1-9]\d*)$/.test(key) && Number(key) <= target.length))
        throw new HttpError(422, `Expected ${key} in \`${path}\` to be an index of at most ${target.length}`);
      const inner = Object.hasOwn(target, key) ? target[key] : undefined;
      if (at === keys.length - 1) put(target, key, value);
      else if (typeof inner !== 'object' || inner === null) put(target, key, {});
      target = target[key] as Fields;
    }
  }
  return copy;
}
