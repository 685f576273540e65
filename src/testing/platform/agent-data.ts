import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { clock } from '../../base/clock.ts';
import { forgetOldest } from '../../base/forget-oldest.ts';
import type { Interrupt, ThreadState } from '../../clients/agent-server/thread.ts';
import { isObject } from '../../config/checker.ts';
import { exactJson, type Fields, fieldsOf, listOf } from '../../payload/fields.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import type { RouteResponse } from '../../receiver/http/route.ts';
import { newRunId } from '../../run/ids.ts';
import { isoTimestamp } from '../../run/time.ts';

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

  get(id: unknown): Kept {
    const entry = this.#entries.get(String(id));
    if (entry === undefined) throw new HttpError(404, `The ${this.#kind} ${id} does not exist`);
    return entry;
  }

  /** Changes the given fields, and merges the metadata. */
  update(id: unknown, changes: Fields): Kept {
    const entry = this.get(id);
    const metadata = { ...fieldsOf(entry.record.metadata), ...fieldsOf(changes.metadata) };
    Object.assign(entry.record, changes, { metadata, updated_at: nowIso() });
    return entry;
  }

  delete(id: unknown): void {
    this.get(id);
    this.#entries.delete(String(id));
  }

  /** Returns the entries that contain these fields, newest first. `name` is a part of the name. */
  find(filter: unknown): Kept[] {
    const { limit: _, offset, name = '', ...fields } = fieldsOf(filter);
    const part = String(name).toLowerCase();
    return [...this.#entries.values()].reverse().filter(({ record }) => {
      return String(record.name).toLowerCase().includes(part) && contains(record, fields);
    });
  }
}

export function recordsOf(entries: readonly Entry[]): Fields[] {
  return entries.map(({ record }) => record);
}

export function newRecord(fields: Fields): Fields {
  const now = nowIso();
  return { metadata: {}, ...fields, created_at: now, updated_at: now };
}

/** Returns whether a value contains the fields of another. Fields that are null or undefined do not count. */
export function contains(whole: unknown, part: unknown): boolean {
  if (!isObject(part)) return part === undefined || part === null || isDeepStrictEqual(whole, part);
  return Object.entries(part).every(([name, value]) => contains(fieldsOf(whole)[name], value));
}

/** Returns the page that a request asks for, with headers that name the next one. */
export function pageOf(items: readonly unknown[], request: unknown): RouteResponse & { body: unknown[] } {
  const { limit = 10, offset = 0 } = request as { limit?: number; offset?: number };
  const end = offset + limit;
  const next = end < items.length && { 'x-pagination-next': `${end}` };
  const headers = { 'x-pagination-total': `${items.length}`, ...next };
  return { status: 200, headers, body: items.slice(offset, end) };
}

/** The events of a run, or of all runs on a thread. */
export class EventLog {
  readonly #events: { readonly name: string; readonly data: string }[] = [];
  readonly #changes = new EventEmitter().setMaxListeners(0);
  isOver = false;

  add(name: string, data: unknown): void {
    this.#events.push({ name, data: exactJson(data) });
    this.#changes.emit('change');
  }

  end(): void {
    this.isOver = true;
    this.#changes.emit('change');
  }

  /** Returns the position after an event. Without the id of an event, only new events follow. */
  positionAfter(lastId: string | string[] | undefined): number {
    return /^(-1|\d{1,15})$/.test(String(lastId)) ? Number(lastId) + 1 : this.#events.length;
  }

  /** Yields events as server-sent events until the log is over. The id of an event is its position. */
  async *read(from: number, ended: AbortSignal, isWanted = (_: string): boolean => true): AsyncGenerator<string, void> {
    // An empty chunk sends the headers.
    yield '';
    for (let at = from; ; at++) {
      while (this.#events[at] === undefined) {
        if (this.isOver) return;
        await once(this.#changes, 'change', { signal: ended });
      }
      const { name, data } = this.#events[at] as { name: string; data: string };
      if (isWanted(name)) yield `event: ${name}\ndata: ${data}\nid: ${at}\n\n`;
    }
  }
}

export function eventStream(content: RouteResponse['content'], headers: RouteResponse['headers'] = {}): RouteResponse {
  return { status: 200, headers: { 'content-type': 'text/event-stream', ...headers }, ...(content && { content }) };
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
  states: ThreadState[] = [];
  readonly events: EventLog = new EventLog();
  /** The ids of the runs that have not ended, each with a promise that resolves at its end. */
  readonly active: Map<string, Promise<unknown>> = new Map();
  /** The turn that waits for an answer. */
  paused: Turn | undefined;

  constructor(record: Fields) {
    this.record = record;
    this.setStates([]);
  }

  get values(): Fields {
    return fieldsOf(this.record.values);
  }

  /** Adds a state with a copy of the values, in which a node may wait for the answer to a question. */
  add(values: Fields, source: string, waiting?: { readonly name: string; readonly question: Interrupt }): ThreadState {
    const id = newRunId(clock.nowUs());
    const state: ThreadState = {
      values: JSON.parse(exactJson(values)),
      next: waiting === undefined ? [] : [waiting.name],
      tasks: waiting === undefined ? [] : [{ id, name: waiting.name, interrupts: [waiting.question] }],
      checkpoint: { thread_id: String(this.record.thread_id), checkpoint_id: id, checkpoint_ns: '' },
      metadata: { source, step: this.states.length - 1 },
      created_at: nowIso(),
      parent_checkpoint: this.states.at(-1)?.checkpoint ?? null,
    };
    this.setStates([...this.states, state]);
    return state;
  }

  setStates(states: readonly ThreadState[]): void {
    this.states = [...states];
    const { values = {}, tasks = [] } = states.at(-1) ?? {};
    const interrupts = Object.fromEntries(tasks.map(({ id, interrupts: asked }) => [id, asked]));
    Object.assign(this.record, { values, interrupts, updated_at: nowIso() });
  }
}

/** Returns an update whose messages are a list, in which each has an id. */
export function withMessageIds(update: unknown): Fields {
  const { messages, ...others } = fieldsOf(update);
  if (messages === undefined) return others;
  return { ...others, messages: [messages].flat().map((message) => ({ id: randomUUID(), ...fieldsOf(message) })) };
}

/** Returns values with an update, whose messages are appended. */
export function withUpdate(values: Fields, update: Fields): Fields {
  const messages = [...listOf(values.messages), ...listOf(update.messages)];
  return { ...values, ...update, ...(update.messages !== undefined && { messages }) };
}

export function nowIso(): string {
  return isoTimestamp(clock.nowUs());
}
