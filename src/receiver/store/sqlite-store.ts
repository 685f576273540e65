import { resolve } from 'node:path';
import { diagnostics } from '../../base/diagnostics.ts';
import { RunspanError } from '../../base/errors.ts';
import { type Checks, checkedOptions, isObject, WHOLE_FROM_1 } from '../../base/options.ts';
import { shown } from '../../base/text.ts';
import type { Attachment } from '../../run/record.ts';
import type { Feedback, FeedbackToken } from '../feedback/feedback.ts';
import { HttpError } from '../http-error.ts';
import { positionOf } from '../query/cursor.ts';
import type { ListQuery, Page, RunQuery, Statistics, StatisticsQuery } from '../query/query.ts';
import { ForgottenNotice } from './forgotten-notice.ts';
import { checkedPrices, type Prices } from './prices.ts';
import { filterOf } from './run-filter.ts';
import type {
  PayloadField,
  ProjectSummary,
  RunDetails,
  RunOutline,
  RunSummary,
  StoredRun,
  TraceSummary,
} from './run-view.ts';
import type { ReaderCalls, WriterCalls } from './sqlite-desk.ts';
import type { StoreOwner } from './sqlite-file.ts';
import { type Link, WorkerLink } from './sqlite-link.ts';
import type { SqlitePage, SqlitePageQuery } from './sqlite-reader.ts';
import type { RunOperation, Store, StoreChange } from './store.ts';
import { Subscribers } from './subscribers.ts';
import { toldRun, toldSizeBytes } from './told-run.ts';

/** How much a store on disk keeps. Beyond a limit the traces that were changed longest ago are forgotten, each whole. */
export interface SqliteStoreOptions {
  /** Milliseconds since a trace was last changed. @default 2592000000 (30 days) */
  maxAgeMs?: number;
  /** Bytes of the file, without what has been written last and stands beside it. @default 4294967296 (4 GiB) */
  maxBytes?: number;
  /**
   * What models cost, for runs that do not tell their cost themselves. A run keeps the cost that it had when it was last
   * written. @default none
   */
  prices?: Prices;
  /** Opens a file that is there, beside whoever writes to it, to read alone. @default false */
  readOnly?: boolean;
}

const DEFAULTS: Required<SqliteStoreOptions> = {
  maxAgeMs: 30 * 24 * 3_600_000,
  maxBytes: 4 * 1024 ** 3,
  prices: {},
  readOnly: false,
};
const CHECKS: Checks<SqliteStoreOptions> = {
  maxAgeMs: WHOLE_FROM_1,
  maxBytes: WHOLE_FROM_1,
  prices: ['an object', isObject],
  readOnly: ['true or false', (value) => typeof value === 'boolean'],
};

/** What may wait to be written; beyond it a request is told to come again. */
const WAITING_BYTES_MAX = 64 * 1024 * 1024;
/** Between two lines that tell of the same trouble. */
const TELL_EVERY_MS = 60_000;

/** The threads of a store. */
interface Links {
  /** Absent when the file is open to read alone. */
  readonly writer?: Link<WriterCalls>;
  readonly reader: Link<ReaderCalls>;
  /** Another reader, for questions that look at everything, so that short ones do not wait for them. */
  readonly openSlowReader: () => Promise<Link<ReaderCalls>>;
}

/**
 * Runs in a file, which are there again when it is opened again. What `apply` has resolved for survives the end of the process,
 * however it ends. After a loss of power the file is whole, and the last seconds may be missing. One process at a time
 * has a file open to write; others may read. Writing and reading go on in threads of their own.
 */
export class SqliteStore implements Store {
  readonly #path: string;
  readonly #links: Links;
  readonly #subscribers: Subscribers;
  #slowReader: Promise<Link<ReaderCalls>> | undefined;
  #closing: Promise<void> | undefined;
  #waitingBytes = 0;
  #toldAtMs = Number.NEGATIVE_INFINITY;

