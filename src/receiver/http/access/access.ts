import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type BlockList, isIP } from 'node:net';
import { isLoopback } from '../../../config/checker.ts';
import type { Permission } from '../../store/key-store.ts';
import { DEFAULT_SCOPE } from '../../store/store.ts';
import { HttpError } from '../http-error.ts';
import { FULL_GRANT, type Grant, type Keyring } from './keyring.ts';
import type { TokenSigner } from './token-signer.ts';

export interface AccessRules {
  readonly host: string;
  /** Keys that the receiver accepts. If undefined, no key is required. */
  readonly keys?: Keyring;
  readonly proxies?: readonly TrustedProxy[];
  readonly workspaceId?: string | undefined;
  readonly allowedHosts?: readonly string[] | undefined;
  readonly publicUrl?: string | undefined;
  /** Origins whose pages may send spans. */
  readonly allowedOrigins?: readonly string[] | undefined;
}

/** A proxy that authenticates users, and puts the user's name into a header. */
export interface TrustedProxy {
  readonly addresses: BlockList;
  /** Name of the header in lower case. */
  readonly header: string;
  readonly grant: Grant;
}

/**
 * Clients that may send requests to a route. `anyone`: all clients, including web pages from other origins. `open`: all
 * clients except web pages from other origins. Other values: clients whose key has this permission or `admin`. If the
 * receiver requires no key, they mean the same as `open`. An `admin` key that cannot read all runs is not enough for
 * `metrics`.
 */
export type Admission = 'anyone' | 'open' | Permission;

type Admitted = Pick<Grant, 'scope' | 'permission'>;

/** For requests without a key. The scope contains no data, because the name of a tenant is never empty. */
const NOTHING: Admitted = { scope: { tenant: '' }, permission: 'read' };

/** Error messages for routes that a key does not allow, by the permission of the key. */
const DENIALS: Readonly<Record<Permission, string>> = {
  write: 'The write key can only send runs and feedback',
  read: 'The read key can only read',
  metrics: 'The metrics key can only read /metrics',
  admin: '',
};

const NO_METRICS = 'The metrics count the runs of all tenants and projects: use a key with the scope metrics';

const SESSION_SECONDS = 30 * 24 * 60 * 60;
/** Maximum number of wrong keys per time window. Further ones get status 429. The correct key is always accepted. */
const WRONG_KEYS_MAX = 10;
const WRONG_KEYS_WINDOW_MS = 60_000;

/** Decides which requests a receiver accepts, and returns their scopes and permissions. */
export class Access {
  /** May be replaced, except for the address. Sessions continue if their keys are still accepted. */
  rules: AccessRules;
  readonly #isExposed: boolean;
  readonly tokens: TokenSigner;
  #wrongKeys = 0;
  #wrongKeysResetMs = 0;

  constructor(rules: AccessRules, tokens: TokenSigner) {
    this.rules = rules;
    this.tokens = tokens;
    this.#isExposed = !isLoopback(rules.host);
  }

