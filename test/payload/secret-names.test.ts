import { describe, expect, test } from 'vitest';
import { SecretNames } from '../../src/payload/secret-names.ts';

const names = new SecretNames([], true);
/** Whether a text that looks like a credential is hidden under a key. */
const hides = (key: string, by = names): boolean => by.hides(key, 'k9Xw27abQ4', {});

describe('a name of secrets', () => {
  test.each([
    'authorization',
    'Authorization',
    'proxy-authorization',
    'cookie',
    'Set-Cookie',
    'cookies',
    'x-api-key',
    'api_key',
    'apiKey',
    'apikey',
    'APIKey',
    'OPENAI_API_KEY',
    'openaiApiKey',
    'secret',
    'clientSecret',
    'client_secret',
    'clientsecret',
    'password',
    'db.password',
    'userPassword',
    'passwd',
    'passphrase',
    'private_key',
    'privateKey',
    'aws_secret_access_key',
    'credential',
    'awsCredentials',
    'http.request.header.authorization',
    'password:',
    'token',
    'access_token',
    'accessToken',
    'id-token',
    'refreshToken',
    'session',
    'user_session',
    'authtoken',
    'password1',
    'password_2',
    'api_key_2',
    'pwd',
    'pass',
    'smtp_pass',
    'auth',
    'jwt',
    'csrf',
    'otp',
    'cvv',
    'signature',
    'x-hub-signature-256',
    'connectionString',
    'account_key',
    'aws_access_key_id',
    'access_tokens',
    'tokens',
  ])('is %s', (key) => {
    expect(hides(key)).toBe(true);
  });

  test('is looked for at the end of a key of any length', () => {
    expect(hides(`${'x'.repeat(1_000_000)}_password`)).toBe(true);
  });
});

describe('a name of something else', () => {
  test.each([
    'token_count',
    'max_tokens',
    'maxTokens',
    'total_tokens',
    'input_tokens',
    'prompt_tokens',
    'completion_tokens_details',
    'usage tokens',
    'predicted_token',
    'thoughtSignature',
    'second_pass',
    'compass',
    'author',
    'access_key_ids_count',
    'stop_token',
    'eos_token',
    'bosToken',
    'next_token',
    'nextPageToken',
    'new_token',
    'time_to_first_token',
    'cost_per_token',
    'tokenizer',
    'session_id',
    'sessionId',
    'session_name',
    'sessions',
    'thread_id',
    'conversation_id',
    'key',
    'keys',
    'cache_key',
    'primary_key',
    'public_key',
    'idempotencyKey',
    'monkey',
    'turkey',
    'secretary',
    'secret_santa',
    'cookie_policy',
    'password_policy',
    'authorized',
    'authorization_url',
    'obsession',
    'content',
    'role',
    'name',
    '',
  ])('is %s', (key) => {
    expect(hides(key)).toBe(false);
  });
});

describe('a name of one’s own', () => {
  const own = new SecretNames(['ssn', 'Date of birth'], true);

  test.each(['ssn', 'SSN', 'customer_ssn', 'dateOfBirth', 'date-of-birth', 'patient.date_of_birth', 'password'])(
    'is found as %s, beside those of everybody',
    (key) => {
      expect(hides(key, own)).toBe(true);
    },
  );

  test.each(['ssn_valid', 'birth', 'of_birth', 'class'])('is not found as %s', (key) => {
    expect(hides(key, own)).toBe(false);
  });
});

test('where models answer in pieces of text, a token is one of them', () => {
  const besideText = new SecretNames([], false);
  expect(hides('token', besideText)).toBe(false);
  expect(hides('password', besideText)).toBe(true);
});

describe('a value under such a name', () => {
  test.each<[what: string, key: string, value: unknown, isHidden: boolean]>([
    ['text', 'password', 'x', true],
    ['a number', 'password', 1234, true],
    ['an object', 'password', { user: 'a' }, true],
    ['a list', 'password', ['a=b'], true],
    ['null', 'password', null, false],
    ['a flag', 'password', true, false],
    ['empty text', 'password', '', false],
    ['the schema of a parameter', 'password', { type: 'string', description: 'yours' }, false],
    ['the schema of one that may be missing', 'password', { type: ['string', 'null'] }, false],
    ['an object that has a type of its own', 'password', { type: 'basic', value: 'x' }, true],
    ['any text', 'access_token', 'x', true],
    ['a list', 'access_token', ['x'], true],
    ['a number', 'access_token', 7, false],
    ['an object', 'access_token', { id: 'x' }, false],
    ['one word', 'secret', 'swordfish', true],
    ['prose', 'secret', 'the butler did it', false],
    ['a number of four digits', 'secret', 1234, true],
    ['a count', 'pass', 12, false],
    ['one word', 'session', 'breakfast', false],
    ['a credential within words', 'session', 'Bearer k9Xw27', true],
    ['an object with an id', 'session', { id: 'k9Xw27abQ4', turns: 2 }, false],
    ['a list with a credential', 'session', ['k9Xw27abQ4'], true],
    ['an object with a credential', 'tokens', { access: 'k9Xw27abQ4' }, true],
    ['an object of counts', 'tokens', { input: 3 }, false],
    ['an instance of a class', 'session', new Map([['a', 'b']]), true],
  ])('%s under `%s`', (_, key, value, isHidden) => {
    expect(names.hides(key, value, {})).toBe(isHidden);
  });

  test('is a piece of text where its probability stands beside it', () => {
    expect(names.hides('token', 'k9Xw27', { token: 'k9Xw27', logprob: -0.1 })).toBe(false);
    expect(names.hides('password', 'hunter2', { password: 'hunter2', logprob: -0.1 })).toBe(true);
  });

  test('is not read from a getter', () => {
    const value = {
      get access() {
        throw new Error('read');
      },
    };
    expect(names.hides('tokens', value, {})).toBe(false);
  });
});