  /**
   * Opens the file, and makes it where there is none, folders and all. Rejects with a RunspanError: `RUNSPAN_SQLITE_MISSING`
   * where neither Node nor a package has SQLite, `RUNSPAN_STORE_IN_USE`, `RUNSPAN_STORE_INVALID` for a file that is not
   * ours or cannot be read, `RUNSPAN_STORE_FAILED` when the system refuses.
   */
  static async open(path: string, options: SqliteStoreOptions = {}): Promise<SqliteStore> {
    const { readOnly, ...kept } = { ...DEFAULTS, ...checkedOptions('the options', options, CHECKS) };
    checkedPrices(kept.prices);
    if (typeof path !== 'string')
      throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected the path of a store to be text, got ${shown(path)}`);
    const file = resolve(path);
    const subscribers = new Subscribers();
    const notice = new ForgottenNotice(() => performance.now(), 'maxAgeMs and maxBytes');
    const onChange = (change: StoreChange): void => {
      if (change.forgotten !== undefined) notice.add(change.forgotten);
      subscribers.tell(change);
    };
    const onEnd = (problem: string): void =>
      diagnostics.error(`a thread of the store ${file} has failed, restart the program: ${problem}`);
    const openReader = (): Promise<Link<ReaderCalls>> => WorkerLink.open({ path: file }, onChange, onEnd);

    if (readOnly) return new SqliteStore(file, { reader: await openReader(), openSlowReader: openReader }, subscribers);
    const owner = ownOwner();
    const writer = await WorkerLink.open<WriterCalls>({ path: file, write: { ...kept, owner } }, onChange, onEnd);
    const links = { writer, reader: await openReader(), openSlowReader: openReader };
    return new SqliteStore(file, links, subscribers);
  }

  /** @internal */
  constructor(path: string, links: Links, subscribers: Subscribers) {
    this.#path = path;
    this.#links = links;
    this.#subscribers = subscribers;
  }

  async apply(operations: readonly RunOperation[]): Promise<void> {
    const { writer } = this.#links;
    if (writer === undefined) throw readOnlyError(this.#path);
    if (this.#waitingBytes >= WAITING_BYTES_MAX) {
      throw new HttpError(429, 'More runs come than can be written; come again', { 'retry-after': '1' });
    }
    const told = operations.map(toldRun);
    const sizeBytes = told.reduce((sum, one) => sum + toldSizeBytes(one), 0);
    this.#waitingBytes += sizeBytes;
    try {
      await writer.call('apply', told);
    } catch (error) {
      throw this.#unavailable(error);
    } finally {
      this.#waitingBytes -= sizeBytes;
    }
  }

  async runs(query: RunQuery): Promise<StoredRun[]> {
    const reader = await this.#readerOf(query);
    return read(await reader.call('runs', filterOf(query), query.limit));
  }

  trace(traceId: string): Promise<StoredRun[]> {
    return this.runs({ traceId });
  }

  attachment(runId: string, name: string): Promise<Attachment | undefined> {
    return this.#links.reader.call('attachment', runId, name);
  }

  subscribe(listener: (change: StoreChange) => void): () => void {
    return this.#subscribers.add(listener);
  }

  projects(): Promise<ProjectSummary[]> {
    return this.#links.reader.call('projects');
  }

  async traces(query: ListQuery): Promise<Page<TraceSummary>> {
    const asked = pageQueryOf(query);
    return pageOf(await (await this.#readerOf(query)).call('traces', asked));
  }

  async list(query: ListQuery): Promise<Page<RunSummary>> {
    const asked = pageQueryOf(query);
    return pageOf(await (await this.#readerOf(query)).call('list', asked));
  }

  async outline(traceId: string): Promise<RunOutline[]> {
    return read(await this.#links.reader.call('outline', traceId));
  }

  details(runId: string): Promise<RunDetails | undefined> {
    return this.#links.reader.call('details', runId);
  }

  payload(runId: string, field: PayloadField): Promise<string | undefined> {
    return this.#links.reader.call('payload', runId, field);
  }

  async statistics(query: StatisticsQuery): Promise<Statistics> {
    return (await this.#openSlowReader()).call('statistics', filterOf(query), query);
  }

  changes(afterSeq: number, limit: number): Promise<StoreChange> {
    return this.#links.reader.call('changes', afterSeq, limit);
  }

  addFeedback(feedback: Feedback): Promise<boolean> {
    return this.#write((writer) => writer.call('addFeedback', feedback));
  }

  feedback(traceId: string): Promise<Feedback[]> {
    return this.#links.reader.call('feedback', traceId);
  }

  addTokens(tokens: readonly FeedbackToken[]): Promise<void> {
    return this.#write((writer) => writer.call('addTokens', tokens));
  }

  token(id: string): Promise<FeedbackToken | undefined> {
    return this.#links.reader.call('token', id);
  }

  tokens(runId: string): Promise<FeedbackToken[]> {
    return this.#links.reader.call('tokens', runId);
  }

  /** Says where the receiver of this store listens, for those who find the file in use, or read beside it. */
  setAddress(address: string): Promise<void> {
    return this.#write((writer) => writer.call('setOwner', { ...ownOwner(), address }));
  }

  /** Who has the file open to write, if anybody has: this process, or another when this one only reads. */
  owner(): Promise<StoreOwner | undefined> {
    return this.#links.reader.call('owner');
  }

  /**
   * Writes a copy of the store to a new file, even while this or another process writes to the store. If the file exists or
   * cannot be written, rejects with a RunspanError (`RUNSPAN_STORE_FAILED`) and leaves no partial copy.
   */
  async backup(path: string): Promise<void> {
    return (await this.#openSlowReader()).call('backup', resolve(path));
  }

  /** Ends when all that was to be written is. Again is the same ending. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // The writer last: whoever closes a file last brings over what stands beside it, which readers may not do.
    await Promise.all([this.#links.reader.close(), this.#slowReader?.then((reader) => reader.close())]);
    await this.#links.writer?.close();
  }

  async #write<Answer>(ask: (writer: Link<WriterCalls>) => Promise<Answer>): Promise<Answer> {
    if (this.#links.writer === undefined) throw readOnlyError(this.#path);
    try {
      return await ask(this.#links.writer);
    } catch (error) {
      throw this.#unavailable(error);
    }
  }

  async #readerOf(query: RunQuery & ListQuery): Promise<Link<ReaderCalls>> {
    const isQuick = Object.entries(query).every(([key, value]) => value === undefined || QUICK.includes(key));
    const isOrdered = query.sort === undefined || query.sort === 'start_time';
    return query.traceId !== undefined || (isQuick && isOrdered) ? this.#links.reader : this.#openSlowReader();
  }

  #openSlowReader(): Promise<Link<ReaderCalls>> {
    this.#slowReader ??= this.#links.openSlowReader();
    return this.#slowReader;
  }

  /** What a request is told when nothing can be written: to come again, since that may change. The log says why. */
  #unavailable(error: unknown): unknown {
    if (!(error instanceof RunspanError)) return error;
    const nowMs = performance.now();
    if (nowMs - this.#toldAtMs >= TELL_EVERY_MS) {
      this.#toldAtMs = nowMs;
      diagnostics.error(`runs cannot be kept: ${error.message}`);
    }
    return new HttpError(503, 'Runs cannot be kept at present; the log of the receiver says why', {
      'retry-after': '10',
    });
  }
}

function ownOwner(): StoreOwner {
  return { pid: process.pid, started_at: new Date().toISOString() };
}

function readOnlyError(path: string): RunspanError {
  return new RunspanError('RUNSPAN_STORE_FAILED', `The store ${path} is open to read alone`);
}

/** What an index has in order of time. Whoever asks for more may have to look at all runs. */
const QUICK: readonly string[] = [
  'project',
  'name',
  'model',
  'status',
  'startedFrom',
  'startedBefore',
  'sort',
  'order',
  'cursor',
  'limit',
];

const ITEMS = 50;

function pageQueryOf(query: ListQuery): SqlitePageQuery {
  const { sort = 'start_time', order = 'descending', cursor, limit = ITEMS } = query;
  const after = cursor === undefined ? undefined : positionOf(cursor);
  return { filter: filterOf(query), sort, order, after, limit };
}

async function pageOf<Item>({ pieces, next }: SqlitePage): Promise<Page<Item>> {
  const items = await read<Item>(pieces);
  return next === undefined ? { items } : { items, next };
}

/** Reads arrays of JSON as one, with a turn for others after each. */
async function read<Item>(pieces: readonly string[]): Promise<Item[]> {
  const items: Item[] = [];
  for (const [at, piece] of pieces.entries()) {
    if (at > 0) await new Promise((next) => void setImmediate(next));
    for (const item of JSON.parse(piece) as Item[]) items.push(item);
  }
  return items;
}
