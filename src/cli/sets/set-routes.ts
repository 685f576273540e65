import * as v from 'valibot';
import { messageOf } from '../../base/text.ts';
import { condition } from '../../receiver/filter/parser.ts';
import { HttpError, toHttpError } from '../../receiver/http/http-error.ts';
import { type Call, get, type Route, type RouteResponse, readJson } from '../../receiver/http/route.ts';
import { uuidSchema } from '../../receiver/http/run-fields.ts';
import { requiredObject, validated } from '../../receiver/http/validation.ts';
import { storeSource } from '../stores.ts';
import { examplesOf, type Listed } from './example.ts';
import { appendExamples, setsIn } from './set-file.ts';

const IDS_MAX = 1_000;
const ids = v.optional(v.array(uuidSchema(true), 'an array of UUIDs'), []);
const schema = v.object({ trace_ids: ids, run_ids: ids });

/** The routes with which the page lists the sets of the working folder, and adds examples to them. */
export function setRoutes(folder: string): Route[] {
  return [
    get('/query/sets', () => ({ status: 200, body: { items: setsIn(folder) } })),
    { method: 'POST', path: '/query/sets/:name', admission: 'admin', handle: (call) => add(call, folder) },
  ];
}

async function add(call: Call, folder: string): Promise<RouteResponse> {
  const { trace_ids, run_ids } = validated(schema, requiredObject(await readJson(call)), ['body']);
  const count = trace_ids.length + run_ids.length;
  if (count === 0 || count > IDS_MAX) throw new HttpError(422, `Expected 1 to ${IDS_MAX} ids, got ${count}`);
  const source = storeSource(call.store, call.scope);
  const listed: Listed[] = run_ids.map((id) => ({ id }));
  for (const id of trace_ids) {
    const { items } = await source.traces({ filter: condition('trace', id) });
    if (items.length === 0) throw new HttpError(422, `The trace ${id} is not stored`);
    listed.push(...items);
  }
  try {
    return { status: 200, body: appendExamples(folder, call.parameters.name ?? '', await examplesOf(source, listed)) };
  } catch (thrown) {
    throw toHttpError(thrown) ?? new HttpError(422, messageOf(thrown));
  }
}
