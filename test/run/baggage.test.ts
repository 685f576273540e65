import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { baggageMember, baggageValue, parseBaggage } from '../../src/run/propagation.ts';

describe('baggage', () => {
  test('is read as the specification writes it, with white space and properties', () => {
    const members = parseBaggage('userId = alice;ttl=3 , serverNode=DF%2028,isProduction=false;a;b=c');
    expect(members.map(({ key }) => key)).toEqual(['userId', 'serverNode', 'isProduction']);
    expect(['userId', 'serverNode', 'isProduction', 'none'].map((key) => baggageValue(members, key))).toEqual([
      'alice',
      'DF 28',
      'false',
      undefined,
    ]);
    expect(members[0]?.text).toBe('userId = alice;ttl=3');
  });

  test('leaves out what is no member, and a value that is not encoded as it has to be', () => {
    const members = parseBaggage(',=x,novalue,ok=1,bad=%E0%A4%A,,');
    expect(members.map(({ key }) => key)).toEqual(['ok', 'bad']);
    expect(baggageValue(members, 'bad')).toBeUndefined();
  });

  test.each([
    [63, 63],
    [64, 64],
    [65, 64],
  ])('of %i members has %i read', (count, read) => {
    const header = Array.from({ length: count }, (_, at) => `k${at}=v`).join(',');
    expect(parseBaggage(header)).toHaveLength(read);
  });

  test.each([
    [8_191, ['a', 'b']],
    [8_192, ['a', 'b']],
    [8_193, ['a']],
  ])('of %i bytes has its whole members read, and no part of one', (bytes, keys) => {
    const header = `a=1,b=${'x'.repeat(bytes - 6)}`;
    expect(parseBaggage(header).map(({ key }) => key)).toEqual(keys);
    expect(parseBaggage(header.slice(4))).toHaveLength(1);
    expect(parseBaggage(`a=${'x'.repeat(8_191)}`)).toEqual([]);
  });

  test('gives back any text that it was given, in characters that a header may hold', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 100 }), (value) => {
        const member = baggageMember('key', value);
        expect(member.text).toMatch(/^key=[!-~]*$/);
        expect(member.text).not.toMatch(/[,;"\\ ]/);
        expect(baggageValue(parseBaggage(member.text), 'key')).toBe(value);
      }),
    );
    expect(baggageValue([baggageMember('key', 'half \ud800')], 'key')).toBe('half \ufffd');
  });
});
