import { expect, test } from 'vitest';
import type { Step } from '#src/payload/redaction/paths.ts';
import { redact } from '#src/payload/redaction/redact.ts';
import { serialize } from '#src/payload/serialize.ts';
import { LIMITS } from '../run/memory-sink.ts';
import { logLines } from '../support/log-lines.ts';

/** Whether a value that is reached by these steps is masked. An undefined step is an item whose index is unknown. */
function isMasked(paths: readonly string[], steps: readonly (Step | undefined)[]): boolean {
  const known = steps.lastIndexOf(undefined) + 1 || 1;
  const value = steps
    .slice(known)
    .reduceRight<unknown>(
      (inner, step) => (typeof step === 'number' ? [...new Array(step).fill(0), inner] : { [String(step)]: inner }),
      'shown',
    );
  const rules = { ...LIMITS, redaction: redact({ paths }) };
  return !serialize(value, rules, steps.slice(0, known)).includes('shown');
}

test.each<[string, (Step | undefined)[], boolean]>([
  ['inputs.user.email', ['inputs', 'user', 'email'], true],
  ['inputs.user.email', ['inputs', 'user'], false],
  ['inputs.user.email', ['outputs', 'user', 'email'], false],
  ['inputs.user', ['inputs', 'user', 'email'], true],
  ['inputs', ['inputs'], true],
  ['inputs.*.email', ['inputs', 'user', 'email'], true],
  ['inputs.*.email', ['inputs', 0, 'email'], true],
  ['inputs.*.email', ['inputs', 'email'], false],
  ['inputs.*.email', ['inputs', 'a', 'b', 'email'], false],
  ['outputs.**.page', ['outputs', 'page'], true],
  ['outputs.**.page', ['outputs', 'a', 3, 'b', 'page'], true],
  ['outputs.**.page', ['outputs', 'a', 'b'], false],
  ['outputs.**.a.**.b', ['outputs', 'a', 'x', 'a', 'b'], true],
  ['outputs.**.a.**.b', ['outputs', 'b', 'a'], false],
  ['**.email', ['metadata', 'email'], true],
  ['**.email', ['events', 7, 'kwargs', 'to', 'email'], true],
  ['*.email', ['inputs', 'email'], true],
  ['inputs.**', ['inputs', 'a', 'b'], true],
  ['events.*.kwargs.x', ['events', 2, 'kwargs', 'x'], true],
  ['events[*].kwargs.x', ['events', undefined, 'kwargs', 'x'], true],
  ['events.**.x', ['events', undefined, 'kwargs', 'x'], true],
  ['inputs.messages[*].content', ['inputs', 'messages', 4, 'content'], true],
  ['inputs.messages.[*].content', ['inputs', 'messages', 4, 'content'], true],
  ['inputs.messages[*].content', ['inputs', 'messages', 'last', 'content'], false],
  ['inputs.messages[1].content', ['inputs', 'messages', 1, 'content'], true],
  ['inputs.messages[1].content', ['inputs', 'messages', 2, 'content'], false],
  ['inputs.messages.1.content', ['inputs', 'messages', 1, 'content'], true],
  ['inputs.messages[1].content', ['inputs', 'messages', undefined, 'content'], true],
  ['tags.1', ['tags', undefined], true],
  ['tags[*]', ['tags', undefined], true],
  ['attachments.*', ['attachments', undefined], true],
  ['attachments.**', ['attachments', undefined], true],
  ['error.**', ['error'], true],
  ['**.email', ['tags', undefined], false],
  ['inputs["a.b"].c', ['inputs', 'a.b', 'c'], true],
  ['inputs["a.b"].c', ['inputs', 'a', 'b', 'c'], false],
  ['inputs.__proto__.constructor', ['inputs', '__proto__', 'constructor'], true],
  ['metadata.user-id', ['metadata', 'user-id'], true],
])('the path %s leads to %j: %s', (path, steps, expected) => {
  expect(isMasked([path], steps)).toBe(expected);
});

test.each(
  `. inputs. .inputs inputs..a inputs[ inputs[a] error.message error.**.message name[0] tags.first tags[0].x
    tags.**.first events.kwargs.x attachments.photo attachments["photo"] attachments[*].bytes inputs["a] inputs.***
    user.email [0].a input.a`
    .split(/\s+/)
    .concat('', 'inputs.a b'),
)('%j is no path: everything is masked and one line is logged', (path) => {
  const lines = logLines();
  expect(redact({ paths: [path] }).hidesAll).toBe(true);
  expect(lines).toEqual([expect.stringMatching(/^error: redact: .*every payload is hidden$/)]);
});

test('each of several paths masks its values', () => {
  const paths = ['inputs.a.b', '**.c', 'inputs.*.d'];
  expect(['b', 'c', 'd', 'e'].map((key) => isMasked(paths, ['inputs', 'a', key]))).toEqual([true, true, true, false]);
});

test('a path masks values under thousands of keys', () => {
  const value = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`k${at}`, { x: 'shown' }]));
  const rules = { ...LIMITS, redaction: redact({ paths: ['inputs.*.x'] }) };
  expect(serialize(value, rules, ['inputs'])).not.toContain('shown');
});
