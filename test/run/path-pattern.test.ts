import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pathPattern } from '#src/run/ids.ts';
import { cases } from '../support/campaign.ts';

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const id = fc.oneof(
  fc.nat().map(String),
  fc.uuid(),
  fc.ulid(),
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 16, maxLength: 64 }).map((hex) => `${hex}0`),
  fc.constantFrom(
    ...['V1StGXR8_Z5jdHi6B-myT', 'tz4a98xxat96iws9zmbrgj3a', '507F1F77BCF86CD799439011', 'cus_9s6XKzkNRiz8i3'],
    'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
  ),
);
const word = fc.oneof(
  fc.stringMatching(/^[A-Z]?[a-z]{2,12}(?:[-_.][a-z]{3,12}){0,4}(?:[-_]?20[0-2]\d)?$/),
  fc.constantFrom(
    ...['', 'v1', 'v1beta1', 'ada', 'gpt-4o', 'gpt-4o-mini-2024-07-18', 'claude-3-5-sonnet-20241022', '2024-report'],
    ...[
      'mixtral-8x7b-instruct-v0-1',
      'Meta-Llama-3-1-8B-Instruct-Turbo',
      'V2ChatStreamRequestSafetyMode',
      'a@b.example',
    ],
    ...['deadbeef', 'oauth2callback', 'getUserProfileSettings', '%20', '{id}', ':name', 'index.2f8a.js', '1.5', '-7'],
  ),
);

test('generated ids become ":id", and words stay', () => {
  const segment = fc.oneof(
    id.map((text) => [text, ':id']),
    word.map((text) => [text, text]),
  );
  const property = fc.property(fc.array(segment, { maxLength: 8 }), (segments) => {
    const [path, pattern] = [0, 1].map((side) => `/${segments.map((pair) => pair[side]).join('/')}`);
    expect([pathPattern(path as string), pathPattern(pattern as string)]).toEqual([pattern, pattern]);
  });
  fc.assert(property, { numRuns: cases(2_000) });
});

test('most random tokens of 16 to 32 characters become ":id"', () => {
  const letters = 'abcdefghijklmnopqrstuvwxyz';
  for (const alphabet of [`${letters}${letters.toUpperCase()}0123456789`, `${letters}0123456789`, CROCKFORD]) {
    const token = fc.string({ unit: fc.constantFrom(...alphabet), minLength: 16, maxLength: 32, size: 'max' });
    const found = fc.sample(token, 500).filter((text) => pathPattern(text) === ':id');
    expect(found.length).toBeGreaterThan(400);
  }
});
