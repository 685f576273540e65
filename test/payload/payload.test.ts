import { describe, expect, it } from 'vitest';
import { redact } from '../../src/payload/redact.ts';
import { encodePayload } from '../../src/payload/serialize.ts';
import { LIMITS, makeSink } from '../run/memory-sink.ts';

const { capture } = makeSink();

describe('encodePayload', () => {
  it.each([
    ['a plain object', { a: 1 }, '{"a":1}'],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['undefined', undefined, '{}'],
    ['null', null, '{"outputs":null}'],
    ['text', 'x', '{"outputs":"x"}'],
    ['a list', [1, 2], '{"outputs":[1,2]}'],
    ['a date', new Date(0), '{"outputs":"1970-01-01T00:00:00.000Z"}'],
    [
      'an instance of a class',
      new (class Point {
        x = 1;
      })(),
      '{"outputs":{"x":1}}',
    ],
    ['a plain object whose toJSON gives text', { toJSON: () => 'x' }, '{"outputs":"x"}'],
  ])('makes of %s an object', (_, value, expected) => {
    expect(encodePayload('outputs', value, capture).json).toBe(expected);
  });

  it('makes an object of a proxy that cannot be read', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();

    expect(Object.keys(JSON.parse(encodePayload('inputs', proxy, capture).json))).toEqual(['input']);
  });

  it('lets nothing of a hidden value travel beside it', () => {
    const payload = { ...LIMITS, redaction: redact({ paths: ['inputs.input'] }) };
    const uri = `data:image/png;base64,${Buffer.alloc(3_000).toString('base64')}`;
    const value = { toJSON: () => uri };

    expect(encodePayload('inputs', value, { ...capture, payload })).toEqual({
      json: '{"input":"[Redacted]"}',
      attachments: undefined,
    });
    expect(encodePayload('outputs', value, { ...capture, payload }).attachments).toHaveLength(1);
  });
});
