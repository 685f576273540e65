import { type Program, parseSync, Visitor } from 'oxc-parser';
import { describe, expect, test } from 'vitest';
import { filesUnder, manifest, read } from '../package/repository.ts';

interface Locked {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly hasInstallScript?: boolean;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
}

const LOCKFILES = ['package-lock.json', 'bench/peers/package-lock.json', 'test/peers/package-lock.json'];
/** Returns the packages in a lockfile, without the workspaces and the links to them. */
const lockedBy = (path: string): [string, Locked][] =>
  Object.entries(JSON.parse(read(path)).packages as Record<string, Locked>).filter(
    ([name, { link }]) => name.includes('node_modules/') && link !== true,
  );

describe('the installation of the package', () => {
  test('has one dependency without dependencies; ClickHouse, OpenTelemetry and SQLite are optional peers [security 15]', () => {
    expect(Object.keys(manifest.dependencies)).toEqual(['undici']);
    const peers = ['@clickhouse/client', '@opentelemetry/api', '@photostructure/sqlite'];
    expect(Object.keys(manifest.peerDependencies)).toEqual(peers);
    const installed = lockedBy('package-lock.json').filter(
      ([, { dev, optional }]) => dev !== true && optional !== true,
    );
    const names = installed
      .map(([path]) => path.replace(/^.*node_modules\//, ''))
      .filter((name) => !(name in manifest.dependencies));
    expect(names.filter((name) => name !== '@opentelemetry/api')).toEqual([]);
  });

  test('runs no script [security 15]', () => {
    expect(
      Object.keys(manifest.scripts).filter((name) =>
        /^(pre|post)?(install|prepare|publish|pack|uninstall)$/.test(name),
      ),
    ).toEqual([]);
    const scripted = lockedBy('package-lock.json').filter(
      ([, { hasInstallScript, dev }]) => hasInstallScript === true && dev !== true,
    );
    expect(scripted).toEqual([]);
    expect(read('.npmrc')).toMatch(/^ignore-scripts=true$/m);
    // npm does not read `.npmrc` in other folders.
    const calls = filesUnder('scripts', '.mjs').flatMap(
      (file) => read(`scripts/${file}`).match(/'npm', \['(?:ci|install)'.*/g) ?? [],
    );
    expect(calls).not.toEqual([]);
    for (const installing of calls) expect(installing).toContain("'--ignore-scripts'");
  });

  test.each(LOCKFILES)('has a hash for each package in %s, and uses one registry [security 15]', (path) => {
    const locked = lockedBy(path);
    expect(locked.length).toBeGreaterThan(0);
    const elsewhere = locked.filter(
      ([, { resolved }]) => resolved !== undefined && !/^https:\/\/registry\.npmjs\.org\//.test(resolved),
    );
    expect(elsewhere).toEqual([]);
    const weak = locked.filter(
      ([, { integrity }]) => integrity !== undefined && !/^sha512-[\w+/]{86}==$/.test(integrity),
    );
    expect(weak).toEqual([]);
    // Optional binaries for other platforms have no hash.
    const isForTests = path !== 'package-lock.json';
    const unhashed = locked.filter(
      ([, { integrity, dev, optional, os, cpu }]) =>
        integrity === undefined && !((dev || isForTests) && optional && (os || cpu)),
    );
    expect(unhashed.map(([name]) => name)).toEqual([]);
  });
});

/** Returns the places that generate code from text or load a module by a computed name. */
function openings(path: string, text: string): string[] {
  const found: string[] = [];
  const { program } = parseSync(path, text, { sourceType: 'module' });
  const add = (what: string, { start }: { start: number }): void => {
    found.push(`${path}:${text.slice(0, start).split('\n').length}: ${what}`);
  };
  new Visitor({
    CallExpression(node) {
      const { callee } = node;
      const [first] = node.arguments;
      if (callee.type === 'Identifier' && /^(eval|Function|require)$/.test(callee.name)) add(callee.name, node);
      if (callee.type === 'Identifier' && /^set(Timeout|Interval)$/.test(callee.name) && first?.type === 'Literal')
        add('a timer of text', node);
    },
    NewExpression(node) {
      const { callee } = node;
      const name =
        callee.type === 'Identifier'
          ? callee.name
          : callee.type === 'MemberExpression' && 'name' in callee.property
            ? callee.property.name
            : '';
      if (name === 'Function') add('new Function', node);
      const [first] = node.arguments;
      const isOfFile =
        first?.type === 'NewExpression' && first.callee.type === 'Identifier' && first.callee.name === 'URL';
      if (name === 'Worker' && !isOfFile) add('a worker of no file', node);
    },
    MemberExpression(node) {
      const isGlobal = node.object.type === 'Identifier' && node.object.name === 'globalThis';
      if (isGlobal && 'name' in node.property && /^(eval|Function)$/.test(String(node.property.name)))
        add('globalThis', node);
    },
    ImportExpression(node) {
      if (node.source.type !== 'Literal') add('a computed import', node);
    },
    ImportDeclaration(node) {
      if (/^(node:)?(vm|module|repl|inspector)$/.test(node.source.value)) add(node.source.value, node);
    },
  }).visit(program as Program);
  return found;
}

describe('code', () => {
  test('of the package is not generated from text, and loads no module by a computed name [security 16]', () => {
    const files = filesUnder('dist', '.js');
    expect(files.length).toBeGreaterThan(20);
    expect(files.flatMap((file) => openings(file, read(`dist/${file}`)))).toEqual([]);
  });

  test.each([
    ...[`eval('1')`, `const f = new Function('return 1');`, `Function('return 1')()`, `globalThis.eval('1')`],
    ...[`setTimeout('go()', 1)`, `await import(name)`, `import vm from 'node:vm';`, `require(name)`],
    `new Worker(text, { eval: true })`,
  ])('that does so is found: %s [security 16]', (text) => {
    expect(openings('planted.js', text)).toHaveLength(1);
  });

  test('of workers may be in files [security 16]', () => {
    expect(openings('planted.js', `new Worker(new URL('./worker.js', import.meta.url))`)).toEqual([]);
  });
});
