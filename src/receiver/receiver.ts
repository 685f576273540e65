import { RunspanError } from '../base/errors.ts';
import { type Checks, checkedOptions, isLoopback, wholeFrom } from '../base/options.ts';
import { shown } from '../base/text.ts';
import { Access } from './access.ts';
import { Faults, type ReceiverFaults } from './faults.ts';
import type { RunQuery } from './query/query.ts';
import { checkedQuery, checkedTraceId } from './query/run-query.ts';
import { createRoutes } from './routes.ts';
import { listen } from './server.ts';
import { MemoryStore } from './store/memory-store.ts';
import type { StoredRun } from './store/run-view.ts';
import type { Store } from './store/store.ts';

/** Where a receiver listens and what it does with what it gets. */
export interface ReceiverOptions {
  /**
   * 127.0.0.1 or another address of 127/8, ::1, or localhost. Others, 0.0.0.0 among them, are taken only together with an
   * `apiKey`: a receiver holds prompts and answers. @default '127.0.0.1'
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
  /**
   * The key required to send and read data: 1 to 512 visible ASCII characters, or at least 16 if the receiver is reachable from
   * other machines. Clients send it as `x-api-key` or `Authorization: Bearer`, or exchange it for a cookie at `POST /login`.
   * Requests without it get 401. Feedback by token, `GET /info` and the files of the page require no key.
   * @default no key is required, and a key that a client sends is ignored
   */
  apiKey?: string;
  /**
   * A second key. It can only send runs, spans and feedback, and create feedback tokens. Every other request with it
   * gets 403. Requires an `apiKey` and has the same format. @default no write key
   */
  writeKey?: string;
  /** Requests for another workspace in `x-tenant-id` get 403. @default every workspace is accepted */
  workspaceId?: string;
  /**
   * Names without port, under which the receiver is reached beside its own address: those of a reverse proxy or a container.
   * A request that comes under any other name is refused with 403. @default none
   */
  allowedHosts?: readonly string[];
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
  checkKeys(given, host);
  const faults = new Faults();
  const access = new Access({ ...given, host });
  // Node takes IPv6 without the brackets of URLs.
  const address = host.replace(/^\[(.*)\]$/, '$1');
  const server = await listen(createRoutes(store, strict, faults, access), address, port);
  return {
    url: server.url,
    runs: async (query = {}) => store.runs(checkedQuery(query)),
    trace: async (traceId) => store.trace(checkedTraceId(traceId)),
    setFaults: (given) => faults.set(given),
    close: () => server.close(),
  };
}

const KEY_LENGTH_MIN = 16;

/** Validates the keys separately from the other options, because no error message may contain a key. */
function checkKeys({ apiKey, writeKey }: ReceiverOptions, host: string): void {
  const isExposed = !isLoopback(host);
  if (apiKey === undefined && isExposed) {
    const expected = 'a loopback address (127.0.0.1, ::1 or localhost) where there is no `apiKey`';
    throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected \`host\` to be ${expected}, got ${shown(host)}`);
  }
  const wrong = (name: string, expected: string): RunspanError =>
    new RunspanError('RUNSPAN_INVALID_OPTION', `Expected \`${name}\` to ${expected}`);
  for (const [name, key] of Object.entries({ apiKey, writeKey })) {
    if (key === undefined) continue;
    if (!/^[!-~]{1,512}$/.test(key)) throw wrong(name, 'be 1 to 512 visible characters of ASCII');
    if (isExposed && key.length < KEY_LENGTH_MIN) {
      throw wrong(name, `have at least ${KEY_LENGTH_MIN} characters if the receiver is reachable from other machines`);
    }
  }
  if (writeKey !== undefined && (apiKey === undefined || apiKey === writeKey)) {
    throw wrong('writeKey', 'differ from `apiKey`, which must be set, too');
  }
}

const STORE_METHODS: readonly (keyof Store)[] = [
  'apply',
  'runs',
  'trace',
  'attachment',
  'subscribe',
  'projects',
  'traces',
  'list',
  'outline',
  'details',
  'payload',
  'statistics',
  'changes',
  'addFeedback',
  'feedback',
  'addTokens',
  'token',
  'tokens',
];

const HOST_NAME = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/i;

const CHECKS: Checks<ReceiverOptions> = {
  host: ['an address', (value) => typeof value === 'string'],
  port: wholeFrom(0, 65_535),
  store: [
    'a store, with all methods of `Store`',
    (value) => STORE_METHODS.every((method) => typeof (value as Store | null)?.[method] === 'function'),
  ],
  strict: ['true or false', (value) => typeof value === 'boolean'],
  apiKey: ['text', (value) => typeof value === 'string'],
  writeKey: ['text', (value) => typeof value === 'string'],
  workspaceId: ['text that is not empty', (value) => typeof value === 'string' && value !== ''],
  allowedHosts: [
    'a list of names of hosts, without ports',
    (value) => Array.isArray(value) && value.every((name) => typeof name === 'string' && HOST_NAME.test(name)),
  ],
};
