import { describe, expect, test } from 'vitest';
import { isSecret, SecretNames } from '../../src/run/secret-names.ts';

const names = new SecretNames([], true);

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
  ])('is %s, whatever is under it', (key) => {
    expect(names.kindOf(key)).toBe('always');
  });

  test.each([
    'token',
    'access_token',
    'accessToken',
    'id-token',
    'refreshToken',
    'session',
    'user_session',
    'authtoken',
  ])('is %s, where text is under it', (key) => {
    expect(names.kindOf(key)).toBe('text');
  });

  test('is looked for at the end of a key of any length', () => {
    expect(names.kindOf(`${'x'.repeat(1_000_000)}_password`)).toBe('always');
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
    'tokens',
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
    expect(names.kindOf(key)).toBeUndefined();
  });
});

describe('a name of one’s own', () => {
  const own = new SecretNames(['ssn', 'Date of birth'], true);

  test.each(['ssn', 'SSN', 'customer_ssn', 'dateOfBirth', 'date-of-birth', 'patient.date_of_birth', 'password'])(
    'is found as %s, beside those of everybody',
    (key) => {
      expect(own.kindOf(key)).toBe('always');
    },
  );

  test.each(['ssn_valid', 'birth', 'of_birth', 'class'])('is not found as %s', (key) => {
    expect(own.kindOf(key)).toBeUndefined();
  });
});

test('where models answer in pieces of text, a token is one of them', () => {
  expect(new SecretNames([], false).kindOf('token')).toBeUndefined();
  expect(new SecretNames([], false).kindOf('password')).toBe('always');
});

describe('a value under such a name', () => {
  test.each<[string, 'always' | 'text', unknown, boolean]>([
    ['text', 'always', 'x', true],
    ['a number', 'always', 1234, true],
    ['an object', 'always', { user: 'a' }, true],
    ['a list', 'always', ['a=b'], true],
    ['null', 'always', null, false],
    ['a flag', 'always', true, false],
    ['empty text', 'always', '', false],
    ['the schema of a parameter', 'always', { type: 'string', description: 'yours' }, false],
    ['the schema of one that may be missing', 'always', { type: ['string', 'null'] }, false],
    ['an object that has a type of its own', 'always', { type: 'basic', value: 'x' }, true],
    ['text', 'text', 'x', true],
    ['a list', 'text', ['x'], true],
    ['a number', 'text', 7, false],
    ['an object', 'text', { id: 'x' }, false],
  ])('%s under a name that hides %s', (_, kind, value, expected) => {
    expect(isSecret(kind, value, {})).toBe(expected);
  });

  test('is a piece of text where its probability stands beside it', () => {
    expect(isSecret('text', 'Hello', { token: 'Hello', logprob: -0.1 })).toBe(false);
    expect(isSecret('always', 'hunter2', { password: 'hunter2', logprob: -0.1 })).toBe(true);
  });
});
