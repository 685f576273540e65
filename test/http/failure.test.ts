import { describe, expect, test } from 'vitest';
import { failureOf, isBreak, NoAnswerError } from '../../src/http/errors.ts';
import { revokedProxy } from '../base/hostile.ts';

const coded = (code: string, message = 'to http://me:sk-secret@host') => Object.assign(new Error(message), { code });

describe('an error of a request', () => {
  test.each([
    ['ECONNREFUSED', 'nothing listens there; check the endpoint, and that the service runs (ECONNREFUSED)'],
    ['ENOTFOUND', 'the name of the host is not known; check the endpoint (ENOTFOUND)'],
    ['ECONNRESET', 'the request failed (ECONNRESET)'],
    ['ERR_SSL_SOMETHING_NEW', 'no secure connection can be made (ERR_SSL_SOMETHING_NEW)'],
  ])('with code %s is told by the code and what to do, never by its text', (code, detail) => {
    expect(failureOf(coded(code))).toMatchObject({ code, detail });
  });

  test('is told in two as well, what is the matter and what to do', () => {
    const [problem, advice] = ['nothing listens there (ECONNREFUSED)', 'check the endpoint, and that the service runs'];
    expect(failureOf(coded('ECONNREFUSED'))).toMatchObject({ problem, advice });
    expect(failureOf(new NoAnswerError('late'))).toMatchObject({ problem: 'late', advice: undefined });
  });

  test.each([
    ['a cause', new TypeError('fetch failed', { cause: coded('ECONNREFUSED') })],
    ['one of several', new AggregateError([new Error('no code'), coded('ECONNREFUSED')])],
    ['a cause of one of several', new Error('x', { cause: new AggregateError([{ cause: coded('ECONNREFUSED') }]) })],
  ])('is told by the code of %s', (_, error) => {
    expect(failureOf(error).code).toBe('ECONNREFUSED');
  });

  test('that encloses itself has no code', () => {
    const error: Error & { cause?: unknown } = new Error('round');
    error.cause = error;
    expect(failureOf(error)).toMatchObject({ code: undefined, detail: 'the request failed without a reason' });
  });

  test.each([
    ['CERT_HAS_EXPIRED', true],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', true],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', true],
    ['ERR_TLS_CERT_ALTNAME_INVALID', true],
    ['ERR_SSL_WRONG_VERSION_NUMBER', true],
    ['ENOTFOUND', false],
    ['EAI_AGAIN', false],
    ['ECONNREFUSED', false],
  ])('with code %s lasts: %s', (code, isLasting) => {
    expect(failureOf(coded(code)).isLasting).toBe(isLasting);
  });

  test.each([
    ['ECONNRESET', true, true],
    ['EPIPE', true, true],
    ['UND_ERR_SOCKET', true, true],
    ['UND_ERR_HEADERS_TIMEOUT', true, false],
    ['HPE_INVALID_CONSTANT', true, false],
    ['ECONNREFUSED', false, false],
    ['UND_ERR_CONNECT_TIMEOUT', false, false],
  ])('with code %s may come after the request has arrived: %s, by a break: %s', (code, mayHaveArrived, is) => {
    expect([failureOf(coded(code)).mayHaveArrived, isBreak(coded(code))]).toEqual([mayHaveArrived, is]);
  });

  test.each([
    ['ECONNREFUSED', true],
    ['ENOTFOUND', true],
    ['UND_ERR_CONNECT_TIMEOUT', true],
    ['CERT_HAS_EXPIRED', true],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', true],
    ['ERR_SSL_WRONG_VERSION_NUMBER', true],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN', false],
    ['ECONNRESET', false],
    ['ETIMEDOUT', false],
    ['ERR_SOMETHING_NEW', false],
  ])('with code %s tells that nothing was sent: %s', (code, isUnsent) => {
    expect(failureOf(coded(code)).isUnsent).toBe(isUnsent);
    expect(failureOf(new Error('no code')).isUnsent).toBe(false);
  });

  test.each([
    ['407', 'the proxy asks for authentication (status 407)', true],
    ['403', 'the proxy refuses to connect (status 403)', true],
    ['502', 'the proxy refuses to connect (status 502)', false],
  ])('of a proxy that answers with %s says so', (status, detail, isLasting) => {
    const error = coded('UND_ERR_ABORTED', `Proxy response (${status}) !== 200 when HTTP Tunneling`);
    expect(failureOf(error)).toMatchObject({ detail, isLasting });
  });

  test('of our own is told as it is', () => {
    expect(failureOf(new NoAnswerError('no answer within 5 ms')).detail).toBe('no answer within 5 ms');
  });

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['text', 'sk-secret'],
    ['a code that is a text of its own', coded('no key sk-secret')],
    ['a revoked proxy', revokedProxy()],
    [
      'a getter that throws',
      {
        get code() {
          throw new Error('sk-secret');
        },
      },
    ],
  ])('may be %s', (_, thrown) => {
    expect(failureOf(thrown)).toEqual({
      detail: 'the request failed without a reason',
      problem: 'the request failed without a reason',
      advice: undefined,
      code: undefined,
      isLasting: false,
      mayHaveArrived: false,
      isUnsent: false,
    });
  });
});
