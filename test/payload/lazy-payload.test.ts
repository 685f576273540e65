import fc from 'fast-check';
import { expect, test } from 'vitest';
import { defaultRedaction } from '#src/payload/redaction/redact.ts';
import { encodePayload } from '#src/payload/serialize.ts';
import { anything } from '../base/hostile.ts';
import { LIMITS } from '../run/memory-sink.ts';
import { forAll } from '../support/campaign.ts';

const policy = { payload: { ...LIMITS, redaction: defaultRedaction() }, attachmentBytes: 10_000 };

const plain = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, undefined, true, Number.NaN, -0, 1e21, 12n, Symbol('s'), '\ud800', 'password=hunter2hunter2'),
    fc.string({ unit: 'binary' }),
    fc.double(),
    fc.array(tie('value')),
    fc.dictionary(
      fc.oneof(fc.string(), fc.constantFrom('password', '__proto__', 'toJSON', '1', 'headers')),
      tie('value'),
    ),
  ),
})).value;

const limits = fc.constantFrom(LIMITS, { ...LIMITS, depth: 2 }, { ...LIMITS, width: 2 }, { ...LIMITS, nodes: 4 });

test('a lazy payload has the text of one that is encoded at once', () => {
  const made = fc.oneof(
    plain.map((value) => () => value),
    anything,
  );
  forAll(3_000, [made, limits], (make, { depth, width, nodes, bytes }) => {
    const payload = { ...policy.payload, depth, width, nodes, bytes };
    const texts = [false, true].map((isLazy) => encodePayload('inputs', make(), { ...policy, payload, isLazy }).json);
    expect(texts[1]).toBe(texts[0]);
  });
});

test('a lazy payload is not affected by changes of the value', () => {
  const value = { list: [{ text: 'before' }], nested: { count: 1 }, text: 'before' };
  const { json } = encodePayload('outputs', value, policy);
  const payload = encodePayload('outputs', value, { ...policy, isLazy: true });
  Object.assign(value, { text: 'after', more: true });
  value.nested.count = 2;
  value.list[0] = { text: 'after' };
  value.list.push({ text: 'after' });
  expect(payload.json).toBe(json);
});
