import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { root } from '../support/folders.ts';

const built = join(root, 'examples/chat/build/page');
const source = join(root, 'examples/chat/page');

test('all of the page is at most 70 kB gzipped', () => {
  const sizes = readdirSync(join(built, 'assets')).map(
    (name) => gzipSync(readFileSync(join(built, 'assets', name))).length,
  );
  expect(sizes.length).toBeGreaterThan(1);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(70_000);
});

test('the page loads only its own files, and has no inline script or style', () => {
  const html = readFileSync(join(built, 'index.html'), 'utf8');
  const asked = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, to = '']) => to);
  expect(asked.length).toBeGreaterThan(1);
  expect(asked.filter((to) => !to.startsWith('./assets/'))).toEqual([]);
  expect(html).not.toMatch(/<style|<script(?![^>]*\bsrc=)|\bon\w+=|style=/);
});

test('no source of the page creates elements or code from text', () => {
  const files = (readdirSync(source, { recursive: true }) as string[]).filter((name) => /\.tsx?$/.test(name));
  expect(files.length).toBeGreaterThan(20);
  const suspects = files.filter((name) =>
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser/i.test(
      readFileSync(join(source, name), 'utf8'),
    ),
  );
  expect(suspects).toEqual([]);
});
