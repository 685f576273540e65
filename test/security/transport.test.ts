import { parseSync } from 'oxc-parser';
import { describe, expect, test } from 'vitest';
import { resolveSettings } from '#src/config/options.ts';
import { filesUnder, read } from '../package/repository.ts';
import { environmentOf } from '../support/environment.ts';
import { logLines } from '../support/log-lines.ts';

const warnings = (lines: readonly string[]): string[] => lines.filter((line) => !line.startsWith('debug: '));

describe('the key', () => {
  test.each([
    ['http://127.0.0.1', true],
    ['http://127.255.255.254:1', true],
    ['http://2130706433', true],
    ['http://0x7f.1', true],
    ['http://0177.0.0.1', true],
    ['http://LOCALHOST', true],
    ['http://[::1]', true],
    ['http://[0:0:0:0:0:0:0:1]', true],
    ['https://service.example', true],
    ['http://service.example', false],
    ['http://localhost.evil.com', false],
    ['http://127.0.0.1.evil.com', false],
    ['http://localhost.', false],
    ['http://128.0.0.1', false],
    ['http://0.0.0.0', false],
    ['http://10.0.0.1', false],
    ['http://169.254.169.254', false],
    ['http://[::]', false],
    ['http://[::ffff:10.0.0.1]', false],
    ['http://127-0-0-1.evil.com', false],
    ['http://2130706434.evil.com', false],
    ['http://１２７.0.0.1.evil.com', false],
  ])('is sent to %s: %s [security 5]', (endpoint, isSent) => {
    environmentOf();
    const lines = logLines();
    const settings = resolveSettings({
      endpoint,
      apiKey: 'sk-key',
      log: (level, line) => lines.push(`${level}: ${line}`),
    });
    expect(settings?.headers['x-api-key']).toBe(isSent ? 'sk-key' : undefined);
    const { origin } = new URL(endpoint);
    const line = `warn: configuration: the API key is not sent to ${origin} over plain HTTP; use https, or set \`allowInsecure\`.`;
    expect(warnings(lines)).toEqual(isSent ? [] : [line]);
  });

  test('is sent over plain HTTP to other hosts only if `allowInsecure` or its variable is true [security 5]', () => {
    const keyWith = (allowInsecure: unknown, environment: Record<string, string> = {}) => {
      environmentOf(environment);
      logLines();
      const options = {
        endpoint: 'http://service.example',
        apiKey: 'sk-key',
        allowInsecure: allowInsecure as boolean,
        log: () => {},
      };
      return resolveSettings(options)?.headers['x-api-key'];
    };
    expect([keyWith(true), keyWith(undefined, { RUNSPAN_ALLOW_INSECURE: 'true' })]).toEqual(['sk-key', 'sk-key']);
    for (const other of [undefined, false, null, {}, [], 'maybe', 0, Number.NaN])
      expect(keyWith(other)).toBeUndefined();
    expect(keyWith(undefined, { RUNSPAN_ALLOW_INSECURE: 'maybe' })).toBeUndefined();
  });
});

describe('TLS', () => {
  test('is not weakened by any option in the source [security 6]', () => {
    const weakened = filesUnder('src', '.ts').filter((file) => {
      const { program } = parseSync(file, read(`src/${file}`), { sourceType: 'module' });
      const code = JSON.stringify(program);
      return /"(?:rejectUnauthorized|checkServerIdentity|secureProtocol|ciphers|minVersion|insecureHTTPParser)"/.test(
        code,
      );
    });
    expect(weakened).toEqual([]);
  });

  test.each([
    ['0', 'https://service.example', 1],
    ['1', 'https://service.example', 0],
    ['0', 'http://127.0.0.1', 0],
  ])('logs NODE_TLS_REJECT_UNAUTHORIZED=%s with %s in %i lines [security 6]', (value, endpoint, count) => {
    environmentOf({ NODE_TLS_REJECT_UNAUTHORIZED: value });
    const lines = logLines();
    resolveSettings({ endpoint, log: (level, line) => lines.push(`${level}: ${line}`) });
    expect(lines.filter((line) => line.includes('NODE_TLS_REJECT_UNAUTHORIZED'))).toHaveLength(count);
  });
});
