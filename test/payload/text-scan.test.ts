import { expect, test } from 'vitest';
import { defaultLimits } from '#src/config/limits.ts';
import { defaultRedaction, redact } from '#src/payload/redaction/redact.ts';
import { recordableKind } from '#src/payload/text-scan.ts';
import { payloadRules } from '#src/payload/truncate.ts';

const SECRET = 'k9Xw27abQ4k9Xw27';
const rules = payloadRules(defaultLimits, defaultRedaction());
const found = (text: string) => recordableKind(text, 'inputs', 'input', rules);

test.each([
  ['{}', 'object'],
  ['{ "a": 1.0, "b": [true, false, null, -1e-7] } ', 'object'],
  ['[]', 'list'],
  ['[1, "two"]', 'list'],
  ['[{"role":"user","content":"Hi"},{"content":"Ho","role":"assistant"}]', 'messages'],
  ['[{"role":"user"},{"content":"Ho"}]', 'list'],
  ['[["role","x"]]', 'list'],
  ['{"text":"line\\n\\"quoted\\" \\\\ \\u00e9"}', 'object'],
  ['{"a":{"a":{"a":1},"b":2},"b":3}', 'object'],
  ['{"name":"city","value":"Paris in the spring"}', 'object'],
  ['{"arguments":"{\\"city\\":\\"Paris\\"}"}', 'object'],
  ['{"max_tokens":100,"password":null,"token":true,"headers":{"accept":"text/plain"}}', 'object'],
])('JSON text that is recorded unchanged: %s', (text, kind) => expect(found(text)).toBe(kind));

test.each([
  ['is no object or list', '"text"'],
  ['is invalid', '{"a":1,}'],
  ['has text behind it', '{} x'],
  ['is indented', '{\n  "a": 1\n}'],
  ['has the same key twice', '{"a":1,"b":{"a":1},"a":2}'],
  ['has an escaped key', '{"\\u0061pi_key":1}'],
  ['has escaped letters', '{"a":"\\u0061"}'],
  ['has an escaped surrogate', '{"a":"\\ud800"}'],
  ['has an infinite number', '{"a":1e999}'],
  ['has a secret', `{"password":"${SECRET}"}`],
  ['has a secret in JSON text', JSON.stringify({ a: JSON.stringify({ password: SECRET }) })],
  ['has a secret after a line feed in JSON text', JSON.stringify({ a: JSON.stringify(`\n{"password":"${SECRET}"}`) })],
  ['has a secret after a form feed', JSON.stringify({ a: `\f{"password":"${SECRET}"}` })],
  ['has a secret after an escaped line feed', `{"a":"\\u000A{\\"password\\":\\"${SECRET}\\"}"}`],
  ['has a secret after an escaped brace', `{"a":"\\u007B\\"password\\":\\"${SECRET}\\"}"}`],
  ['has a secret after an escaped slash', `{"a":"\\/login?user=ada&password=${SECRET}"}`],
  ['has a secret after an escaped question mark', `{"a":"\\u003fuser=ada&password=${SECRET}"}`],
  ['has a secret in a header line', `{"a":"Authorization: Bearer ${SECRET}"}`],
  ['has a secret in a URL', `{"a":"see https://example.com/?api_key=${SECRET}"}`],
  ['has a secret in a URL with an escape', `{"a":"https://example.com/caf\\u00e9?api_key=${SECRET}"}`],
  ['has a secret in a pair', `["api_key","${SECRET}"]`],
  ['has a secret with its name', `{"value":"${SECRET}","name":"api_key"}`],
  ['has a secret with two names', `{"name":"api_key","key":"harmless","value":"${SECRET}"}`],
  ['has a list of headers', `{"headers":["authorization","${SECRET}"]}`],
  ['has a file', `{"a":"data:image/png;base64,${'A'.repeat(1_100)}"}`],
  ['is nested too deeply', `${'{"a":'.repeat(40)}1${'}'.repeat(40)}`],
])('JSON text that is parsed because it %s', (_, text) => expect(found(text)).toBeUndefined());

test.each([
  ['inputs', '{"a":"b"}'],
  ['inputs', '["a"]'],
  ['input', '["a"]'],
  ['messages', '[{"role":"user"}]'],
  ['value', '{"value":"b"}'],
])('JSON text is parsed if the application names %s a secret, which contains %s', (name, text) => {
  const own = payloadRules(defaultLimits, redact({ keys: [name] }));
  expect(recordableKind(text, 'inputs', 'input', own)).toBeUndefined();
});

test('JSON text with more new keys than the scan can remember is parsed, and the scan then forgets all keys', () => {
  const keysOf = (from: number) => Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`key ${from + at}`, at]));
  const kinds = [0, 1_000, 2_000, 3_000, 4_000, 0].map((from) => found(JSON.stringify(keysOf(from))));
  expect(kinds).toEqual(['object', 'object', undefined, 'object', 'object', undefined]);
});
