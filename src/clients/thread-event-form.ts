import { isObject } from '../base/options.ts';
import type { ServerSentEvent } from '../http/event-stream.ts';
import type { ThreadEvent } from './thread-event.ts';

/** What data has to be where more than JSON is asked for. */
const FORMS: Readonly<Record<Exclude<ThreadEvent['method'], 'other' | 'malformed'>, (data: unknown) => boolean>> = {
  lifecycle: (data) => hasTexts(data, 'event'),
  messages: (data) => hasTexts(data, 'event') && MESSAGE_FORMS[data.event]?.(data) === true,
  tools: (data) => hasTexts(data, 'event', 'tool_call_id') && TOOL_FORMS[data.event]?.(data) === true,
  values: () => true,
  updates: isObject,
  checkpoints: (data) => hasTexts(data, 'id'),
  tasks: () => true,
  custom: isObject,
  'input.requested': (data) => hasTexts(data, 'interrupt_id'),
};

type Forms = Readonly<Record<string, ((data: Record<string, unknown>) => boolean) | undefined>>;

const MESSAGE_FORMS: Forms = {
  __proto__: null as never,
  'message-start': (data) => hasTexts(data, 'id'),
  'content-block-start': ({ index, content }) => isIndex(index) && hasTexts(content, 'type'),
  'content-block-delta': ({ index, delta }) => isIndex(index) && isDelta(delta),
  'content-block-finish': ({ index, content }) => isIndex(index) && hasTexts(content, 'type'),
  'message-finish': ({ usage }) => usage === undefined || usage === null || isObject(usage),
  error: (data) => hasTexts(data, 'message'),
};

const TOOL_FORMS: Forms = {
  __proto__: null as never,
  'tool-started': (data) => hasTexts(data, 'tool_name'),
  'tool-output-delta': (data) => hasTexts(data, 'delta'),
  'tool-finished': () => true,
  'tool-error': (data) => hasTexts(data, 'message'),
};

/**
 * What an event as it came stands for. One that is known by its method but not in its form, and one within `messages` or `tools`
 * that is not known, is an `other`: what has a type holds what the type says.
 */
export function threadEventOf<Values>({ name, data: text, id, hasOwnId }: ServerSentEvent): ThreadEvent<Values> {
  const sent = parsed(text);
  if (!isObject(sent) || typeof sent.method !== 'string' || !isObject(sent.params))
    return { method: 'malformed', name, ...(hasOwnId && idOf(id)), params: { namespace: [], data: text } };
  const { params, method, event_id, seq, ...rest } = sent;
  const form = Object.hasOwn(FORMS, method) ? FORMS[method as keyof typeof FORMS] : undefined;
  const { namespace, timestamp, node, run_id, ...others } = params;
  return {
    ...rest,
    method: form?.(params.data) === true ? method : 'other',
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

function isIndex(value: unknown): boolean {
  return typeof value === 'number';
}

function isDelta(delta: unknown): boolean {
  if (!isObject(delta)) return false;
  if (delta.type === 'block-delta') return isObject(delta.fields);
  if (delta.type === 'text-delta') return typeof delta.text === 'string';
  if (delta.type === 'reasoning-delta') return typeof delta.reasoning === 'string';
  return delta.type === 'data-delta' && typeof delta.data === 'string';
}

function hasTexts<Name extends string>(value: unknown, ...names: readonly Name[]): value is Record<Name, string> {
  return isObject(value) && names.every((name) => typeof value[name] === 'string');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
