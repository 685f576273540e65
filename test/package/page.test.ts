import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { root } from '../support/folders.ts';
import { filesUnder, read } from './repository.ts';

const folder = join(root, 'dist/viewer');
const fileAt = (path: string) => brotliDecompressSync(readFileSync(join(folder, `${path}.br`)));
const html = fileAt('index.html').toString();
const sizes = new Map(
  readdirSync(join(folder, 'assets'))
    .map((file) => file.replace(/\.br$/, ''))
    .map((name) => [name, gzipSync(fileAt(`assets/${name}`)).length]),
);
const sum = (names: readonly string[]): number =>
  names.reduce((total, name) => total + (sizes.get(name) ?? Number.NaN), 0);

test('the page is at most 143.7 kB gzipped, and its first load at most 35.8 kB', () => {
  const first = [...html.matchAll(/"\.\/assets\/([^"]+)"/g)].map(([, name = '']) => name);
  expect(first.length).toBeGreaterThan(1);
  expect(sum([...sizes.keys()])).toBeLessThanOrEqual(143_700);
  expect(sum(first)).toBeLessThanOrEqual(35_800);
});

test('the page loads only its own assets', () => {
  expect(
    [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, to = '']) => to).filter((to) => !to.startsWith('./assets/')),
  ).toEqual([]);
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|\bon\w+=|style=/);
});

test('the page of a saved trace is one file of at most 300 kB that allows only its own script and style', () => {
  const saved = fileAt('saved.html').toString();
  expect(Buffer.byteLength(saved)).toBeLessThanOrEqual(300_000);
  expect(saved.split('"the trace"')).toHaveLength(2);
  const elements = [...saved.matchAll(/<(script|style|link|img|meta http-equiv)\b([^>]*)>(?:(.*?)<\/\1>)?/gs)];
  const kinds = elements.map(
    ([, name, attributes]) => `${name}${/\b(?:src|href|type)="[^"]*"/.exec(attributes ?? '') ?? ''}`,
  );
  expect(kinds).toEqual(['meta http-equiv', 'style', 'scripttype="application/json"', 'scripttype="module"']);
  const [policy = '', style = '', , script = ''] = elements.map(([, , attributes, content]) => content ?? attributes);
  expect(/content="([^"]*)"/.exec(policy)?.[1]?.split('; ')).toEqual([
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    'img-src data:',
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ]);
});

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

test('no source of the page turns text into elements or code [security 11]', () => {
  const files = [...filesUnder('src/viewer', '.ts'), ...filesUnder('src/viewer', '.tsx')];
  expect(files.length).toBeGreaterThan(40);
  const suspects = files.filter((path) =>
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser/i.test(
      read(`src/viewer/${path}`),
    ),
  );
  expect(suspects).toEqual([]);
});
