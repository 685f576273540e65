import { expect, test } from 'vitest';
import { binaryOf, imageOf } from '#src/viewer/payload/binary-text.ts';

const png = btoa(`\x89PNG\r\n\x1a\n${'\x07'.repeat(300)}`);

test('a data URI has its type and size', () => {
  expect(binaryOf('data:text/plain;base64,aGk=')).toEqual({ base64: 'aGk=', type: 'text/plain', sizeBytes: 2 });
  expect(binaryOf(`data:image/svg+xml;base64,${png}`)).toMatchObject({ type: 'image/png', sizeBytes: 308 });
  expect(binaryOf('data:;base64,aGk=')).toMatchObject({ type: 'application/octet-stream' });
});

test.each([
  ['', 'image/webp', 'audio/wav', 'application/octet-stream'],
  ['application/octet-stream', 'image/webp', 'audio/wav', 'application/octet-stream'],
  ['image/*', 'image/webp', 'image/*', 'image/*'],
  ['Audio/X-WAV; rate=8000', 'audio/x-wav', 'audio/wav', 'audio/x-wav'],
  ['video/avi', 'video/avi', 'video/avi', 'video/avi'],
])('files that begin with RIFF and are declared as %j are %s, %s and %s', (declared, ...expected) => {
  for (const size of ['\0\0\0\0', '\x24\x10\0\0', '\xff\xff\xff\xff']) {
    const datas = ['WEBP', 'WAVE', 'AVI '].map((form) => btoa(`RIFF${size}${form}${'k5\x07'.repeat(300)}`));
    expect(datas.map((data) => binaryOf(`data:${declared};base64,${data}`)?.type)).toEqual(expected);
  }
});

test('base64 without a data URI is recognized from 256 characters on', () => {
  const text = `${'aB3'.repeat(85)}Z`;
  expect(binaryOf(text)).toMatchObject({ sizeBytes: 192 });
  expect(binaryOf(text.slice(1))).toBeUndefined();
  expect(binaryOf(png)).toMatchObject({ type: 'image/png' });
});

test('words, hexadecimal numbers and plain data URIs are text', () => {
  const texts = ['word '.repeat(100), 'f00d'.repeat(100), 'A'.repeat(300), 'data:text/plain,hello', ''];
  expect(texts.map(binaryOf)).toEqual(texts.map(() => undefined));
});

test('only images that consist of pixels are shown', () => {
  expect(imageOf(png)).toBe(`data:image/png;base64,${png}`);
  expect(imageOf(`data:image/svg+xml;base64,${btoa('<svg onload=alert(1)>')}`)).toBeUndefined();
  expect(imageOf('data:text/html;base64,aGk=')).toBeUndefined();
});
