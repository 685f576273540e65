import { RunspanError } from '../base/errors.ts';
import { shown } from '../base/text.ts';
import {
  type Check,
  type Checks,
  checkedOptions,
  isLoopback,
  isObject,
  isOrigin,
  TRUE_OR_FALSE,
  wholeFrom,
} from '../config/checker.ts';
import { checkedVocabularies, type SpanVocabulary, vocabulariesCheck } from '../otel/conventions/span-vocabulary.ts';
import { namesCheck } from '../otel/mapping/resource.ts';
import { mappingWith } from '../otel/mapping/span-to-run.ts';
import { defined, parseExact } from '../payload/fields.ts';
import { receiverRoutes } from './all-routes.ts';
import { checkedQuery, checkedTraceId } from './api/run-query.ts';
import type { RunQuery, Scope } from './domain/query/query.ts';
import type { StoredRun } from './domain/run-view.ts';
import { type Parsed, parsedQuery } from './filter/run-filter.ts';
import { Access } from './http/access/access.ts';
import { FixedKeys } from './http/access/keyring.ts';
import { TokenSigner } from './http/access/token-signer.ts';
import type { Route } from './http/route.ts';
import type { RoutesOptions } from './http/routes.ts';
import { Faults, type ReceiverFaults } from './http/server/faults.ts';
import { listen, type ServerLimits } from './http/server/server.ts';
import { MemoryStore } from './store/memory-store.ts';
import { DEFAULT_SCOPE, STORE_METHODS, type Store } from './store/store.ts';

/** Options for `createReceiver`, all of them optional. */
export interface ReceiverOptions {
  /**
   * Address to listen on. Addresses other than 127.0.0.0/8, ::1 and localhost require an `apiKey`.
   * @default '127.0.0.1'
   */
  host?: string;
  /** Port to listen on. `0` selects a free port. @default 0 */
  port?: number;
  /** Store for the runs. The receiver does not close the store. @default a new MemoryStore */
  store?: Store;
  /**
   * Whether to accept only requests that follow the documented interface. A strict receiver rejects other requests with
   * status 400 or 422, and describes the violation in `detail`. By default, the receiver also accepts requests from
   * LangSmith clients and OTLP exporters.
   * @default false
   */
  strict?: boolean;
  /**
   * Key that clients must send to write or read data. The key must have 1 to 512 visible ASCII characters. If other
   * machines can reach the receiver, the minimum is 16 characters. Clients send the key in the header `x-api-key` or
   * `Authorization: Bearer`. `POST /login` exchanges the key for a cookie. Requests without the key get status
   * 401. Feedback tokens, `GET /info` and the page's files require no key.
   * @default no key is required, and a key that a client sends is ignored
   */
  apiKey?: string;
  /**
   * A second key that allows clients only to send runs, spans and feedback, and to create and revoke feedback tokens.
   * Other requests with the write key get status 403. The write key has the same format as `apiKey` and requires
   * `apiKey`.
   * @default no write key
   */
  writeKey?: string;
  /**
   * Id of the receiver's workspace. Requests with a different `x-tenant-id` header get status 403.
   * @default every workspace is accepted
   */
  workspaceId?: string;
  /**
   * Additional host names of the receiver, without port, for example the name of a reverse proxy. Requests with any
   * other `Host` header get status 403.
   * @default none
   */
  allowedHosts?: readonly string[];
  /**
   * Origins whose web pages may send OpenTelemetry spans, for example `https://shop.example.com`. Pages cannot keep a key
   * secret: with `apiKey`, give pages the `writeKey`.
   * @default none
   */
  allowedOrigins?: readonly string[];
  /**
   * Names of the resource attributes of spans that become metadata. `k8s.*` stands for all names that begin with `k8s.`.
   * @default ['service.*', 'deployment.environment', 'deployment.environment.name', 'host.name', 'k8s.*']
   */
  resource?: readonly string[];
  /**
   * Vocabularies of your own for the attributes of OpenTelemetry spans, at most 10, in order of precedence. They take
   * precedence over those that the receiver reads.
   * @default none
   */
  vocabularies?: readonly SpanVocabulary[];
}

/** A server that receives runs over HTTP and lets you read the stored runs. */
export interface Receiver {
  /**
   * The receiver's URL, for example `http://127.0.0.1:4777`. Set `RUNSPAN_ENDPOINT` to this URL to send runs to the
   * receiver.
   */
  readonly url: string;
  /** Returns copies of the runs that match the query, sorted by `dotted_order`. Without a query, returns all runs. */
  runs(query?: RunQuery): Promise<StoredRun[]>;
  /** Returns the runs in a trace, parents before children. Returns an empty list if the trace is unknown. */
  trace(traceId: string): Promise<StoredRun[]>;
  /**
   * Sets the faults that the receiver simulates for requests with runs. Replaces all earlier faults. Pass `{}` to
   * remove all faults. Throws `RUNSPAN_INVALID_OPTION` if a fault is invalid.
   */
  setFaults(faults: ReceiverFaults): void;
  /** Stops listening and waits up to 2 seconds for pending requests. */
  close(): Promise<void>;
}

