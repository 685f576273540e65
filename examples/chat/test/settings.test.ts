import { describe, expect, test } from 'vitest';
import { readSettings, SettingsError } from '../server/settings.ts';

const usual = {
  host: '127.0.0.1',
  port: 4_888,
  allowedHosts: [],
  data: undefined,
  postgres: undefined,
  redis: undefined,
  docs: undefined,
  wordDelayMs: 20,
  tracePort: 4_777,
};

test('without a word the chat is for this machine, and in memory', () => {
  expect(readSettings([], {})).toEqual(usual);
});

test('what is given on the command line comes before the environment', () => {
  const env = { CHAT_POSTGRES_URL: 'postgres://env', CHAT_REDIS_URL: 'redis://env' };
  expect(readSettings([], env)).toEqual({ ...usual, postgres: 'postgres://env', redis: 'redis://env' });
  const argv = [
    '--postgres',
    'postgres://given',
    '--port=0',
    '--data',
    'd',
    '--docs',
    'm',
    '--host',
    '::1',
    '--word-delay',
    '0',
    '--trace-port',
    '1',
  ];
  expect(readSettings(argv, env)).toEqual({
    host: '::1',
    port: 0,
    allowedHosts: [],
    data: 'd',
    postgres: 'postgres://given',
    redis: 'redis://env',
    docs: 'm',
    wordDelayMs: 0,
    tracePort: 1,
  });
  expect(readSettings([], { CHAT_REDIS_URL: '' })).toEqual(usual);
});

test('allowed host names are given in repeated options, or comma-separated in the environment', () => {
  const env = { CHAT_ALLOWED_HOSTS: 'a.example, b.example,' };
  expect(readSettings([], env)).toEqual({ ...usual, allowedHosts: ['a.example', 'b.example'] });
  const argv = ['--allow-host', 'c.example', '--allow-host=d.example'];
  expect(readSettings(argv, env)).toEqual({ ...usual, allowedHosts: ['c.example', 'd.example'] });
});

test('help is no settings', () => {
  expect(readSettings(['--help'], {})).toBeUndefined();
  expect(readSettings(['-h'], {})).toBeUndefined();
});

describe('what cannot be used is named', () => {
  const cases: [string[], string | RegExp][] = [
    [['--port', 'x'], '--port has to be a whole number from 0 to 65535; it is "x"'],
    [['--port', '65536'], '--port has to be a whole number from 0 to 65535; it is "65536"'],
    [['--port='], '--port has to be a whole number from 0 to 65535; it is ""'],
    [['--word-delay', '10001'], '--word-delay has to be a whole number from 0 to 10000; it is "10001"'],
    [['--nothing'], /'--nothing'/],
    [['question'], /'question'/],
    [['--word-delay', '-1'], '--word-delay has to be a whole number from 0 to 10000; it is "-1"'],
    [['--port=1', '-1'], /^Unknown option '-1'; --help lists the options$/],
    [['--data'], /^--data needs a value; --help lists the options$/],
    [['--data', '--port'], /^--data needs a value; --help lists the options$/],
    [['--word-delay', '-x'], /^--word-delay needs a value; --help lists the options$/],
    [['question'], /^Unexpected argument 'question'; --help lists the options$/],
    [['--host='], '--host needs a value'],
    [['--data', ''], '--data needs a value'],
    [['--postgres', ''], '--postgres needs a value'],
    [['--redis', ''], '--redis needs a value'],
    [['--docs', ''], '--docs needs a value'],
  ];
  test.each(cases)('%j', (argv, message) => {
    expect(() => readSettings(argv, {})).toThrow(SettingsError);
    expect(() => readSettings(argv, {})).toThrow(message);
  });
});

describe('an address of a service that cannot be used is refused before anybody asks it', () => {
  const begins = 'OPENAI_BASE_URL has to be an address that begins with http:// or https://';
  test.each([
    ['nonsense', begins],
    ['ftp://host/v1', begins],
    ['localhost:11434/v1', begins],
    ['http://user@host/v1', /^OPENAI_BASE_URL has a user or a password, .*OPENAI_API_KEY$/],
    ['http://:word@host/v1', /^OPENAI_BASE_URL has a user or a password, .*OPENAI_API_KEY$/],
  ])('%s', (address, message) => {
    expect(() => readSettings([], { OPENAI_BASE_URL: address })).toThrow(SettingsError);
    expect(() => readSettings([], { OPENAI_BASE_URL: address })).toThrow(message);
  });

  test.each(['', 'http://127.0.0.1:11434/v1', 'https://host/v1?version=1'])('%j can be used', (address) => {
    expect(readSettings([], { OPENAI_BASE_URL: address })).toEqual(usual);
  });
});
