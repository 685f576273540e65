import { RunspanError } from '../base/errors.ts';
import { type Check, type Checks, checkedOptions, isLoopback, wholeFrom } from '../base/options.ts';
import { shown } from '../base/text.ts';
import { Access } from './access.ts';
import { Faults, type ReceiverFaults } from './faults.ts';
import type { RunQuery } from './query/query.ts';
import { checkedQuery, checkedTraceId } from './query/run-query.ts';
import { createRoutes } from './routes.ts';
import { listen } from './server.ts';
import { MemoryStore } from './store/memory-store.ts';
import { ranged } from './store/run-filter.ts';
import type { StoredRun } from './store/run-view.ts';
import { DEFAULT_SCOPE, STORE_METHODS, type Store } from './store/store.ts';

export interface ReceiverOptions {
  /**
   * The address to listen on. Addresses other than 127.0.0.0/8, ::1 and localhost require an `apiKey`.
   * @default '127.0.0.1'
   */
  host?: string;
  /** 0 selects a free port. @default 0 */
  port?: number;
  /** Store for the runs. The receiver does not close it. @default a new MemoryStore */
  store?: Store;
  /**
   * Whether to accept only the documented interface. Other requests get 400 or 422, and `detail` describes the
   * violation. Otherwise, the receiver also accepts what LangSmith clients and OTLP exporters send.
   * @default false
   */
  strict?: boolean;
  /**
   * Key that is required to send and read data: 1 to 512 visible ASCII characters, or at least 16 if the receiver is
   * reachable from other machines. Clients send it as `x-api-key` or `Authorization: Bearer`, or exchange it for a
   * cookie at `POST /login`. Requests without it get 401. Feedback by token, `GET /info` and the files of the page
   * require no key.
   * @default no key is required, and a key that a client sends is ignored
   */
  apiKey?: string;
  /**
   * A second key, which permits only sending runs, spans and feedback, and creating feedback tokens. Other requests
   * with this key get 403. Requires an `apiKey` and has the same format.
   * @default no write key
   */
  writeKey?: string;
  /**
   * The workspace of the receiver. Requests with a different `x-tenant-id` get 403.
   * @default every workspace is accepted
   */
  workspaceId?: string;
  /**
   * Additional host names of the receiver without port, for example the name of a reverse proxy. Requests with any
   * other `Host` get 403.
   * @default none
   */
  allowedHosts?: readonly string[];
}

/** A server that receives runs over HTTP, and its stored runs. */
export interface Receiver {
  /** The value for `RUNSPAN_ENDPOINT`, for example `http://127.0.0.1:4777`. */
  readonly url: string;
  /** Returns copies of the runs that match the query, or of all runs, sorted by `dotted_order`. */
  runs(query?: RunQuery): Promise<StoredRun[]>;
  /** Returns the runs of a trace, parents before children, or no runs if the trace is unknown. */
  trace(traceId: string): Promise<StoredRun[]>;
  /**
   * Makes requests with runs fail. Replaces earlier faults, so `{}` removes all faults. Throws `RUNSPAN_INVALID_OPTION`
   * for an invalid fault.
   */
  setFaults(faults: ReceiverFaults): void;
  /** Stops listening and waits up to 2 seconds for pending requests. */
  close(): Promise<void>;
}

/**
 * Starts a receiver. Rejects with `RUNSPAN_INVALID_OPTION` for an invalid option, `RUNSPAN_ADDRESS_IN_USE` if another
 * program uses the port, and `RUNSPAN_LISTEN_FAILED` for another system error.
 */
export async function createReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const given = checkedOptions('the options', options, CHECKS);
  const { host = '127.0.0.1', port = 0, store = new MemoryStore(), strict = false } = given;
  checkKeys(given, host);
  const faults = new Faults();
  const access = new Access({ ...given, host });
  // Node expects IPv6 addresses without brackets.
  const address = host.replace(/^\[(.*)\]$/, '$1');
  const server = await listen(createRoutes(store, strict, faults, access), address, port);
  return {
    url: server.url,
    runs: async (query = {}) => runsOf(store, checkedQuery(query)),
    trace: async (traceId) => runsOf(store, { traceId: checkedTraceId(traceId) }),
    setFaults: (given) => faults.set(given),
    close: () => server.close(),
  };
}

async function runsOf(store: Store, query: RunQuery): Promise<StoredRun[]> {
  const runs: StoredRun[] = [];
  for await (const text of store.runs(DEFAULT_SCOPE, ranged(query))) runs.push(JSON.parse(text));
  return runs;
}

const KEY_LENGTH_MIN = 16;

/** Checks the keys after their format. Error messages must not contain a key. */
function checkKeys({ apiKey, writeKey }: ReceiverOptions, host: string): void {
  const fail = (expected: string): never => {
    throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected ${expected}`);
  };
  if (!isLoopback(host)) {
    const address = 'a loopback address (127.0.0.1, ::1 or localhost)';
    if (apiKey === undefined) fail(`\`host\` to be ${address} without an \`apiKey\`, got ${shown(host)}`);
    for (const [name, key] of Object.entries({ apiKey, writeKey })) {
      if (key === undefined || key.length >= KEY_LENGTH_MIN) continue;
      fail(
        `\`${name}\` to have at least ${KEY_LENGTH_MIN} characters if the receiver is reachable from other machines`,
      );
    }
  }
  if (writeKey !== undefined && (apiKey === undefined || apiKey === writeKey)) {
    fail('`writeKey` to differ from `apiKey`, which must be set');
  }
}

const HOST_NAME = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/i;

const KEY: Check = [
  '1 to 512 visible characters of ASCII',
  (value) => typeof value === 'string' && /^[!-~]{1,512}$/.test(value),
  'secret',
];

const CHECKS: Checks<ReceiverOptions> = {
  host: ['an address', (value) => typeof value === 'string'],
  port: wholeFrom(0, 65_535),
  store: [
    'a store with all methods of `Store`',
    (value) => STORE_METHODS.every((method) => typeof (value as Store | null)?.[method] === 'function'),
  ],
  strict: ['true or false', (value) => typeof value === 'boolean'],
  apiKey: KEY,
  writeKey: KEY,
  workspaceId: ['text that is not empty', (value) => typeof value === 'string' && value !== ''],
  allowedHosts: [
    'a list of host names without ports',
    (value) => Array.isArray(value) && value.every((name) => typeof name === 'string' && HOST_NAME.test(name)),
  ],
};
