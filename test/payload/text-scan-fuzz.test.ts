import fc from 'fast-check';
import { expect, test } from 'vitest';
import { defaultLimits } from '#src/config/limits.ts';
import { exactJson, parseExact } from '#src/payload/fields.ts';
import { defaultRedaction, redact } from '#src/payload/redaction/redact.ts';
import { mayBeMasked } from '#src/payload/redaction/text.ts';
import { encodePayload } from '#src/payload/serialize.ts';
import { recordableKind } from '#src/payload/text-scan.ts';
import { type PayloadRules, payloadRules } from '#src/payload/truncate.ts';
import { randomFrom } from '../faults/random.ts';
import { cases, seed } from '../support/campaign.ts';
import { KEPT, MASKED } from './redaction-cases.ts';

const CASES = cases(3_000);

const LIMITS = { depth: 6, width: 6, nodes: 24, bytes: 2_000 };
const RULES: readonly PayloadRules[] = [
  payloadRules(defaultLimits, defaultRedaction()),
  { ...LIMITS, redaction: defaultRedaction() },
  LIMITS,
  payloadRules(defaultLimits, redact({ keys: ['messages', 'value', 'content'] })),
];

const TABLE = [...MASKED, ...KEPT].map((row) => row[1]);
const KEYS = [
  ...['a', 'b', 'content', 'role', 'name', 'value', 'key', 'Name', 'Value', 'headers', 'rawHeaders', 'token', 'tokens'],
  ...['password', 'api_key', 'max_tokens', 'signature', 'session', 'secret', 'id_token', 'logprob', 'type', 'cookie'],
  ...['toJSON', '__proto__', 'constructor', '', 'a"b', 'é', 'api_key\n', 'x'.repeat(70), 'https://a.b/?api_key=1'],
];
/** Texts that are no numbers of JSON, or that JavaScript writes in another way. */
const NUMBERS = '01 1. .5 - +1 1e999 1e NaN nul 1.0'.split(' ');
const PAIR_KEYS = ['name', 'value', 'key', 'Name', 'Value', 'Key'];
const PAIR_STRINGS = ['api_key', 'api_key\n', 'harmless', 'k9Xw27abQ4k9Xw27'];
const STRINGS = [
  ...['', 'short', 'Hello, world.', 'k9Xw27abQ4k9Xw27', 'Authorization: Bearer k9Xw27abQ4'],
  ...['GET /?token=k9Xw27abQ4 HTTP/1.1', '/login?password=k9Xw27abQ4', 'https://ada:k9Xw27abQ4@example.com/'],
  ...['see https://e.com/?api_key=k9Xw27abQ4', 'https://e.com/é?api_key=k9Xw27abQ4', '{"password":"k9Xw27abQ4"}'],
  ...['["password","k9Xw27abQ4"]', ' {"a":1}', '"{\\"otp\\":\\"k9Xw27abQ4\\"}"', '\ufeff{"otp":"123456"}'],
  ...['line\nline\ttab', '\n\nHello there', '"quoted" text', 'back\\slash', 'é漢字😀', '\ud800 lone'],
  ...['control \u0001', 'api_key', 'x-api-key: k9Xw27abQ4', 'password', 'data:text/plain,short'],
  `data:image/png;base64,${'A'.repeat(1_100)}`,
];

/** Returns whole numbers below its argument. */
type Random = (below: number) => number;

const oneOf = <Value>(random: Random, values: readonly Value[]): Value => values[random(values.length)] as Value;

