import { expect, test } from 'vitest';
import { binaryOf, pictureOf } from '../../src/viewer/payload/binary-text.ts';

const png = btoa(`\x89PNG\r\n\x1a\n${'\x07'.repeat(300)}`);

test('a data URI is told by its type, and by what it begins with', () => {
  expect(binaryOf('data:text/plain;base64,aGk=')).toEqual({ base64: 'aGk=', type: 'text/plain', size: 2 });
  expect(binaryOf(`data:image/svg+xml;base64,${png}`)).toMatchObject({ type: 'image/png', size: 308 });
  expect(binaryOf('data:;base64,aGk=')).toMatchObject({ type: 'application/octet-stream' });
});

test('base64 by itself is told from 256 characters on', () => {
  const text = `${'aB3'.repeat(85)}Z`;
  expect(binaryOf(text)).toMatchObject({ size: 192 });
  expect(binaryOf(text.slice(1))).toBeUndefined();
  expect(binaryOf(png)).toMatchObject({ type: 'image/png' });
});

test.each([['word '.repeat(100)], ['f00d'.repeat(100)], ['A'.repeat(300)], ['data:text/plain,hello'], ['']])(
  '%s is text',
  (text) => {
    expect(binaryOf(text)).toBeUndefined();
  },
);

test('pictures are those that hold nothing but pixels', () => {
  expect(pictureOf(png)).toBe(`data:image/png;base64,${png}`);
  expect(pictureOf(`data:image/svg+xml;base64,${btoa('<svg onload=alert(1)>')}`)).toBeUndefined();
  expect(pictureOf('data:text/html;base64,aGk=')).toBeUndefined();
});
