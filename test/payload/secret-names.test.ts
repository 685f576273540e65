import { describe, expect, test } from 'vitest';
import { redact } from '#src/payload/redaction/redact.ts';
import { serialize } from '#src/payload/serialize.ts';
import { LIMITS } from '../run/memory-sink.ts';

/** Whether a value under a key is masked. The default looks like a credential. */
function hides(key: string, value: unknown = 'k9Xw27abQ4', keys?: readonly string[]): boolean {
  const redaction = redact(keys === undefined ? {} : { keys });
  return serialize({ [key]: value }, { ...LIMITS, redaction }, ['inputs']).includes('[Redacted]');
}

const list = (text: string): string[] => text.split(/,\s+/);

const SECRET =
  list(`authorization, Authorization, proxy-authorization, cookie, Set-Cookie, cookies, x-api-key, api_key, apiKey, apikey,
  APIKey, OPENAI_API_KEY, openaiApiKey, secret, clientSecret, client_secret, clientsecret, password, db.password,
  userPassword, passwd, passphrase, private_key, privateKey, aws_secret_access_key, credential, awsCredentials,
  http.request.header.authorization, password:, token, access_token, accessToken, id-token, refreshToken, session,
  user_session, authtoken, password1, password_2, api_key_2, pwd, pass, smtp_pass, auth, jwt, csrf, otp, cvv,
  signature, x-hub-signature-256, connectionString, account_key, aws_access_key_id, access_tokens, tokens,
  x-goog-api-key, api-key, Ocp-Apim-Subscription-Key, PRIVATE-TOKEN, X-Amz-Security-Token, X-Vault-Token,
  X-CSRF-Token, X-XSRF-TOKEN, X-Shopify-Access-Token, password2, password_confirmation, passwordConfirmation,
  passwordConfirm, confirm_password, csrf_token, accessKeyId, secretAccessKey, sessionToken, id_token,
  NEXTAUTH_SECRET, bot_token, openAIApiKey, encryption_key, masterKey, oauth_token_secret, bearer, signing_key,
  auth_key, secret_key, access_key`);

/** Names of values that are no secrets. */
const OTHER = list(`token_count, max_tokens, maxTokens, total_tokens, input_tokens, prompt_tokens, usage tokens,
  completion_tokens_details, predicted_token, thoughtSignature, second_pass, compass, author, access_key_ids_count,
  stop_token, eos_token, bosToken, next_token, nextPageToken, new_token, time_to_first_token, cost_per_token,
  tokenizer, session_id, sessionId, session_name, sessions, thread_id, conversation_id, key, keys, cache_key,
  primary_key, public_key, idempotencyKey, monkey, turkey, secretary, secret_santa, cookie_policy, password_policy,
  authorized, authorization_url, obsession, content, role, name, max_completion_tokens, token_ids, authors,
  password_protected, idempotency_key`);

describe('a value is masked', () => {
  test.each(SECRET)('under `%s`', (key) => {
    expect(hides(key)).toBe(true);
  });

  test('under a name of a secret at the end of a key of any length', () => {
    expect(hides(`${'x'.repeat(1_000_000)}_password`)).toBe(true);
  });

  test('under a name that the application adds, in any spelling', () => {
    const own = ['ssn', 'Date of birth'];
    const found = list('ssn, SSN, customer_ssn, dateOfBirth, date-of-birth, patient.date_of_birth, password');
    expect(found.filter((key) => !hides(key, undefined, own))).toEqual([]);
    expect(list('ssn_valid, birth, of_birth, class').filter((key) => hides(key, undefined, own))).toEqual([]);
  });
});

describe('a value is kept', () => {
  test.each([...OTHER, ''])('under `%s`', (key) => {
    expect(hides(key)).toBe(false);
  });

  test('under `token` if its probability is beside it', () => {
    const value = { token: 'k9Xw27', logprob: -0.1, password: 'hunter2' };
    const json = serialize(value, { ...LIMITS, redaction: redact() }, ['inputs']);
    expect(JSON.parse(json)).toEqual({ ...value, password: '[Redacted]' });
  });
});

test.each<[what: string, key: string, value: unknown, isHidden: boolean]>([
  ['text', 'password', 'x', true],
  ['a number', 'password', 1234, true],
  ['an object', 'password', { user: 'a' }, true],
  ['a list', 'password', ['a=b'], true],
  ['null', 'password', null, false],
  ['a flag', 'password', true, false],
  ['empty text', 'password', '', false],
  ['the schema of a parameter', 'password', { type: 'string', description: 'yours' }, false],
  ['the schema of an optional parameter', 'password', { type: ['string', 'null'] }, false],
  ['an object with a type that is no schema', 'password', { type: 'basic', value: 'x' }, true],
  ['any text', 'access_token', 'x', true],
  ['a list', 'access_token', ['x'], true],
  ['a number', 'access_token', 7, true],
  ['an object', 'access_token', { id: 'x' }, true],
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
])('%s under `%s` is masked according to its form', (_, key, value, isHidden) => {
  expect(hides(key, value)).toBe(isHidden);
});