/** Returns JSON text with the features of the source, and with errors. */
function jsonText(random: Random, isPlain: boolean, levels = 5): string {
  const gap = (): string => (isPlain || random(12) > 0 ? '' : oneOf(random, [' ', ' ', '  ', '\n']));
  const list = (open: string, close: string, items: string[]): string =>
    `${open}${gap()}${items.join(`${gap()},${gap()}`)}${gap()}${close}`;
  const text = (value: string): string => {
    const json = JSON.stringify(value);
    if (isPlain || random(8) > 0) return json;
    return json.replace(/[a-zA-Z/:é]/g, (letter) =>
      random(4) > 0 ? letter : letter === '/' ? '\\/' : `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  };
  const count = random(5);
  const isPair = random(4) === 0;
  switch (levels === 0 ? random(4) + 4 : levels === 5 ? random(2) : random(9)) {
    case 0:
    case 2: {
      const keys = Array.from({ length: count }, () => oneOf(random, isPair ? PAIR_KEYS : KEYS));
      const members = (isPlain ? [...new Set(keys)] : keys).map(
        (key) => `${text(key)}${gap()}:${gap()}${jsonText(random, isPlain, levels - 1)}`,
      );
      return list('{', '}', members);
    }
    case 1:
    case 3:
      return list(
        '[',
        ']',
        Array.from({ length: count }, () => jsonText(random, isPlain, levels - 1)),
      );
    case 4:
      return oneOf(random, ['true', 'false', 'null', '0', '-1', '12.5', '1500', '1e3', '1e-7', '123456']);
    case 5:
      if (!isPlain) return oneOf(random, ['', '9'.repeat(400), `${'9'.repeat(250)}e99`, ...NUMBERS]);
      return '7';
    case 6:
      return JSON.stringify(oneOf(random, TABLE)) ?? 'null';
    default:
      return text(oneOf(random, random(3) === 0 ? PAIR_STRINGS : STRINGS));
  }
}

function damaged(random: Random, text: string): string {
  const at = random(text.length + 1);
  const added = oneOf(random, ['', '', '"', '\\', ',', '{', ']', ':', '\t', '\u2028', text.charAt(at)]);
  return text.slice(0, at) + added + text.slice(at + random(2));
}

/** The number of keys in JSON text, where duplicates count. */
function keysIn(text: string): number {
  return (
    text.replace(/"(?:[^"\\]|\\.)*"(\s*:)?/gs, (_, colon) => (colon === undefined ? '' : 'K')).split('K').length - 1
  );
}

function keysOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum: number, inner) => sum + keysOf(inner), own);
}

test('JSON text that is recorded unchanged is valid, within the limits and without secrets', () => {
  const fraction = randomFrom(seed());
  const random: Random = (below) => Math.floor(fraction() * below);
  let unchanged = 0;
  for (let at = 0; at < CASES; at++) {
    const isPlain = random(2) === 0;
    const whole = jsonText(random, isPlain);
    const text = random(4) === 0 ? damaged(random, whole) : whole;
    const rules = oneOf(random, RULES);
    const found = recordableKind(text, 'inputs', 'input', rules);
    if (found === undefined) continue;
    unchanged++;
    const value = parseExact<unknown>(text);
    const recorded = found === 'object' ? value : { [found === 'messages' ? found : 'input']: value };
    const isMessages =
      Array.isArray(value) &&
      value.length > 0 &&
      value.every((item) => item && !Array.isArray(item) && typeof item === 'object' && 'role' in item);
    expect([found, text]).toEqual([Array.isArray(value) ? (isMessages ? 'messages' : 'list') : 'object', text]);
    const { json, attachments } = encodePayload('inputs', recorded, { payload: rules, attachmentBytes: 1_000_000 });
    expect([json, attachments, text]).toEqual([exactJson(recorded), undefined, text]);
    expect([keysOf(JSON.parse(text)), text]).toEqual([keysIn(text), text]);
  }
  expect(unchanged).toBeGreaterThan(CASES / 100);
});

/** The start of a URL path, of JSON text, of header lines, or of a request or status line, with the escapes of JSON text. */
const MASKABLE = /^(?:[/?]|(?:\s|\\["bfnrt])*(?:[{[]|\\[\\u])|[A-Za-z][\w-]{0,63}: |[A-Z]{3,7}[ /])/;

test('a string in JSON text may be masked if it has the start of a text that may contain names', () => {
  const name = fc.stringMatching(/^[A-Za-z]{0,2}[\w-]{60,66}$/);
  const start = fc.stringMatching(/^[A-Z]{0,9}[a-z]{0,2}[\w :/?\\"{[#.\n\u00a0é-]{0,9}$/);
  const text = fc.tuple(fc.oneof(name, start), fc.constantFrom('', ':', ': ', ' ', '/', '\\n', '\\"['), start);
  const property = fc.property(text, (parts) => {
    const json = `"${parts.join('')}`;
    expect(mayBeMasked(json, 1)).toBe(MASKABLE.test(json.slice(1)));
  });
  fc.assert(property, { numRuns: cases(20_000) });
});
