import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { clock } from '../../base/clock.ts';
import { forgetOldest } from '../../base/forget-oldest.ts';
import { shown } from '../../base/text.ts';
import type { Interrupt, ThreadState } from '../../clients/agent-server/thread.ts';
import { isObject } from '../../config/checker.ts';
import { exactJson, type Fields, fieldsOf, isFields, listOf } from '../../payload/fields.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import type { RouteResponse } from '../../receiver/http/route.ts';
import { newRunId, runIdFrom } from '../../run/ids.ts';
import { now } from './deployments.ts';

const RECORDS_MAX = 10_000;

/** Something that the interface shows as a record. */
export interface Entry {
  readonly record: Fields;
}

/** Records of one kind. At most the last 10,000 are kept. */
export class Records<Kept extends Entry = Entry> {
  readonly #entries = new Map<string, Kept>();
  readonly #kind: string;

  constructor(kind: 'assistant' | 'thread' | 'run' | 'cron') {
    this.#kind = kind;
  }

  /** Returns the known entry if the id is known and `ifExists` is `do_nothing`. */
  add(entry: Kept, ifExists?: unknown): Kept {
    const id = String(entry.record[`${this.#kind}_id`]);
    const known = this.#entries.get(id);
    if (known !== undefined && ifExists !== 'do_nothing')
      throw new HttpError(409, `The ${this.#kind} ${id} already exists`);
    this.#entries.set(id, known ?? entry);
    forgetOldest(this.#entries, RECORDS_MAX);
    return known ?? entry;
  }

  /** The id of a graph's assistant is derived from the graph's name, by which it is also found. */
  get(id: unknown): Kept {
    const entry = this.#entries.get(String(id)) ?? this.#entries.get(runIdFrom(String(id)));
    if (entry === undefined) throw new HttpError(404, `The ${this.#kind} ${id} does not exist`);
    return entry;
  }

  /** Changes the given fields, and merges the metadata. */
  update(id: unknown, changes: Fields): Kept {
    const entry = this.get(id);
    const metadata = { ...fieldsOf(entry.record.metadata), ...fieldsOf(changes.metadata) };
    Object.assign(entry.record, changes, { metadata, updated_at: now() });
    return entry;
  }

  delete(id: unknown): Kept {
    const entry = this.get(id);
    this.#entries.delete(String(entry.record[`${this.#kind}_id`]));
    return entry;
  }

  /** Returns the entries that match, newest first. Fields that a record does not have, such as `limit`, do not count. */
  find(filter: unknown): Kept[] {
    const { ids, name = '', ...fields } = fieldsOf(filter);
    const isWanted = ([id, { record }]: readonly [string, Kept]): boolean =>
      (!Array.isArray(ids) || ids.includes(id)) &&
      String(record.name).toLowerCase().includes(String(name).toLowerCase()) &&
      Object.entries(fields).every(([field, value]) => !Object.hasOwn(record, field) || contains(record[field], value));
    const found = [...this.#entries].filter(isWanted).reverse();
    return found.map(([, entry]) => entry);
  }
}

export function newEntry(fields: Fields): Fields {
  return { metadata: {}, ...fields, created_at: now(), updated_at: now() };
}

/** Returns whether a value contains the fields of another. Fields that are null or undefined do not count. */
export function contains(whole: unknown, part: unknown): boolean {
  if (!isObject(part)) return part === undefined || part === null || isDeepStrictEqual(whole, part);
  return Object.entries(part).every(([name, value]) => contains(fieldsOf(whole)[name], value));
}

/** Returns the page of records that a request asks for, with headers that name the next one. */
export function entryPage(entries: readonly Entry[], request: unknown): RouteResponse & { body: Fields[] } {
  const { limit = 10, offset = 0 } = request as { limit?: number; offset?: number };
  const [end, total] = [offset + limit, entries.length];
  const headers = { 'x-pagination-total': `${total}`, ...(end < total && { 'x-pagination-next': `${end}` }) };
  return { status: 200, headers, body: fieldsOfEntries(entries.slice(offset, end)) };
}

export function fieldsOfEntries(entries: readonly Entry[]): Fields[] {
  return entries.map(({ record }) => record);
}

/** The input of a run, and the answers to its calls of `interrupt`. */
export interface Turn {
  readonly input: unknown;
  /** Values of the thread before the run. */
  readonly before: Fields;
  readonly answers: readonly unknown[];
}

export class AgentThread implements Entry {
  readonly record: Fields;
  /** Oldest first. */
  readonly states: ThreadState[] = [];
  /** The runs that have not ended. */
  readonly active: Set<{ readonly result: Promise<unknown>; readonly cancel: () => Promise<void> }> = new Set();
  /** The turn that waits for an answer. */
  paused: Turn | undefined;

  constructor(fields: Fields) {
    const defaults = { thread_id: randomUUID(), status: 'idle', config: {}, values: {}, interrupts: {} };
    this.record = newEntry({ ...defaults, ...fields });
  }

  get values(): Fields {
    return fieldsOf(this.record.values);
  }

  /** Adds a state with a copy of the values, in which a node may wait for the answer to a question. */
  add(values: Fields, source: string, waiting?: { readonly name: string; readonly question: Interrupt }): void {
    const id = newRunId(clock.nowUs());
    const tasks = waiting === undefined ? [] : [{ id, name: waiting.name, interrupts: [waiting.question] }];
    const state: ThreadState = {
      values: JSON.parse(exactJson(values)),
      next: tasks.map(({ name }) => name),
      tasks,
      checkpoint: { thread_id: String(this.record.thread_id), checkpoint_id: id, checkpoint_ns: '' },
      metadata: { source, step: this.states.length - 1 },
      created_at: now(),
      parent_checkpoint: this.states.at(-1)?.checkpoint ?? null,
    };
    this.states.push(state);
    const interrupts = waiting === undefined ? {} : { [id]: [waiting.question] };
    Object.assign(this.record, { values: state.values, interrupts, updated_at: now() });
  }

  /** Adds a state with an update, whose messages are appended. Returns the update, in which each message has an id. */
  change(given: unknown, source: string): Fields {
    const { messages, ...others } = fieldsOf(given);
    const values = { ...this.values, ...others };
    const added = [messages ?? []].flat().map((message) => {
      if (isFields(message)) return { id: randomUUID(), ...message };
      throw new TypeError(`Expected messages to be objects, got ${shown(message)}`);
    });
    if (messages !== undefined) values.messages = [...listOf(values.messages), ...added];
    this.add(values, source);
    return messages === undefined ? others : { ...others, messages: added };
  }
}
