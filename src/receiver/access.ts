import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isLoopback } from '../base/options.ts';
import { HttpError } from './http-error.ts';

interface AccessRules {
  /** Address that the receiver listens on. */
  readonly host: string;
  readonly apiKey?: string;
  readonly writeKey?: string;
  readonly workspaceId?: string;
  readonly allowedHosts?: readonly string[];
}

/**
 * Clients that may send requests to a route. `anyone`: all clients, including web pages from other origins. `open`: all
 * clients except web pages from other origins. `write`: clients that send the API key or the write key. `key`
 * (default): clients that send the API key. If no key is configured, `write` and `key` mean the same as `open`.
 */
export type Admission = 'anyone' | 'open' | 'write' | 'key';

const SESSION_SECONDS = 30 * 24 * 60 * 60;
/** Maximum number of login sessions. Each further login ends the oldest session. */
const SESSIONS_MAX = 1_000;
/**
 * Maximum number of wrong keys from all clients per time window. Requests with further wrong keys get status 429. The
 * correct key is always accepted.
 */
const WRONG_KEYS_MAX = 10;
const WRONG_KEYS_WINDOW_MS = 60_000;

/** Decides which requests a receiver accepts. */
export class Access {
  readonly #rules: AccessRules;
  readonly #isExposed: boolean;
  readonly #names: ReadonlySet<string>;
  /** Maps session tokens to expiry times in milliseconds, oldest session first. */
  readonly #sessions = new Map<string, number>();
  #wrongKeys = 0;
  #wrongKeysResetMs = 0;

  constructor(rules: AccessRules) {
    this.#rules = rules;
    this.#isExposed = !isLoopback(rules.host);
    this.#names = new Set(rules.allowedHosts?.map((name) => name.toLowerCase()));
  }

