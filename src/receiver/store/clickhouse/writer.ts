import { delay } from '../../../platform/timers.ts';
import { ageOf } from '../../domain/identity.ts';
import { mapInTurns } from '../../domain/in-turns.ts';
import type { RunOperation } from '../../domain/run-message.ts';
import { SharedLimit } from '../../domain/shared-limit.ts';
import { StoreError } from '../store.ts';
import type { StoreClock } from './clock.ts';
import type { ClickHouse } from './connection.ts';
import type { GroupKey } from './groups.ts';
import { waitingRows } from './joins.ts';
import { addTo, insertRowOf, type Message, messageTexts, type Place } from './messages.ts';
import type { PlaceFinder } from './places.ts';
import { attachmentRows, checkAttachments } from './reads/attachments.ts';

const BATCH_MESSAGES = 10_000;
/** Maximum total size of pending messages, in bytes. At the limit, requests are rejected. */
const WAITING_BYTES_MAX = 64 * 1024 * 1024;
/** Estimated size of a message without its payloads and attachments, in bytes. */
const MESSAGE_BYTES = 1_000;
const RETRY_AFTER_S = 2;

interface Call {
  readonly tenant: string;
  readonly operations: readonly RunOperation[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Collects the messages of several requests and inserts them as one batch. */
export class MessageWriter {
  readonly #db: ClickHouse;
  readonly #clock: StoreClock;
  readonly #places: PlaceFinder;
  readonly #intervalMs: number;
  readonly #onStored: (groups: readonly GroupKey[]) => void;
  readonly #pending = new Set<Promise<void>>();
  #calls: Call[] = [];
  readonly #waitingBytes = new SharedLimit(WAITING_BYTES_MAX);
  #isWriting = false;
  #insertedMs = Number.NEGATIVE_INFINITY;

  constructor(
    db: ClickHouse,
    clock: StoreClock,
    places: PlaceFinder,
    intervalMs: number,
    onStored: (groups: readonly GroupKey[]) => void,
  ) {
    this.#db = db;
    this.#clock = clock;
    this.#places = places;
    this.#intervalMs = intervalMs;
    this.#onStored = onStored;
  }

  get waitingBytes(): number {
    return this.#waitingBytes.total;
  }

  /** Resolves when ClickHouse has acknowledged the messages. */
  async write(tenant: string, operations: readonly RunOperation[]): Promise<void> {
    const stored = this.#store(tenant, operations);
    this.#pending.add(stored);
    try {
      await stored;
    } finally {
      this.#pending.delete(stored);
    }
  }

  /** Resolves when all messages are stored or rejected. */
  async idle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
  }

  async #store(tenant: string, given: readonly RunOperation[]): Promise<void> {
    if (!this.#waitingBytes.admits(tenant, 1)) {
      throw new StoreError('busy', 'Too many runs are waiting to be written to ClickHouse', RETRY_AFTER_S);
    }
    const operations = await mapInTurns(given, (operation) => ({ ...operation, texts: messageTexts(operation) }));
    const sizeBytes = operations.reduce((sum, operation) => sum + sizeOf(operation), 0);
    this.#waitingBytes.add(tenant, sizeBytes);
    try {
      await checkAttachments(this.#db, tenant, operations);
      await new Promise<void>((resolve, reject) => {
        this.#calls.push({ tenant, operations, resolve, reject });
        if (!this.#isWriting) void this.#writeAll();
      });
    } finally {
      this.#waitingBytes.add(tenant, -sizeBytes);
    }
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    while (this.#calls.length > 0) {
      await delay(Math.max(0, this.#insertedMs + this.#intervalMs - performance.now()), undefined, true);
      this.#insertedMs = performance.now();
      const calls = this.#nextCalls();
      try {
        await this.#insert(calls);
        for (const { resolve } of calls) resolve();
      } catch (error) {
        for (const { reject } of calls) reject(error);
      }
    }
    this.#isWriting = false;
  }

  #nextCalls(): Call[] {
    let messages = 0;
    let count = 0;
    for (const { operations } of this.#calls) {
      messages += operations.length;
      if (count > 0 && messages > BATCH_MESSAGES) break;
      count += 1;
    }
    return this.#calls.splice(0, count);
  }

  async #insert(calls: readonly Call[]): Promise<void> {
    const messages = mergedMessages(calls);
    const sent = calls.flatMap(({ tenant, operations }) => operations.map((operation) => ({ tenant, ...operation })));
    const places = await this.#places.find(messages, sent);
    const groups = new Map<string, GroupKey>();
    const byRun = new Map<string, Place>();
    for (const [{ tenant, id }, place] of places) {
      byRun.set(tenant + id, place);
      groups.set(tenant + place.group_id, { tenant, group_id: place.group_id });
    }
    await this.#insertAttachments(calls, byRun);
    await this.#db.insert('run_ids', waitingRows(places, this.#clock.nowUs()));
    const rows = await mapInTurns(places, ([message, place]) => insertRowOf(message, place, this.#clock.nowUs()));
    await this.#db.insert('messages', rows);
    this.#places.remember(places);
    this.#onStored([...groups.values()]);
  }

  async #insertAttachments(calls: readonly Call[], places: ReadonlyMap<string, Place>): Promise<void> {
    const rows = calls.flatMap(({ tenant, operations }) =>
      attachmentRows(tenant, operations, places, this.#clock.nowUs()),
    );
    await this.#db.insert('attachments', rows);
  }
}

/** Merges the messages of each run that have the same age. */
function mergedMessages(calls: readonly Call[]): Message[] {
  const messages = new Map<string, Message>();
  for (const { tenant, operations } of calls) {
    for (const { kind, id, fields, texts = {} } of operations) {
      const age = ageOf(kind, fields);
      const key = `${age} ${id} ${tenant}`;
      const message = messages.get(key);
      if (message === undefined) messages.set(key, { tenant, id, age, fields, texts: { ...texts } });
      else addTo(message, { fields, texts });
    }
  }
  return [...messages.values()];
}

function sizeOf({ texts = {}, attachments }: RunOperation): number {
  const attachedBytes = attachments.reduce((sum, { bytes }) => sum + bytes.length, 0);
  return Object.values(texts).reduce((sum, text) => sum + text.length, MESSAGE_BYTES + attachedBytes);
}
