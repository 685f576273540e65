import * as v from 'valibot';
import { isObject } from '../../../config/checker.ts';
import { parseJson } from '../../errors.ts';
import type { ServerSentEvent } from '../../event-stream.ts';
import type { ThreadEvent } from './thread-event.ts';

const TEXT = v.string();
const INDEX = v.number();
const CONTENT = v.looseObject({ type: TEXT });
const kind = v.literal;

/**
 * Schemas for event data, keyed by method. If the data of an event does not match, the event gets the method `other`.
 */
const DATA: Readonly<Record<Exclude<ThreadEvent['method'], 'other' | 'malformed'>, v.GenericSchema>> = {
  lifecycle: v.looseObject({ event: TEXT }),
  messages: v.variant('event', [
    v.looseObject({ event: kind('message-start'), id: TEXT }),
    v.looseObject({ event: kind('content-block-start'), index: INDEX, content: CONTENT }),
    v.looseObject({
      event: kind('content-block-delta'),
      index: INDEX,
      delta: v.variant('type', [
        v.looseObject({ type: kind('block-delta'), fields: v.looseObject({}) }),
        v.looseObject({ type: kind('text-delta'), text: TEXT }),
        v.looseObject({ type: kind('reasoning-delta'), reasoning: TEXT }),
        v.looseObject({ type: kind('data-delta'), data: TEXT }),
      ]),
    }),
    v.looseObject({ event: kind('content-block-finish'), index: INDEX, content: CONTENT }),
    v.looseObject({ event: kind('message-finish'), usage: v.nullish(v.looseObject({})) }),
    v.looseObject({ event: kind('error'), message: TEXT }),
  ]),
  tools: v.variant('event', [
    v.looseObject({ event: kind('tool-started'), tool_call_id: TEXT, tool_name: TEXT }),
    v.looseObject({ event: kind('tool-output-delta'), tool_call_id: TEXT, delta: TEXT }),
    v.looseObject({ event: kind('tool-finished'), tool_call_id: TEXT }),
    v.looseObject({ event: kind('tool-error'), tool_call_id: TEXT, message: TEXT }),
  ]),
  values: v.unknown(),
  updates: v.looseObject({}),
  checkpoints: v.looseObject({ id: TEXT }),
  tasks: v.unknown(),
  custom: v.looseObject({}),
  'input.requested': v.looseObject({ interrupt_id: TEXT }),
};

export function threadEventOf<Values>({ name, data: text, id, hasOwnId }: ServerSentEvent): ThreadEvent<Values> {
  const sent = parseJson(text);
  if (!isObject(sent) || typeof sent.method !== 'string' || !isObject(sent.params))
    return { method: 'malformed', name, ...(hasOwnId && idOf(id)), params: { namespace: [], data: text } };
  const { params, method, event_id, seq, ...rest } = sent;
  const schema = Object.hasOwn(DATA, method) ? DATA[method as keyof typeof DATA] : undefined;
  const { namespace, timestamp, node, run_id, ...others } = params;
  return {
    ...rest,
    method: schema !== undefined && v.is(schema, params.data) ? method : 'other',
    name: method,
    ...idOf(event_id),
    ...(Number.isSafeInteger(seq) && (seq as number) >= 0 && { seq }),
    params: {
      ...others,
      ...(typeof timestamp === 'number' && { timestamp }),
      ...(typeof node === 'string' && { node }),
      ...(typeof run_id === 'string' && { run_id }),
      namespace: Array.isArray(namespace) ? namespace.map(String) : [],
    },
  } as unknown as ThreadEvent<Values>;
}

function idOf(id: unknown): { readonly event_id?: string } {
  if (typeof id === 'number') return { event_id: String(id) };
  return typeof id === 'string' && id !== '' ? { event_id: id } : {};
}
