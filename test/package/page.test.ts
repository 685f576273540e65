import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { root } from '../support/folders.ts';
import { filesUnder, read } from './repository.ts';

const folder = join(root, 'dist/viewer');
const html = readFileSync(join(folder, 'index.html'), 'utf8');
const sizes = new Map(
  readdirSync(join(folder, 'assets')).map((name) => [
    name,
    gzipSync(readFileSync(join(folder, 'assets', name))).length,
  ]),
);
const sum = (names: readonly string[]): number =>
  names.reduce((total, name) => total + (sizes.get(name) ?? Number.NaN), 0);

test('the page is at most 126 kB gzipped, and its first load at most 34.2 kB', () => {
  const first = [...html.matchAll(/"\.\/assets\/([^"]+)"/g)].map(([, name = '']) => name);
  expect(first.length).toBeGreaterThan(1);
  expect(sum([...sizes.keys()])).toBeLessThanOrEqual(126_000);
  expect(sum(first)).toBeLessThanOrEqual(34_200);
});

test('the page loads only its own assets', () => {
  expect(
    [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, to = '']) => to).filter((to) => !to.startsWith('./assets/')),
  ).toEqual([]);
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|\bon\w+=|style=/);
});

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
