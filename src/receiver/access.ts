import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isLoopback } from '../base/loopback.ts';
import { Refusal } from './refusal.ts';

/** Who a receiver answers. */
export interface AccessRules {
  /** Where it listens: beyond this machine every address may be its own, and ports may be mapped on the way. */
  readonly host: string;
  readonly apiKey?: string;
  readonly workspaceId?: string;
  readonly allowedHosts?: readonly string[];
}

/**
 * Whom an endpoint answers: `anyone`, pages of other origins too; without the key all who ask it by a name of its own and
 * are no such page, `open`; `key`, which is the rule, those of them who have the key, if there is one.
 */
export type Admission = 'anyone' | 'open' | 'key';

const LOGIN_SECONDS = 30 * 24 * 60 * 60;

/** Decides who may ask a receiver. */
export class Access {
  readonly #rules: AccessRules;
  readonly #isExposed: boolean;
  readonly #names: ReadonlySet<string>;
  /** What a cookie holds in the place of the key: it cannot be turned back, and is the same after a restart. */
  readonly #loginMark: string;

  constructor(rules: AccessRules) {
    this.#rules = rules;
    this.#isExposed = !isLoopback(rules.host);
    this.#names = new Set(rules.allowedHosts?.map((name) => name.toLowerCase()));
    this.#loginMark = createHmac('sha256', rules.apiKey ?? '')
      .update('runspan receiver login')
      .digest('hex');
  }

  /**
   * Any page that a browser shows may send requests to this machine. Those that come under another name go no further:
   * a page from elsewhere whose name has been pointed to 127.0.0.1 (DNS rebinding) still sends its own name here.
   */
  checkHost({ headers, socket }: IncomingMessage): void {
    const port = socket.localPort ?? 0;
    if (isOwnAuthority(headers.host, port)) return;
    const name = nameIn(headers.host);
    // Nobody can point an address elsewhere.
    if (this.#isExposed && (isIP(name.replace(/^\[(.*)\]$/, '$1')) > 0 || isLoopback(name))) return;
    if (this.#names.has(name)) return;
    const expected = `Expected the host to be 127.0.0.1, localhost or [::1] with port ${port}`;
    throw new Refusal(403, this.#isExposed ? `${expected}, an address, or one of \`allowedHosts\`` : expected);
  }

  /** Called once it is known what is asked for: 403 for pages of another origin, 401 without the key. */
  admit(request: IncomingMessage, admission: Admission): void {
    if (admission === 'anyone') return;
    const { origin } = request.headers;
    if (origin !== undefined && !this.#isOwnOrigin(origin, request)) {
      throw new Refusal(403, 'Pages of another origin may not ask here');
    }
    if (admission === 'open') return;
    this.#checkKey(request);
    const { 'x-tenant-id': workspaceId } = request.headers;
    if (this.#rules.workspaceId !== undefined && workspaceId !== undefined && workspaceId !== this.#rules.workspaceId) {
      throw new Refusal(403, 'The workspace that x-tenant-id names is not the one of this receiver');
    }
  }

  /** The `Set-Cookie` with which a browser need not send the key again; 401 for another key. */
  login(key: unknown, request: IncomingMessage): string {
    const { apiKey } = this.#rules;
    if (apiKey !== undefined && (typeof key !== 'string' || !isSame(key, apiKey)))
      throw refused('is another than the one given');
    const isSecure = request.headers.origin?.startsWith('https:') === true;
    return cookie(request, this.#loginMark, LOGIN_SECONDS) + (isSecure ? '; Secure' : '');
  }

  /** The `Set-Cookie` that takes that back. */
  logout(request: IncomingMessage): string {
    return cookie(request, '', 0);
  }

  #isOwnOrigin(origin: string, { headers, socket }: IncomingMessage): boolean {
    const [, scheme, authority] = /^(https?):\/\/(.*)$/.exec(origin) ?? [];
    if (this.#names.has(nameIn(authority))) return true;
    if (scheme !== 'http') return false;
    return isOwnAuthority(authority, socket.localPort ?? 0) || (this.#isExposed && authority === headers.host);
  }

  #checkKey(request: IncomingMessage): void {
    const { apiKey } = this.#rules;
    if (apiKey === undefined) return;
    const { method, headers } = request;
    const given = headers['x-api-key'] ?? /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
    if (typeof given === 'string') {
      if (!isSame(given, apiKey)) throw refused('is another than the one given');
      return;
    }
    const mark = cookieOf(request);
    if (mark === undefined) throw refused('is missing: send it as x-api-key');
    if (!isSame(mark, this.#loginMark)) throw refused('has changed: log in again');
    // Browsers send it with whatever they send; what writes has to be of our own page, which is known by its origin.
    if (method !== 'GET' && headers.origin === undefined) {
      throw new Refusal(403, 'With a cookie only the page of this receiver may write, and it sends its origin');
    }
  }
}

/**
 * Whether a `Host` header, or the part of an `Origin` after `http://`, names this machine and port.
 */
export function isOwnAuthority(authority: string | undefined, port: number): boolean {
  const [, host = '', ownPort = '80'] = AUTHORITY.exec(authority ?? '') ?? [];
  return isLoopback(host) && Number(ownPort) === port;
}

const AUTHORITY = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/;

/** The name in an authority, empty where it is none. */
function nameIn(authority: string | undefined): string {
  return AUTHORITY.exec(authority ?? '')?.[1]?.toLowerCase() ?? '';
}

function refused(what: string): Refusal {
  return new Refusal(401, `The key of this receiver ${what}`, { 'www-authenticate': 'Bearer' });
}

/** In a time that does not tell how much of it is the same. */
function isSame(given: string, expected: string): boolean {
  const [a, b] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

/** Cookies are the same for all ports of a host. */
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
