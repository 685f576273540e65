import { describe, expect, it } from 'vitest';
import { breaches, cycles, factsOf, MAY_IMPORT, MAY_IMPORT_INSIDE, unusedExceptions } from './import-rules.ts';
import { entries, filesUnder, manifest, read } from './repository.ts';

const PACKAGES = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
const sourcesOf = (folder: string): [path: string, text: string][] =>
  [...filesUnder(folder, '.ts'), ...filesUnder(folder, '.tsx')].map((path) => [path, read(`${folder}/${path}`)]);
const SOURCES = Object.fromEntries(sourcesOf('src'));
const FILES = Object.keys(SOURCES);

describe('the source', () => {
  it('imports only folders that the table allows, without cycles, and only installed packages', () => {
    expect(FILES.length).toBeGreaterThan(10);
    expect(breaches(SOURCES, PACKAGES)).toEqual([]);
  });

  it('needs every exception to the table', () => {
    expect(unusedExceptions(SOURCES)).toEqual([]);
  });

  it('has no cycle in the chat', () => {
    const folders = ['server', 'page', 'test'];
    const sources = folders.flatMap((folder) =>
      sourcesOf(`examples/chat/${folder}`).map(([path, text]) => [`${folder}/${path}`, text]),
    );
    expect(sources.length).toBeGreaterThan(10);
    expect(cycles(factsOf(Object.fromEntries(sources)))).toEqual([]);
  });

  it('has readers of services that need no runtime of their own', () => {
    const readers = FILES.filter((path) => path.startsWith('services/'));
    expect(readers.filter((path) => /\.(edge|browser)\.ts$/.test(path))).toEqual([]);
    expect(readers.filter((path) => /from 'node:|\bBuffer[.(]/.test(SOURCES[path] ?? ''))).toEqual([]);
  });

  it('has one file for each entry point, its variant for browsers, and runspan.ts', () => {
    const expected = [...entries.map((name) => `${name}.ts`), 'index.browser.ts', 'runspan.ts'].sort();
    expect(FILES.filter((path) => !path.includes('/'))).toEqual(expected);
  });

  it('exports no function or class under a name that another file exports', () => {
    // Variants for other runtimes and LangSmith's names replace others. `define` is what each command's file exports.
    const files = FILES.filter((path) => !/\.(edge|browser)\.ts$|^langsmith\//.test(path));
    const pattern =
      /^export (?:abstract )?(?:async )?(?:function\*?|class) (\w+)|^export const (\w+)(?:: .+)? = (?:async )?[(<]/gm;
    const names = files.flatMap((path) => {
      const found = [...(SOURCES[path] ?? '').matchAll(pattern)].map(([, declared, assigned]) => declared ?? assigned);
      return [...new Set(found)];
    });
    expect(names.filter((name, index) => name !== 'define' && names.indexOf(name) !== index)).toEqual([]);
  });

  it('keeps its side effects with tree shaking', () => {
    const withEffect = entries.filter((name) => /\.\/runspan\.ts'/.test(read(`src/${name}.ts`)));
    expect(withEffect).toContain('index');
    const ofNode = [...withEffect, 'chunks/runspan'].flatMap((name) => [`./dist/${name}.js`, `./dist/${name}.cjs`]);
    const ofEdge = ['chunks/runspan', 'register'].map((name) => `./dist/edge/${name}.js`);
    expect([...manifest.sideEffects].sort()).toEqual([...ofNode, ...ofEdge].sort());
  });

  it('has a table without a cycle of folders', () => {
    const reachable = (from: string): string[] => (MAY_IMPORT[from] ?? []).flatMap((to) => [to, ...reachable(to)]);
    for (const folder of Object.keys(MAY_IMPORT)) expect(reachable(folder)).not.toContain(folder);
    for (const [folder, allowed] of Object.entries(MAY_IMPORT_INSIDE)) {
      for (const below of allowed) expect(MAY_IMPORT_INSIDE[below]).not.toContain(folder);
    }
  });
});

describe('a planted import', () => {
  const base = { 'base/text.ts': 'export const a = 1;', 'run/sink.ts': 'export interface Sink {}' };

  it.each<[string, Record<string, string>, string]>([
    [
      'a folder that the table forbids',
      { 'run/x.ts': `import '../delivery/y.ts';`, 'delivery/y.ts': '' },
      'run/x.ts imports delivery/y.ts',
    ],
    [
      'a type of such a folder',
      { 'base/x.ts': `let x: import('../run/sink.ts').Sink;` },
      'base/x.ts imports run/sink.ts',
    ],
    [
      'a part of run/ that the receiver may not use',
      { 'receiver/x.ts': `import '../run/sink.ts';` },
      'receiver/x.ts imports run/sink.ts',
    ],
    [
      'a folder of a product that lies above',
      { 'receiver/domain/x.ts': `import '../api/y.ts';`, 'receiver/api/y.ts': '' },
      'receiver/domain/x.ts imports receiver/api/y.ts',
    ],
    ['an entry file', { 'run/x.ts': `import '../otel.ts';`, 'otel.ts': '' }, 'run/x.ts imports the entry file otel.ts'],
    ['a missing file', { 'run/x.ts': `import './y.ts';` }, 'run/x.ts imports run/y.ts, which does not exist'],
    [
      'a development dependency',
      { 'run/x.ts': `import 'vitest';` },
      'run/x.ts imports vitest, which package.json does not give to users',
    ],
    [
      'the OpenTelemetry API outside otel/',
      { 'run/x.ts': `import '@opentelemetry/api';` },
      'run/x.ts imports @opentelemetry/api outside otel/',
    ],
    [
      'undici at import',
      { 'delivery/x.ts': `import { type Pool } from 'undici';` },
      'delivery/x.ts loads undici before the first send',
    ],
    [
      'a computed name',
      { 'run/x.ts': 'void import(name);' },
      'run/x.ts imports (computed), which package.json does not give to users',
    ],
    [
      'a cycle',
      { 'run/x.ts': `import './y.ts';`, 'run/y.ts': `import { type X } from './x.ts';` },
      'cycle: run/x.ts → run/y.ts → run/x.ts',
    ],
    [
      'code in an entry file',
      { 'otel.ts': 'export const a = 1;' },
      'otel.ts is an entry file and has more than export lines',
    ],
    ['an await at top level', { 'run/x.ts': 'if (a) await b;' }, 'run/x.ts awaits at top level'],
  ])('of %s is reported', (_, planted, breach) => {
    expect(breaches({ ...base, ...planted }, PACKAGES)).toEqual([breach]);
  });

  it.each<[string, Record<string, string>]>([
    [
      'of undici for a type or at the first send',
      { 'delivery/x.ts': `import type { Pool } from 'undici'; export const a = async () => await import('undici');` },
    ],
    [
      'of packages bundled into the page, and of a type of the receiver by it',
      {
        'viewer/x.tsx': `import { h } from 'preact/hooks'; import type { A } from '../receiver/y.ts';`,
        'receiver/y.ts': '',
      },
    ],
    ['of a type for the receiver', { 'receiver/x.ts': `import type { Sink } from '../run/sink.ts';` }],
    [
      'of the root by an entry file',
      { 'otel.ts': `import './runspan.ts'; export * from './otel/x.ts';`, 'otel/x.ts': '', 'runspan.ts': '' },
    ],
  ])('%s is allowed', (_, planted) => {
    expect(breaches({ ...base, ...planted }, PACKAGES)).toEqual([]);
  });
});
