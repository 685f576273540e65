import { describe, expect, it } from 'vitest';
import { decoded, mayBeDataUri, parseDataUri } from '../../src/payload/attachment.ts';

const bytes = Buffer.alloc(900, 'bytes');
const base64 = bytes.toString('base64');
const read = (text: string) => {
  const uri = parseDataUri(text);
  return uri && { mimeType: uri.mimeType, byteLength: uri.byteLength, bytes: decoded(uri) };
};

describe('a data URI', () => {
  it.each([
    ['image/png', 'image/png'],
    ['image/svg+xml;charset=utf-8', 'image/svg+xml;charset=utf-8'],
  ])('of type %s is read', (type, mimeType) => {
    const found = read(`data:${type};base64,${base64}`);
    expect(found).toMatchObject({ mimeType, byteLength: 900 });
    expect(bytes.equals(found?.bytes as Uint8Array)).toBe(true);
  });

  it.each([898, 899, 900, 901])('says how many bytes it stands for: %i', (length) => {
    const uri = `data:image/png;base64,${Buffer.alloc(length, 7).toString('base64')}`;
    expect(read(uri)).toMatchObject({ byteLength: length, bytes: { byteLength: length } });
    expect(read(uri.replace(/=+$/, ''))).toMatchObject({ byteLength: length, bytes: { byteLength: length } });
  });

  it.each([
    [1_024, false],
    [1_025, true],
  ])('of %i characters is worth a look: %s', (length, isLong) => {
    const text = 'data:image/png;base64,'.padEnd(length, 'A');
    expect(mayBeDataUri(text)).toBe(isLong);
    expect(parseDataUri(text) !== undefined).toBe(isLong);
  });

  it.each([
    ['has no type', `data:;base64,${base64}`],
    ['has a type that is none', `data:png;base64,${base64}`],
    ['has a type that would end its header line', `data:image/png\r\nx-evil: 1;base64,${base64}`],
    ['is percent-encoded', `data:text/plain,${'%20'.repeat(500)}`],
    ['has no comma', `data:image/png;base64${base64}`],
    ['has its comma too late', `data:image/png;${'a'.repeat(300)};base64,${base64}`],
    ['stands within other text', ` data:image/png;base64,${base64}`],
  ])('that %s is text', (_, text) => {
    expect(parseDataUri(text)).toBeUndefined();
  });

  it.each([
    ['a character outside of the alphabet', `${base64.slice(0, -4)}AA*A`],
    ['the alphabet of URLs', `${base64.slice(0, -4)}-_-_`],
    ['white space', `${base64.slice(0, -4)}\nAAA`],
    ['characters that take two bytes', `${base64.slice(0, -4)}ŁŁŁŁ`],
    ['padding in the middle', `${base64.slice(0, -8)}AA==AAAA`],
    ['a lone character', `${base64}A`],
    ['bits that belong to no byte', `${base64}AB==`],
    ['too much padding', `${base64}A===`],
  ])('with %s in its base64 is not decoded', (_, broken) => {
    expect(read(`data:image/png;base64,${broken}`)).toMatchObject({ bytes: undefined });
  });
});
