import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonSizeBytes } from '../../src/receiver/store/memory-run.ts';

test('jsonSizeBytes counts what JSON.stringify writes, escapes aside, 16 for each value and 56 for each object or array', () => {
  expect(jsonSizeBytes('')).toBe(2 + 16);
  expect(jsonSizeBytes({ a: [1, null, true], ü: '', b: {}, c: [] })).toBe(41 + 8 * 16 + 4 * 56);
  const plain = fc.stringMatching(/^[a-zü€ ]*$/);
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { maxDepth: 4 },
      plain,
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('json'), { maxLength: 4 }),
      fc.dictionary(plain, tie('json'), { maxKeys: 4 }),
    ),
  }));
  const added = (value: unknown): number =>
    typeof value !== 'object' || value === null
      ? 16
      : 16 + 56 + Object.values(value).reduce((sum: number, item) => sum + added(item), 0);
  fc.assert(
    fc.property(json, (value) => jsonSizeBytes(value) === Buffer.byteLength(JSON.stringify(value)) + added(value)),
  );
});
