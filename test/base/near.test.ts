import fc from 'fast-check';
import { expect, it } from 'vitest';
import { nearWord } from '#src/base/near.ts';
import { forAll } from '../support/campaign.ts';

const KNOWN = ['RUNSPAN_ENDPOINT', 'RUNSPAN_API_KEY', 'name', 'tool'];

it.each([
  ['RUNSPAN_ENDPONT', 'RUNSPAN_ENDPOINT'],
  ['RUNSPAN_API_KYE', 'RUNSPAN_API_KEY'],
  ['RUNSPAN_APIKEY', 'RUNSPAN_API_KEY'],
  ['nmae', 'name'],
  ['tol', 'tool'],
  ['name', undefined],
  ['nane', 'name'],
  ['fame', undefined],
  ['fade', undefined],
  ['RUNSPAN_TEAM', undefined],
  ['', undefined],
])('%j is near %j', (word, near) => {
  expect(nearWord(word, KNOWN)).toBe(near);
});

it('a long word is near if up to two of its letters are missing, added or exchanged, but for the first one', () => {
  const edit = fc.tuple(fc.integer({ min: 1, max: 15 }), fc.constantFrom('', 'X', 'XX'), fc.nat(1));
  forAll(100, [edit], ([at, added, removed]) => {
    const word = 'RUNSPAN_ENDPOINT'.slice(0, at) + added + 'RUNSPAN_ENDPOINT'.slice(at + removed);
    expect(nearWord(word, KNOWN)).toBe(word === 'RUNSPAN_ENDPOINT' ? undefined : 'RUNSPAN_ENDPOINT');
  });
});
