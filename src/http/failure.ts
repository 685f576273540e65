import { types } from '../platform/node.ts';
import { NoResponseError, SetupError } from './errors.ts';

export interface Failure {
  /** A message with the problem and the advice. Contains no payloads, URLs or credentials. */
  readonly detail: string;
  readonly problem: string;
  readonly advice: string | undefined;
  /** Code of the error or of its cause, for example `ECONNREFUSED`. */
  readonly code: string | undefined;
  /** Whether all requests fail until the configuration changes, for example because of an untrusted certificate. */
  readonly isLasting: boolean;
  /** Whether the service may have received the request. If true, the request body may have caused the failure. */
  readonly mayHaveArrived: boolean;
  /** Whether the connection failed before any data was sent. */
  readonly isUnsent: boolean;
}

const UNTRUSTED = ['the certificate is not trusted', 'add the certificate authority with NODE_EXTRA_CA_CERTS'] as const;

const KNOWN: Readonly<Record<string, readonly [problem: string, advice?: string]>> = {
  ECONNREFUSED: ['no program listens on this host and port', 'check the endpoint, and that the service runs'],
  ENOTFOUND: ['the host name is unknown', 'check the endpoint'],
  EAI_AGAIN: ['host names cannot be resolved at the moment'],
  CERT_HAS_EXPIRED: ['the certificate has expired'],
  DEPTH_ZERO_SELF_SIGNED_CERT: ['the certificate is self-signed', 'trust the certificate with NODE_EXTRA_CA_CERTS'],
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: ['the certificate is for another host', 'check the endpoint'],
  ERR_SSL_WRONG_VERSION_NUMBER: ['the server does not use TLS', 'check whether the endpoint begins with http or https'],
};

const TLS_ERROR = /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(GET|VERIFY|DECRYPT)_|ERR_TLS_|ERR_SSL_|UND_ERR_PRX_TLS)/;

/** Error codes that occur only before a connection is established. */
const UNSENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_(CONNECT_TIMEOUT|INVALID_ARG|PRX_TLS)|ERR_SSL_WRONG_VERSION_NUMBER)|^(?!ERR_SSL_)(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_)/;

/** Error codes that may occur after a request was sent. */
const IN_FLIGHT = /^(ECONNRESET|EPIPE|HPE_|ERR_STREAM_PREMATURE_CLOSE|UND_ERR_(SOCKET|HEADERS_|BODY_|RES_|RESPONSE))/;

const DEPTH_MAX = 5;

/** Describes a failed request. Messages of other modules are left out, because they may contain request data. */
export function failureOf(thrown: unknown): Failure {
  try {
    if (thrown instanceof NoResponseError) return failure(thrown.message, { mayHaveArrived: true });
    if (thrown instanceof SetupError) return failure(thrown.message, { isLasting: true, isUnsent: true });
    const code = codeOf(thrown, DEPTH_MAX);
    if (types.isNativeError(thrown) && proxyErrors.has(thrown)) return failureOfProxy(code);
    return tunnelFailure(thrown) ?? parserFailure(thrown) ?? failureOfCode(code, thrown);
  } catch {
    // A getter of the error object threw.
    return failureOfCode(undefined);
  }
}

function failure(problem: string, facts: Partial<Failure> = {}): Failure {
  const { code, advice } = facts;
  const reason = code === undefined ? '' : ` (${code})`;
  const detail = advice === undefined ? problem : `${problem}; ${advice}`;
  const texts = { detail: `${detail}${reason}`, problem: `${problem}${reason}`, advice };
  return { code, isLasting: false, mayHaveArrived: false, isUnsent: false, ...facts, ...texts };
}

const proxyErrors = new WeakSet<Error>();

export function markProxyError(error: Error): void {
  proxyErrors.add(error);
}

export function isBreak(thrown: unknown): boolean {
  return /^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/.test(failureOf(thrown).code ?? '');
}

function failureOfCode(code: string | undefined, thrown?: unknown): Failure {
  if (code === undefined) {
    // The class name of an error contains no request data.
    const [name] = /^[A-Z][A-Za-z]{1,50}Error$/.exec(types.isNativeError(thrown) ? String(thrown.name) : '') ?? [];
    return failure(`the request failed for an unknown reason${name === undefined ? '' : ` (${name})`}`);
  }
  const isLasting = TLS_ERROR.test(code);
  const [problem, advice] = KNOWN[code] ?? [isLasting ? 'the TLS connection failed' : 'the request failed'];
  return failure(problem, {
    advice,
    code,
    isLasting,
    mayHaveArrived: IN_FLIGHT.test(code),
    isUnsent: UNSENT.test(code),
  });
}

function failureOfProxy(code: string | undefined): Failure {
  const found = failureOfCode(code);
  // Advice about certificates is also valid for the proxy's certificate.
  if (found.isLasting) return found;
  const advice = 'check the proxy, HTTP_PROXY and HTTPS_PROXY';
  return failure('the proxy cannot be reached', { ...found, advice, isUnsent: true });
}

/** Describes a request that the proxy refused. undici reports the proxy's status code only in the error message. */
function tunnelFailure(thrown: unknown): Failure | undefined {
  const [, status] =
    /^Proxy response \((\d{3})\)/.exec(types.isNativeError(thrown) ? String(thrown.message) : '') ?? [];
  if (status === undefined) return undefined;
  const problem = status === '407' ? 'the proxy requires authentication' : 'the proxy refused to connect';
  return failure(`${problem} (status ${status})`, { isLasting: status.startsWith('4'), isUnsent: true });
}

/** Describes an invalid HTTP response. undici throws an `AssertionError` if the status is below 100. */
function parserFailure(thrown: unknown): Failure | undefined {
  if (!types.isNativeError(thrown)) return undefined;
  const isAssertion = (thrown as { code?: unknown }).code === 'ERR_ASSERTION';
  if (thrown.name !== 'HTTPParserError' && !isAssertion) return undefined;
  return failure('the response is not HTTP', { mayHaveArrived: true });
}

function codeOf(thrown: unknown, depthMax: number): string | undefined {
  if (typeof thrown !== 'object' || thrown === null || depthMax === 0) return undefined;
  const { code, cause, errors } = thrown as { code?: unknown; cause?: unknown; errors?: unknown };
  if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code)) return code;
  for (const inner of [cause, ...(Array.isArray(errors) ? errors.slice(0, DEPTH_MAX) : [])]) {
    const found = codeOf(inner, depthMax - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