  /**
   * Throws an HTTP 403 error if the `Host` header is unknown, to prevent DNS rebinding. Otherwise, a web page whose
   * host name resolves to 127.0.0.1 could send requests to the receiver. If other machines can reach the receiver,
   * every IP address and port is accepted. IP addresses cannot be rebound, and ports may be mapped.
   */
  checkHost({ headers, socket }: IncomingMessage): void {
    const port = socket.localPort ?? 0;
    if (isOwnAuthority(headers.host, port)) return;
    const name = nameIn(headers.host);
    if (this.#isExposed && (isIP(name.replace(/^\[(.*)\]$/, '$1')) > 0 || isLoopback(name))) return;
    if (this.#names.has(name)) return;
    const expected = `Expected the host to be 127.0.0.1, localhost or [::1] with port ${port}`;
    throw new HttpError(403, this.#isExposed ? `${expected}, an IP address, or one of \`allowedHosts\`` : expected);
  }

  /**
   * Throws an HTTP 403 error if a page from another origin sent the request. Throws a 401 error if the key is missing
   * or wrong.
   */
  admit(request: IncomingMessage, admission: Admission): void {
    if (admission === 'anyone') return;
    const { origin } = request.headers;
    if (origin !== undefined && !this.#isOwnOrigin(origin, request)) {
      throw new HttpError(403, 'Pages from another origin may not send requests to this receiver');
    }
    if (isOfAnotherSite(request) && !(admission === 'open' && isNavigation(request))) {
      throw new HttpError(403, 'Pages from other sites may only link to /');
    }
    if (admission === 'open') return;
    this.#checkKey(request, admission);
    const { 'x-tenant-id': workspaceId } = request.headers;
    if (this.#rules.workspaceId !== undefined && workspaceId !== undefined && workspaceId !== this.#rules.workspaceId) {
      throw new HttpError(403, 'x-tenant-id does not match the workspace of this receiver');
    }
  }

  /** Starts a login session and returns its `Set-Cookie` header. Throws an HttpError if the key is wrong. */
  login(key: unknown, request: IncomingMessage): string {
    const { apiKey, writeKey } = this.#rules;
    if (typeof key === 'string' && writeKey !== undefined && isSame(key, writeKey)) {
      throw unauthorized('This is the write key: log in with the key in RUNSPAN_RECEIVER_KEY or `apiKey`');
    }
    if (apiKey !== undefined && (typeof key !== 'string' || !isSame(key, apiKey))) throw this.#wrongKey();
    const token = randomBytes(32).toString('hex');
    this.#sessions.set(token, Date.now() + SESSION_SECONDS * 1_000);
    const [oldest = ''] = this.#sessions.keys();
    if (this.#sessions.size > SESSIONS_MAX) this.#sessions.delete(oldest);
    const isSecure = request.headers.origin?.startsWith('https:') === true;
    return cookie(request, token, SESSION_SECONDS) + (isSecure ? '; Secure' : '');
  }

  /**
   * Ends the login session whose cookie the request contains. Returns the `Set-Cookie` header that deletes the session
   * cookie.
   */
  logout(request: IncomingMessage): string {
    this.#sessions.delete(cookieOf(request) ?? '');
    return cookie(request, '', 0);
  }

  #isOwnOrigin(origin: string, { headers, socket }: IncomingMessage): boolean {
    const [, scheme, authority] = /^(https?):\/\/(.*)$/.exec(origin) ?? [];
    if (this.#names.has(nameIn(authority))) return true;
    if (scheme !== 'http') return false;
    return isOwnAuthority(authority, socket.localPort ?? 0) || (this.#isExposed && authority === headers.host);
  }

  #checkKey(request: IncomingMessage, admission: 'write' | 'key'): void {
    const { apiKey, writeKey } = this.#rules;
    if (apiKey === undefined) return;
    const { method, headers } = request;
    const given = headers['x-api-key'] ?? /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
    if (typeof given === 'string') {
      if (isSame(given, apiKey)) return;
      if (writeKey === undefined || !isSame(given, writeKey)) throw this.#wrongKey();
      if (admission === 'write') return;
      throw new HttpError(403, 'The write key can only send runs and feedback');
    }
    const token = cookieOf(request);
    if (token === undefined) throw unauthorized('The API key is missing: send the key in the header x-api-key');
    if (Date.now() >= (this.#sessions.get(token) ?? 0)) throw unauthorized('The session has ended: log in again');
    // Browsers send the session cookie with every request, so a write also needs an `Origin` header.
    if (method !== 'GET' && headers.origin === undefined) {
      throw new HttpError(403, 'A request that writes with a cookie must have an Origin header');
    }
  }

  #wrongKey(): HttpError {
    const now = Date.now();
    if (now >= this.#wrongKeysResetMs) {
      this.#wrongKeys = 0;
      this.#wrongKeysResetMs = now + WRONG_KEYS_WINDOW_MS;
    }
    this.#wrongKeys += 1;
    const detail = 'The API key is not valid for this receiver';
    if (this.#wrongKeys <= WRONG_KEYS_MAX) return unauthorized(detail);
    const retryAfter = `${Math.ceil((this.#wrongKeysResetMs - now) / 1_000)}`;
    return new HttpError(429, `${detail}; too many wrong keys, try again later`, { 'retry-after': retryAfter });
  }
}

/**
 * Returns whether a page on another site, or on another port of this machine, caused the request. Requests for images
 * and scripts have no `Origin` header, but a page could measure their response times.
 */
function isOfAnotherSite({ headers }: IncomingMessage): boolean {
  return headers['sec-fetch-site'] === 'cross-site' || headers['sec-fetch-site'] === 'same-site';
}

/** Returns whether a browser sent the request to open a link in a tab. */
function isNavigation({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
}

/** Returns whether a `Host` or `Origin` header contains a loopback address with this port. */
function isOwnAuthority(authority: string | undefined, port: number): boolean {
  const [, host = '', ownPort = '80'] = AUTHORITY.exec(authority ?? '') ?? [];
  return isLoopback(host) && Number(ownPort) === port;
}

const AUTHORITY = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/;

function nameIn(authority: string | undefined): string {
  return AUTHORITY.exec(authority ?? '')?.[1]?.toLowerCase() ?? '';
}

function unauthorized(detail: string): HttpError {
  return new HttpError(401, detail, { 'www-authenticate': 'Bearer' });
}

/** Compares two strings in constant time. */
function isSame(given: string, expected: string): boolean {
  const [a, b] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

/**
 * Returns the session cookie's name. The name contains the port, because browsers share cookies between all ports of a
 * host.
 */
function cookieName({ socket }: IncomingMessage): string {
  return `runspan-${socket.localPort ?? 0}`;
}

function cookie(request: IncomingMessage, value: string, seconds: number): string {
  return `${cookieName(request)}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}`;
}

function cookieOf(request: IncomingMessage): string | undefined {
  const start = `${cookieName(request)}=`;
  const found = request.headers.cookie?.split('; ').find((pair) => pair.startsWith(start));
  return found?.slice(start.length);
}