  isTenant(name: string): boolean {
    return this.rules.keys?.isTenant(name) ?? name === DEFAULT_SCOPE.tenant;
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
    if (this.#isAllowedName(name)) return;
    const expected = `Expected the host to be 127.0.0.1, localhost or [::1] with port ${port}`;
    throw new HttpError(403, this.#isExposed ? `${expected}, an IP address, or one of \`allowedHosts\`` : expected);
  }

  /** Returns the origin of a page that may send spans. Undefined if no such page sent the request. */
  pageOrigin({ headers: { origin } }: IncomingMessage): string | undefined {
    return origin !== undefined && this.rules.allowedOrigins?.includes(origin) === true ? origin : undefined;
  }

  /**
   * Returns the scope and the permission of the request. `isForPages` is true if pages of `allowedOrigins` may send it.
   * Throws an HTTP 403 error if a page from another origin sent the request or the key does not allow the route. Throws a
   * 401 error if the key is missing or wrong.
   */
  async admit(request: IncomingMessage, admission: Admission, isForPages = false): Promise<Admitted> {
    if (admission === 'anyone') return NOTHING;
    if (!isForPages || this.pageOrigin(request) === undefined) this.#checkSite(request, admission);
    if (admission === 'open') return NOTHING;
    const grant = await this.#grantOf(request);
    const { permission, scope } = grant;
    if (permission !== admission && permission !== 'admin') throw new HttpError(403, DENIALS[permission]);
    const isPartial = scope.project !== undefined || this.rules.keys?.isShared === true;
    if (admission === 'metrics' && permission === 'admin' && isPartial) throw new HttpError(403, NO_METRICS);
    const { 'x-tenant-id': workspaceId } = request.headers;
    if (this.rules.workspaceId !== undefined && workspaceId !== undefined && workspaceId !== this.rules.workspaceId) {
      throw new HttpError(403, 'x-tenant-id does not match the workspace of this receiver');
    }
    return grant;
  }

  /** Returns whether a request would still be accepted. Its key may have been revoked since the request arrived. */
  isAdmitted(request: IncomingMessage, admission: Admission): Promise<boolean> {
    return this.admit(request, admission).then(
      () => true,
      (error) => !(error instanceof HttpError),
    );
  }

  /** Starts a login session and returns its `Set-Cookie` header. Throws an HttpError if the key is wrong. */
  async login(key: unknown, request: IncomingMessage): Promise<string> {
    const { keys } = this.rules;
    const grant = keys === undefined ? FULL_GRANT : typeof key === 'string' ? await keys.find(key) : undefined;
    if (grant === undefined) throw this.#wrongKey();
    const { permission } = grant;
    if (permission === 'write' || permission === 'metrics') {
      throw unauthorized(`This is the ${permission} key: log in with ${keys?.loginKeys}`);
    }
    const endsAtMs = Date.now() + SESSION_SECONDS * 1_000;
    const token = `${grant.id}:${await this.tokens.sign([endsAtMs, randomUUID()], purposeOf(grant))}`;
    const isSecure = (request.headers.origin ?? this.rules.publicUrl)?.startsWith('https:') === true;
    return cookie(this.#cookieName(request), token, SESSION_SECONDS) + (isSecure ? '; Secure' : '');
  }

  /** Ends the login session at all receivers of the store. Returns the `Set-Cookie` header that deletes its cookie. */
  async logout(request: IncomingMessage): Promise<string> {
    const session = await this.#sessionOf(request);
    if (session !== undefined) await this.tokens.revoke(session.grant.scope, session.id);
    return cookie(this.#cookieName(request), '', 0);
  }

  #checkSite(request: IncomingMessage, admission: Admission): void {
    const { origin } = request.headers;
    if (origin !== undefined && !this.#isOwnOrigin(origin, request)) {
      throw new HttpError(403, 'Pages from another origin may not send requests to this receiver');
    }
    if (isOfAnotherSite(request) && !(admission === 'open' && isNavigation(request))) {
      throw new HttpError(403, 'Pages from other sites may only link to /');
    }
  }

  #isOwnOrigin(origin: string, { headers, socket }: IncomingMessage): boolean {
    const [, scheme, authority] = /^(https?):\/\/(.*)$/.exec(origin) ?? [];
    if (this.#isAllowedName(nameIn(authority))) return true;
    if (scheme !== 'http') return false;
    return isOwnAuthority(authority, socket.localPort ?? 0) || (this.#isExposed && authority === headers.host);
  }

  #isAllowedName(name: string): boolean {
    return this.rules.allowedHosts?.some((allowed) => allowed.toLowerCase() === name) === true;
  }

  async #grantOf(request: IncomingMessage): Promise<Grant> {
    const { keys } = this.rules;
    if (keys === undefined) return FULL_GRANT;
    const { method, headers } = request;
    const given = headers['x-api-key'] ?? /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
    if (typeof given === 'string') {
      const workspaceId = headers['x-tenant-id'];
      const grant = await keys.find(given, typeof workspaceId === 'string' ? workspaceId : undefined);
      if (grant === undefined) throw this.#wrongKey();
      return grant;
    }
    const grant = this.#proxyGrantOf(request) ?? (await this.#sessionGrantOf(request));
    // Browsers send cookies and pass through proxies with every request, so a write also needs an `Origin` header.
    if (method !== 'GET' && headers.origin === undefined) {
      throw new HttpError(403, 'A request that writes with a cookie must have an Origin header');
    }
    return grant;
  }

  async #sessionGrantOf(request: IncomingMessage): Promise<Grant> {
    const session = await this.#sessionOf(request);
    if (session !== undefined) return session.grant;
    const isMissing = cookieOf(request, this.#cookieName(request)) === undefined;
    throw unauthorized(
      isMissing
        ? 'The API key is missing: send the key in the header x-api-key'
        : 'The session has ended: log in again',
    );
  }

  /** Returns the login session of the request, or undefined if its cookie is missing or forged, or it has ended. */
  async #sessionOf(request: IncomingMessage): Promise<{ readonly id: string; readonly grant: Grant } | undefined> {
    const token = cookieOf(request, this.#cookieName(request)) ?? '';
    const [, keyId, signed = ''] = /^(\w{1,20}):(.*)$/.exec(token) ?? [];
    const grant = keyId === undefined ? undefined : await this.rules.keys?.byId(keyId);
    if (grant === undefined) return undefined;
    const [endsAtMs, id] = (await this.tokens.read(signed, purposeOf(grant))) ?? [];
    if (typeof id !== 'string' || Date.now() >= Number(endsAtMs)) return undefined;
    if (await this.tokens.isRevoked(grant.scope, id)) return undefined;
    grant.used?.();
    return { id, grant };
  }

  /**
   * Returns the session cookie's name. The name contains the port, because browsers share cookies between all ports of a
   * host. The port is that of the public URL or the `Host` header: receivers behind one URL may listen on several ports.
   */
  #cookieName({ headers }: IncomingMessage): string {
    const { publicUrl = `http://${headers.host}` } = this.rules;
    return `runspan-${/:(\d+)\/?$/.exec(publicUrl)?.[1] ?? 'default'}`;
  }

  /** Returns the grant of a user whom a trusted proxy has authenticated. Other clients cannot forge the header. */
  #proxyGrantOf({ headers, socket }: IncomingMessage): Grant | undefined {
    const { remoteAddress = '', remoteFamily } = socket;
    const family = remoteFamily === 'IPv6' ? 'ipv6' : 'ipv4';
    const proxy = this.rules.proxies?.find(
      ({ addresses, header }) => (headers[header] ?? '') !== '' && addresses.check(remoteAddress, family),
    );
    return proxy?.grant;
  }

