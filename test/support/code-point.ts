import fc from 'fast-check';

const SURROGATES = { first: 0xd800, count: 0x800 };
const LAST = 0x10ffff;

/**
 * Any character, for the `unit` of `fc.string`. The same characters as with fast-check's unit `binary`, which takes two
 * seconds to list all of them.
 */
export const codePoint: fc.Arbitrary<string> = fc
  .integer({ min: 0, max: LAST - SURROGATES.count })
  .map((at) => String.fromCodePoint(at < SURROGATES.first ? at : at + SURROGATES.count), indexOf);

/** For the strings that fast-check tries on its own, such as `__proto__`. */
function indexOf(character: unknown): number {
  if (typeof character !== 'string' || character.length !== 1) throw new Error('expected a character');
  return character.charCodeAt(0);
}
