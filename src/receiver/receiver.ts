import { type Checks, checkedOptions } from '../base/checked-options.ts';
import { isLoopback } from '../base/loopback.ts';
import { Faults, type ReceiverFaults } from './faults.ts';
import { MemoryStore } from './memory-store.ts';
import { createRoutes } from './routes.ts';
import { checkedQuery, checkedTraceId } from './run-query.ts';
import { listen } from './server.ts';
import type { RunQuery, Store, StoredRun } from './store.ts';

/** Where a receiver listens and what it does with what it gets. */
export interface ReceiverOptions {
  /**
   * 127.0.0.1 or another address of 127/8, ::1, or localhost. Others are refused: a receiver holds prompts and answers,
   * and asks nobody who they are. @default '127.0.0.1'
   */
  host?: string;
  /** 0 takes any free port. @default 0 */
  port?: number;
  /** Where runs are kept. Whoever makes a store also ends it. @default a new MemoryStore */
  store?: Store;
  /**
   * Takes the documented interface alone, and answers what departs from it with 400 or 422 and a `detail` that says
   * where. Otherwise the receiver also takes what clients in the field send beside it. @default false
   */
  strict?: boolean;
}

/** A server that takes runs over HTTP, and what has come of them. */
export interface Receiver {
  /** For example `http://127.0.0.1:4777`: what `RUNSPAN_ENDPOINT` is set to. */
  readonly url: string;
  /** The runs that match, sorted by `dotted_order`. They are copies, yours to change. Without a query all of them. */
  runs(query?: RunQuery): Promise<StoredRun[]>;
  /** The runs of one trace, parents before children; none when it is unknown. The id with or without hyphens. */
  trace(traceId: string): Promise<StoredRun[]>;
  /**
   * Makes requests that bring runs fail, wait or be refused from now on, in the place of the faults set before; `{}` ends them.
   * Throws a RunspanError, `RUNSPAN_INVALID_OPTION`, for what cannot be used.
   */
  setFaults(faults: ReceiverFaults): void;
  /** Ends after the requests at hand have been answered, 2 seconds at most. Again is the same ending. */
  close(): Promise<void>;
}

/**
 * Starts a receiver. Rejects with a RunspanError: `RUNSPAN_INVALID_OPTION` for options that cannot be used,
 * `RUNSPAN_ADDRESS_IN_USE` when another program holds the port, `RUNSPAN_LISTEN_FAILED` when the system refuses
 * otherwise.
 */
export async function createReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const given = checkedOptions('the options', options, CHECKS);
  const { host = '127.0.0.1', port = 0, store = new MemoryStore(), strict = false } = given;
  const faults = new Faults();
  // Node takes IPv6 without the brackets of URLs.
  const server = await listen(createRoutes(store, strict, faults), host === '[::1]' ? '::1' : host, port);
  return {
    url: server.url,
    runs: async (query = {}) => store.runs(checkedQuery(query)),
    trace: async (traceId) => store.trace(checkedTraceId(traceId)),
    setFaults: (given) => faults.set(given),
    close: () => server.close(),
  };
}

const STORE_METHODS = ['apply', 'runs', 'trace', 'attachment', 'subscribe'] as const;

const CHECKS: Checks<ReceiverOptions> = {
  host: [
    'a loopback address (127.0.0.1, ::1 or localhost), since the receiver has no login',
    (value) => typeof value === 'string' && isLoopback(value),
  ],
  port: [
    'a whole number from 0 to 65535',
    (value) => typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535,
  ],
  store: [
    `a store with the methods ${STORE_METHODS.join(', ')}`,
    (value) => STORE_METHODS.every((method) => typeof (value as Store | null)?.[method] === 'function'),
  ],
  strict: ['true or false', (value) => typeof value === 'boolean'],
};