  #wrongKey(): HttpError {
    const detail = 'The API key is not valid for this receiver';
    if (this.rules.keys?.isGuessable !== true) return unauthorized(detail);
    const now = Date.now();
    if (now >= this.#wrongKeysResetMs) {
      this.#wrongKeys = 0;
      this.#wrongKeysResetMs = now + WRONG_KEYS_WINDOW_MS;
    }
    this.#wrongKeys += 1;
    if (this.#wrongKeys <= WRONG_KEYS_MAX) return unauthorized(detail);
    const retryAfter = `${Math.ceil((this.#wrongKeysResetMs - now) / 1_000)}`;
    return new HttpError(429, `${detail}; too many wrong keys, try again later`, { 'retry-after': retryAfter });
  }
}

/** What the signature of a login session covers besides its end. */
function purposeOf({ id, key = '' }: Grant): string {
  return `session ${id} ${key}`;
}

/**
 * Returns whether a page on another site, or on another port of this machine, caused the request. Requests for images
 * and scripts have no `Origin` header, but a page could measure their response times.
 */
function isOfAnotherSite({ headers }: IncomingMessage): boolean {
  return headers['sec-fetch-site'] === 'cross-site' || headers['sec-fetch-site'] === 'same-site';
}

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

function cookie(name: string, value: string, seconds: number): string {
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}`;
}

function cookieOf({ headers }: IncomingMessage, name: string): string | undefined {
  const found = headers.cookie?.split('; ').find((pair) => pair.startsWith(`${name}=`));
  return found?.slice(name.length + 1);
}
