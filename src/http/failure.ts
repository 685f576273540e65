import { isOfProxy } from './connections.ts';
import { SetupError } from './setup-error.ts';

/** A message of our own, which holds nothing that was sent. */
export class NoAnswerError extends Error {
  override readonly name: string = 'NoAnswerError';
}

/** The time for a request is over. */
export class DeadlineError extends NoAnswerError {
  override readonly name: string = 'DeadlineError';
}

/** Why a request had no answer. */
export interface Failure {
  /** For messages: never what is sent, where to, or with which credentials, as the texts of such errors may be. */
  readonly detail: string;
  /** The same in two, for whoever tells them apart: what is the matter, and what to do where that is known. */
  readonly problem: string;
  readonly advice: string | undefined;
  /** Of the first error underneath that has one. */
  readonly code: string | undefined;
  /** Only a change of the set-up can help: a certificate, the credentials of a proxy. */
  readonly isLasting: boolean;
  /** Whether the request may have arrived, so that what it carried may be the cause. */
  readonly mayHaveArrived: boolean;
  /** Whether it is known that nothing was sent: there was no connection. */
  readonly isUnsent: boolean;
}

/** What is the matter and what to do, by the code of an error. */
const KNOWN: Readonly<Record<string, readonly [problem: string, advice?: string]>> = {
  ECONNREFUSED: ['nothing listens there', 'check the endpoint, and that the service runs'],
  ENOTFOUND: ['the name of the host is not known', 'check the endpoint'],
  EAI_AGAIN: ['names of hosts cannot be looked up for now'],
  CERT_HAS_EXPIRED: ['its certificate has expired'],
  DEPTH_ZERO_SELF_SIGNED_CERT: ['its certificate is self-signed', 'trust it by NODE_EXTRA_CA_CERTS'],
  SELF_SIGNED_CERT_IN_CHAIN: ['its certificate is not trusted', 'trust its authority by NODE_EXTRA_CA_CERTS'],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: ['its certificate is not trusted', 'trust its authority by NODE_EXTRA_CA_CERTS'],
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: ['its certificate is not trusted', 'trust its authority by NODE_EXTRA_CA_CERTS'],
  ERR_TLS_CERT_ALTNAME_INVALID: ['its certificate is for another host', 'check the endpoint'],
  ERR_SSL_WRONG_VERSION_NUMBER: ['it does not speak TLS', 'check whether the endpoint begins with http or https'],
};

const OF_TLS = /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(GET|VERIFY|DECRYPT)_|ERR_TLS_|ERR_SSL_|UND_ERR_PRX_TLS)/;
/** Before there is a connection. Other errors of TLS may end one that is there. */
const UNSENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_(CONNECT_TIMEOUT|INVALID_ARG|PRX_TLS)|ERR_SSL_WRONG_VERSION_NUMBER)|^(?!ERR_SSL_)(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_)/;
const UNDER_WAY = /^(ECONNRESET|EPIPE|HPE_|UND_ERR_(SOCKET|HEADERS_|BODY_|RES_|RESPONSE))/;

/** Errors are read through so many others that enclose them. */
const DEPTH_MAX = 5;

/** What an error that a request ended with says, whatever it is; never its own text, unless that is known to be harmless. */
export function failureOf(thrown: unknown): Failure {
  try {
    if (thrown instanceof NoAnswerError) {
      return { ...told(thrown.message), code: undefined, isLasting: false, mayHaveArrived: true, isUnsent: false };
    }
    if (thrown instanceof SetupError) {
      return { ...told(thrown.message), code: undefined, isLasting: true, mayHaveArrived: false, isUnsent: true };
    }
    const code = codeOf(thrown, DEPTH_MAX);
    if (isOfProxy(thrown)) return failureOfProxy(code);
    return tunnelFailure(thrown) ?? parserFailure(thrown) ?? failureOfCode(code);
  } catch {
    return failureOfCode(undefined);
  }
}

/** Whether the connection broke while a request was under way. */
export function isBreak(thrown: unknown): boolean {
  return /^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/.test(failureOf(thrown).code ?? '');
}

function failureOfCode(code: string | undefined): Failure {
  const isLasting = code !== undefined && OF_TLS.test(code);
  const known = code === undefined ? undefined : KNOWN[code];
  const [problem, advice] = known ?? [isLasting ? 'no secure connection can be made' : 'the request failed'];
  return {
    ...told(problem, advice, code === undefined ? ' without a reason' : ` (${code})`),
    code,
    isLasting,
    mayHaveArrived: code !== undefined && UNDER_WAY.test(code),
    isUnsent: code !== undefined && UNSENT.test(code),
  };
}

/** What is told of certificates is as true of a proxy's. */
function failureOfProxy(code: string | undefined): Failure {
  const failure = failureOfCode(code);
  if (failure.isLasting) return failure;
  const reason = code === undefined ? '' : ` (${code})`;
  const proxy = told('the proxy cannot be reached', 'check it, and HTTP_PROXY and HTTPS_PROXY', reason);
  return { ...failure, ...proxy, isUnsent: true };
}

/** The answer of a proxy is told in the text alone (undici lib/dispatcher/proxy-agent.js). */
function tunnelFailure(thrown: unknown): Failure | undefined {
  const [, status] = /^Proxy response \((\d{3})\)/.exec(textOf(thrown)) ?? [];
  if (status === undefined) return undefined;
  const isLasting = status.startsWith('4');
  const problem = status === '407' ? 'the proxy asks for authentication' : 'the proxy refuses to connect';
  const reason = ` (status ${status})`;
  return { ...told(problem, undefined, reason), code: undefined, isLasting, mayHaveArrived: false, isUnsent: true };
}

/**
 * Recognizes errors of undici's parser. These errors have no code, and their message may quote the response. A status
 * below 100 is an assertion error.
 */
function parserFailure(thrown: unknown): Failure | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const isAssertion = (thrown as { code?: unknown }).code === 'ERR_ASSERTION';
  if (thrown.name !== 'HTTPParserError' && !isAssertion) return undefined;
  const told = { detail: 'the answer is no HTTP', problem: 'the answer is no HTTP', advice: undefined };
  return { ...told, code: undefined, isLasting: false, mayHaveArrived: true, isUnsent: false };
}

function told(problem: string, advice?: string, reason = ''): Pick<Failure, 'detail' | 'problem' | 'advice'> {
  const detail = advice === undefined ? problem : `${problem}; ${advice}`;
  return { detail: `${detail}${reason}`, problem: `${problem}${reason}`, advice };
}

function textOf(thrown: unknown): string {
  return thrown instanceof Error ? String(thrown.message) : '';
}

/** A host with several addresses fails with several errors in one; wrappers keep theirs as `cause`. */
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