/**
 * Starts a receiver. Rejects with `RUNSPAN_INVALID_OPTION` if an option is invalid. Rejects with
 * `RUNSPAN_ADDRESS_IN_USE` if another program uses the port. Rejects with `RUNSPAN_LISTEN_FAILED` if the receiver
 * cannot listen for another reason.
 */
export function createReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  return receiverWith(options);
}

/** What a command adds to its receiver. */
export interface ReceiverAdditions {
  /** Called after each request whose runs were stored. */
  readonly received?: NonNullable<RoutesOptions['received']>;
  readonly select?: NonNullable<RoutesOptions['select']>;
  readonly routes?: readonly Route[];
}

/** Like `createReceiver`, with additions that are not public. */
export async function receiverWith(
  options: ReceiverOptions,
  { received, select, routes }: ReceiverAdditions = {},
): Promise<Receiver> {
  const given = checkedOptions('the options', options, CHECKS);
  const { host = '127.0.0.1', port = 0, store = new MemoryStore(), strict = false } = given;
  checkKeys(given, host);
  const faults = new Faults();
  const { apiKey, writeKey, workspaceId, allowedHosts, allowedOrigins, resource, vocabularies } = given;
  const keys = apiKey === undefined ? undefined : new FixedKeys(apiKey, writeKey);
  const rules = { host, workspaceId, allowedHosts, allowedOrigins, ...(keys && { keys }) };
  const access = new Access(rules, new TokenSigner(store));
  const mapping = mappingWith(checkedVocabularies(vocabularies), resource);
  const parts = { store, strict, faults, access, mapping, ...defined({ received, select }) };
  const server = await startServer(parts, host, port, {}, routes);
  return {
    url: server.url,
    runs: async (query = {}) => storedRuns(store, checkedQuery(query)),
    trace: async (traceId) => storedRuns(store, parsedQuery({ traceId: checkedTraceId(traceId) })),
    setFaults: (given) => faults.set(given),
    close: () => server.close(),
  };
}

export async function startServer(
  options: RoutesOptions,
  host: string,
  port: number,
  limits?: ServerLimits,
  added?: readonly Route[],
): ReturnType<typeof listen> {
  const routes = receiverRoutes(options, added);
  // Node expects an IPv6 address without brackets.
  return listen(routes, host.replace(/^\[(.*)\]$/, '$1'), port, limits);
}

export async function storedRuns(
  store: Store,
  query: Parsed<RunQuery>,
  scope: Scope = DEFAULT_SCOPE,
): Promise<StoredRun[]> {
  const runs: StoredRun[] = [];
  for await (const text of store.runs(scope, query)) runs.push(parseExact(text, String));
  // A store in ClickHouse returns traces in another order.
  return runs.sort((a, b) => (a.dotted_order < b.dotted_order ? -1 : a.dotted_order > b.dotted_order ? 1 : 0));
}

const KEY_LENGTH_MIN = 16;

/** Validates the length of both keys and checks that the keys differ. Error messages must not contain a key. */
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

export const HOST_NAME: RegExp = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/i;

const KEY: Check = [
  '1 to 512 visible characters of ASCII',
  (value) => typeof value === 'string' && /^[!-~]{1,512}$/.test(value),
  'secret',
];

function missingMethods(store: Record<string, unknown>): string[] {
  return STORE_METHODS.filter((method) => typeof store[method] !== 'function');
}

const CHECKS: Checks<ReceiverOptions> = {
  host: ['a host name or IP address', (value) => typeof value === 'string'],
  port: wholeFrom(0, 65_535),
  store: [
    'an object with all methods of `Store`',
    (value) => isObject(value) && missingMethods(value).length === 0,
    (value) => (isObject(value) ? `a store without ${missingMethods(value).join(', ')}` : shown(value)),
  ],
  strict: TRUE_OR_FALSE,
  apiKey: KEY,
  writeKey: KEY,
  workspaceId: ['a non-empty string', (value) => typeof value === 'string' && value !== ''],
  allowedHosts: [
    'a list of host names without ports',
    (value) => Array.isArray(value) && value.every((name) => typeof name === 'string' && HOST_NAME.test(name)),
  ],
  allowedOrigins: [
    'a list of origins such as https://shop.example.com',
    (value) => Array.isArray(value) && value.every((text) => isOrigin(text)),
  ],
  resource: namesCheck,
  vocabularies: vocabulariesCheck,
};
