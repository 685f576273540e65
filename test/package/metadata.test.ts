import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { filesUnder, manifest, read } from './repository.ts';
import { sourceFacts } from './source-facts.ts';

const address = manifest.repository.url.replace(/^git\+|\.git$/g, '');

it('package.json derives all addresses from that of the repository', () => {
  expect(address).toMatch(/^https:\/\/github\.com\/[\w-]+\/runspan$/);
  expect([manifest.homepage, manifest.bugs]).toEqual([`${address}#readme`, `${address}/issues`]);
});

it('the release is published with provenance', () => {
  expect(manifest.publishConfig).toEqual({ access: 'public', provenance: true });
  expect(read('.github/workflows/release.yml')).toMatch(/^ {6}id-token: write$[\s\S]*run: npm publish$/m);
});

it('no file has another address of the repository', () => {
  const text = /\.(md|ts|tsx|mjs|json|ya?ml)$/;
  const folders = ['.github', 'api', 'bench', 'docs', 'scripts', 'src', 'test/package'];
  const files = [
    ...readdirSync(root).filter((name) => name !== 'package-lock.json'),
    ...folders.flatMap((folder) => filesUnder(folder, '').map((path) => `${folder}/${path}`)),
  ].filter((path) => text.test(path) && !path.includes('node_modules/'));
  expect(files).toEqual(expect.arrayContaining(['SECURITY.md', '.github/ISSUE_TEMPLATE/config.yml']));
  const others = files.flatMap((path) => {
    const found = read(path).match(/(?<=github(usercontent)?\.com[/:])[\w.-]+\/runspan\b/g) ?? [];
    return found.filter((one) => !address.endsWith(`/${one}`)).map((one) => `${path}: ${one}`);
  });
  expect(others).toEqual([]);
});

it('README.md has pictures that a checkout and the package page can show', () => {
  const pictures = [...read('README.md').matchAll(/(?:!\[[^\]]*\]\(|\bsrc(?:set)?=")([^)"]+)/g)].map(
    ([, picture = '']) => picture,
  );
  // npm's page resolves relative paths with the field `repository`.
  const missing = pictures.filter((path) => !/^\w/.test(path) || !existsSync(join(root, path)));
  expect(pictures).not.toEqual([]);
  expect(missing).toEqual([]);
});

it('README.md installs the file that npm pack writes', () => {
  const files = read('README.md').match(/[\w.-]+\.tgz/g);
  expect(files).toEqual([`runspan-${manifest.version}.tgz`]);
});

it('the notices contain the licence of each package that the sources import and that is not installed', () => {
  const text = read('dist/THIRD-PARTY-NOTICES.txt');
  const notices = text.split(`\n${'-'.repeat(80)}\n\n`);
  const packages = [...text.matchAll(/^(\S+) \d\S* \((.+)\)$/gm)];
  const [names, licences] = [1, 2].map((group) => packages.map((found) => found[group]));
  const installed = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
  const imported = ['.ts', '.tsx']
    .flatMap((ending) => filesUnder('src', ending).map((path) => [path, read(`src/${path}`)] as const))
    // Parsing all files takes seconds.
    .filter(([, text]) => /^(import|} from) [^']*'(?!\.|node:)/m.test(text))
    .flatMap(([path, text]) => sourceFacts(path, text).imports.filter(({ typeOnly }) => !typeOnly))
    .flatMap(({ specifier }) => /^(@[^/]+\/)?[^./:@][^/:]*(?=\/|$)/.exec(specifier)?.[0] ?? []);
  const bundled = [...new Set(imported)].filter((name) => !installed.includes(name));
  expect(names).toEqual(expect.arrayContaining(bundled));
  expect(bundled).toEqual(expect.arrayContaining(['@preact/signals', 'preact', 'valibot']));
  expect(names).toEqual(expect.arrayContaining(['@langchain/core', 'hono']));
  // These licences require only that the notice is included.
  expect([...new Set(licences)].sort()).toEqual(['Apache-2.0', 'BSD-3-Clause', 'MIT']);
  for (const notice of notices) expect(notice).toMatch(/^\S+ \d\S* \(.+\)\n\n[\s\S]*(permission|redistribution)/i);
});
