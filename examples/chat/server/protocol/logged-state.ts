import type { NewEvent } from '../storage/session-store.ts';
import { type Fields, fieldsOf } from './fields.ts';
import { plainJson } from './plain-json.ts';

/**
 * The graph tells all messages of the thread with each step: by `values`, and by the `tasks` that are given them. The log has of each those that the `values` before
 * them have not, so that it grows with the conversation and not with its square:
 *
 *     values  { id: a, isWhole: true }                     m1 m2 m3
 *     tasks   { base: a, kept: 3 }
 *     values  { id: b, base: a, kept: 3 }                           m4
 *     values  { id: c, base: b, kept: 4, isWhole: true }   m1 m2 m3 m4 m5
 *
 * That stands as `state` at the beginning of the body. Now and then one has all of its messages, so that no reader has to go back far.
 */
export interface LoggedState {
  readonly id: string;
  /** As JSON, each. */
  readonly messages: readonly string[];
}

/** The newest state of a log, and what there is behind the last one that has all of its messages. */
export interface StateTail {
  /** Missing where it cannot be laid together. */
  readonly state?: LoggedState | undefined;
  readonly total: number;
  readonly events: number;
  readonly chars: number;
}

export interface StateMark {
  /** Of `values`. */
  readonly id?: string | undefined;
  /** The characters of the messages of all states so far. */
  readonly total: number;
  /** The state before it, and how many messages of that stay; missing in the first. */
  readonly base?: string | undefined;
  readonly kept?: number | undefined;
  /** It has those that stay as well. */
  readonly isWhole?: true | undefined;
}

/** A body with its `state`, taken apart. */
export interface MarkedBody {
  readonly state: StateMark;
  readonly method: string;
  readonly params: Fields;
}

const MARK = '{"state":';

/** Undefined where a body has no `state`, and says all of it by itself. */
export function markedOf({ body }: Pick<NewEvent, 'body'>): MarkedBody | undefined {
  return body.startsWith(MARK) ? (JSON.parse(body) as MarkedBody) : undefined;
}

/** Whether an event is a state that has all of its messages. */
export function isWholeState({ body }: Pick<NewEvent, 'body'>): boolean {
  if (!body.startsWith(MARK)) return false;
  return (JSON.parse(body.slice(MARK.length, body.indexOf('}') + 1)) as StateMark).isWhole === true;
}

/** The messages that the graph tells; undefined where it is about something else. */
export function messagesIn(method: string, data: unknown): readonly unknown[] | undefined {
  const { messages } = method === 'values' ? fieldsOf(data) : method === 'tasks' ? fieldsOf(fieldsOf(data).input) : {};
  return Array.isArray(messages) ? messages : undefined;
}

/** The same with other messages, which stand last. */
export function withMessages(method: string, data: unknown, messages: readonly unknown[]): Fields {
  const { messages: _, ...others } = method === 'values' ? fieldsOf(data) : fieldsOf(fieldsOf(data).input);
  if (method === 'values') return { ...others, messages };
  const { input, ...task } = fieldsOf(data);
  return { ...task, input: { ...others, messages } };
}

/** How many messages are the same, from the first on. */
export function sameAtStart(some: readonly string[], others: readonly string[]): number {
  const differing = others.findIndex((other, place) => other !== some[place]);
  return differing === -1 ? others.length : differing;
}

/** All messages of a state; undefined where they are not there, and it is not based on the one that is given. */
export function laidTogether({ state, method, params }: MarkedBody, base?: LoggedState): readonly string[] | undefined {
  const own = (messagesIn(method, params.data) ?? []).map((message) => JSON.stringify(message));
  if (state.isWhole === true) return own;
  return state.base === base?.id ? [...(base?.messages.slice(0, state.kept) ?? []), ...own] : undefined;
}

/** The data is a piece of its own, so that what cannot be said of it costs nothing else. */
export function bodyText(head: Pick<MarkedBody, 'method' | 'params'> & Partial<MarkedBody>, data: string): string {
  return `${JSON.stringify(head).slice(0, -2)},"data":${data}}}`;
}

/** The data with these messages, which are JSON each. What else it has may be nothing that JSON can say. */
export function dataText(method: string, data: unknown, messages: readonly string[]): string {
  const end = method === 'values' ? ']}' : ']}}';
  const told = plainJson(withMessages(method, data, []));
  const text = told.endsWith(`"messages":[${end}`) ? told : plainJson(withMessages(method, JSON.parse(told), []));
  return `${text.slice(0, -end.length)}${messages.join(',')}${end}`;
}

/** A body without its `state`, and with all messages. */
export function wholeBody({ method, params }: MarkedBody, messages: readonly string[]): string {
  const { data, ...others } = params;
  return bodyText({ method, params: others }, dataText(method, data, messages));
}

/** A body without its `state`, and with the messages alone that the one before it has not, of which it says how many stay. */
export function changedBody({ state, method, params }: MarkedBody): string {
  const { data, ...others } = params;
  const own = messagesIn(method, data) ?? [];
  const { kept = 0 } = state;
  const changed = plainJson(withMessages(method, data, state.isWhole === true ? own.slice(kept) : own));
  return bodyText({ method, params: { ...others, kept } }, changed);
}
