import { describe, expect, test } from 'vitest';
import { NoResponseError } from '#src/http/errors.ts';
import { failureOf, isBreak } from '#src/http/failure.ts';
import { revokedProxy } from '../base/hostile.ts';

const coded = (code: string, message = 'to http://me:sk-secret@host') => Object.assign(new Error(message), { code });

const throwing = {
  get code() {
    throw new Error('sk-secret');
  },
};

/** `lasting`: fails until the configuration changes. `unsent`: no data was sent. `arrived`: data may have arrived. */
const codes: readonly (readonly [code: string, kind: string, detail: string])[] = [
  [
    'ECONNREFUSED',
    'unsent',
    'no program listens on this host and port; check the endpoint, and that the service runs (ECONNREFUSED)',
  ],
  ['ENOTFOUND', 'unsent', 'the host name is unknown; check the endpoint (ENOTFOUND)'],
  ['EAI_AGAIN', 'unsent', 'host names cannot be resolved at the moment (EAI_AGAIN)'],
  ['UND_ERR_CONNECT_TIMEOUT', 'unsent', 'the request failed (UND_ERR_CONNECT_TIMEOUT)'],
  ['CERT_HAS_EXPIRED', 'lasting unsent', 'the certificate has expired (CERT_HAS_EXPIRED)'],
  [
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'lasting unsent',
    'the certificate is self-signed; trust the certificate with NODE_EXTRA_CA_CERTS',
  ],
  [
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'lasting unsent',
    'the certificate is not trusted; add the certificate authority with',
  ],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'lasting unsent', 'the certificate is for another host; check the endpoint'],
  [
    'ERR_SSL_WRONG_VERSION_NUMBER',
    'lasting unsent',
    'the server does not use TLS; check whether the endpoint begins with',
  ],
  ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN', 'lasting', 'the TLS connection failed (ERR_SSL_SSLV3_'],
  ['ECONNRESET', 'arrived break', 'the request failed (ECONNRESET)'],
  ['EPIPE', 'arrived break', 'the request failed (EPIPE)'],
  ['UND_ERR_SOCKET', 'arrived break', 'the request failed (UND_ERR_SOCKET)'],
  ['UND_ERR_HEADERS_TIMEOUT', 'arrived', 'the request failed (UND_ERR_HEADERS_TIMEOUT)'],
  ['HPE_INVALID_CONSTANT', 'arrived', 'the request failed (HPE_INVALID_CONSTANT)'],
  ['ERR_STREAM_PREMATURE_CLOSE', 'arrived', 'the request failed (ERR_STREAM_PREMATURE_CLOSE)'],
  ['ERR_SOMETHING_NEW', '', 'the request failed (ERR_SOMETHING_NEW)'],
];

describe('the error of a request', () => {
  test.each(codes)('with code %s is "%s" and described by its code: %s', (code, kind, detail) => {
    const failure = failureOf(coded(code));
    const { isLasting, isUnsent, mayHaveArrived } = failure;
    const flags = { lasting: isLasting, unsent: isUnsent, arrived: mayHaveArrived, break: isBreak(coded(code)) };
    const set = Object.entries(flags).flatMap(([name, isSet]) => (isSet ? [name] : []));

    expect(set.join(' ')).toBe(kind);
    expect(failure).toMatchObject({ code, detail: expect.stringContaining(detail) });
    expect(failure.detail).not.toContain('secret');
  });

  test('has its problem and its advice apart, too', () => {
    const [problem, advice] = [
      'no program listens on this host and port (ECONNREFUSED)',
      'check the endpoint, and that the service runs',
    ];
    expect(failureOf(coded('ECONNREFUSED'))).toMatchObject({ problem, advice });
    expect(failureOf(new NoResponseError('late'))).toMatchObject({
      problem: 'late',
      detail: 'late',
      advice: undefined,
    });
  });

  test.each([
    ['a cause', new TypeError('fetch failed', { cause: coded('ECONNREFUSED') })],
    ['one of several', new AggregateError([new Error('no code'), coded('ECONNREFUSED')])],
    ['a cause of one of several', new Error('x', { cause: new AggregateError([{ cause: coded('ECONNREFUSED') }]) })],
  ])('has the code of %s', (_, error) => {
    expect(failureOf(error).code).toBe('ECONNREFUSED');
  });

  test.each([
    ['407', 'the proxy requires authentication (status 407)', true],
    ['403', 'the proxy refused to connect (status 403)', true],
    ['502', 'the proxy refused to connect (status 502)', false],
  ])('names the status %s of a proxy', (status, detail, isLasting) => {
    const error = coded('UND_ERR_ABORTED', `Proxy response (${status}) !== 200 when HTTP Tunneling`);
    expect(failureOf(error)).toMatchObject({ detail, isLasting });
  });

  const cyclic: Error & { cause?: unknown } = new Error('round');
  cyclic.cause = cyclic;
  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['text', 'sk-secret'],
    ['an error that encloses itself', cyclic],
    ['a code that is no code', coded('no key sk-secret')],
    ['a revoked proxy', revokedProxy()],
    ['a getter that throws', throwing],
  ])('without a code has no reason: %s', (_, thrown) => {
    const detail = 'the request failed for an unknown reason';
    const flags = { isLasting: false, mayHaveArrived: false, isUnsent: false };
    expect(failureOf(thrown)).toEqual({ detail, problem: detail, advice: undefined, code: undefined, ...flags });
  });

  test('without a code is named by its class', () => {
    const detail = 'the request failed for an unknown reason (TypeError)';
    expect(failureOf(new TypeError('sk-secret'))).toMatchObject({ detail });
  });
});
