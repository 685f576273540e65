import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { root } from '../support/folders.ts';
import { startReceiver } from '../support/receiver.ts';
import { call, start } from './wire.ts';

async function assetsOf(url: string): Promise<string[]> {
  const html = await (await fetch(url)).text();
  return [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, path = '']) => path);
}

describe('the page', () => {
  test('is served at the root and revalidated by browsers', async () => {
    const { url } = await start();
    const response = await fetch(`${url}/?view=runs`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-cache');
    expect(await response.text()).toContain('<title>runspan</title>');
  });

  test('can run only its own scripts and cannot be framed [security 11]', async () => {
    const { url } = await start();
    const { headers } = await fetch(url);
    const policy = headers.get('content-security-policy')?.split('; ');
    const own = "script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'";
    const none = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'";
    expect(policy).toEqual(expect.arrayContaining(`${own}; ${none}`.split('; ')));
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
  });

  test('has assets that browsers cache for good', async () => {
    const { url } = await start();
    const assets = await assetsOf(url);
    const types: Record<string, string> = {
      js: 'text/javascript; charset=utf-8',
      css: 'text/css; charset=utf-8',
      svg: 'image/svg+xml',
    };
    expect(assets.map((path) => path.split('.').at(-1)).sort()).toEqual(['css', 'js', 'svg']);
    for (const path of assets) {
      const response = await fetch(`${url}/${path}`);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe(types[path.split('.').at(-1) ?? '']);
      expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    }
  });

  test('needs no key, but its data does', async () => {
    const { url } = await startReceiver({ apiKey: 'a-key-of-some-length' });
    const [asset = ''] = await assetsOf(url);
    expect((await fetch(`${url}/${asset}`)).status).toBe(200);
    expect((await fetch(`${url}/query/projects`)).status).toBe(401);
  });
});

test.each([
  ...'nothing.js a%00.js ..%2Findex.html %2e%2e/index.html ..%5cindex.html'.split(' ').map((name) => `/assets/${name}`),
  ...'/assets/ /index.html /LICENSES.txt'.split(' '),
])('%s gets 404, because files are looked up by name only [security 10]', async (path) => {
  const { url } = await start();
  expect(await call(url + path, 'GET')).toMatchObject({ status: 404, body: { detail: expect.any(String) } });
});

test('a package that was built without the page names the reason', async () => {
  // These modules are built without the page.
  const path = join(root, 'node_modules/.cache/modules/receiver/http/page-routes.js');
  expect(existsSync(path)).toBe(true);
  const { pageRoutes } = (await import(pathToFileURL(path).href)) as typeof import('#src/receiver/http/page-routes.ts');
  const [page] = pageRoutes;
  expect(() => page?.handle({} as Parameters<typeof page.handle>[0])).toThrow(
    'This copy of the package was built without its page',
  );
});
