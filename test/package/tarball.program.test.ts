import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { version } from '#src/base/version.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { runNode } from '../support/program.ts';
import { installed, pack, type Tarball } from './packed.ts';
import { entries, manifest, read } from './repository.ts';

const folder = temporaryFolder();
afterAll(folder.remove);

let packed: Tarball | undefined;
const tarball = (): Tarball => {
  packed ??= pack(folder.path);
  return packed;
};

/** The files of the package. Sources, tests and source maps match no pattern. */
const ALLOWED = [
  /^README\.md$/,
  /^(LICENSE|package\.json)$/,
  /^dist\/[\w-]+\.(js|cjs|d\.ts|d\.cts)$/,
  /^dist\/chunks\/[\w-]+\.c?js$/,
  // The prices of models. Compressed, they take 53 kB instead of 465 kB.
  /^dist\/chunks\/genai-prices\.json\.br$/,
  /^dist\/cli\/main\.js$/,
  /^dist\/(browser|edge)\/([\w-]+\/)*[\w-]+\.js$/,
  /^dist\/(?!chunks|viewer)([\w-]+\/)+[\w-]+\.d\.cts$/,
  /^dist\/THIRD-PARTY-NOTICES\.txt$/,
  // The page, and the page of a saved trace. Compressed, they take 182 kB instead of 559 kB.
  /^dist\/viewer\/(index|saved)\.html\.br$/,
  /^dist\/viewer\/assets\/[\w-]+\.(css|js|svg)\.br$/,
];

describe('the tarball', () => {
  it('has only files of the allowed kinds [security 15]', () => {
    const { files } = tarball();
    expect(files.filter((path) => !ALLOWED.some((allowed) => allowed.test(path)))).toEqual([]);
    expect(ALLOWED.filter((allowed) => !files.some((path) => allowed.test(path)))).toEqual([]);
  });

  it('has no tests, and has each entry point with its declarations', () => {
    const { files } = tarball();
    expect(files.filter((path) => /test\.|\.map$/.test(path))).toEqual([]);
    const built = entries.flatMap((name) => ['js', 'cjs', 'd.ts', 'd.cts'].map((ending) => `dist/${name}.${ending}`));
    expect(files).toEqual(expect.arrayContaining(built));
  });
});

describe('in an empty project the package', () => {
  let application: string | undefined;
  const project = (): string => {
    if (application === undefined) {
      application = join(folder.path, 'application');
      mkdirSync(application);
      installed(tarball(), application);
    }
    return application;
  };
  const specifier = (entry: string): string => (entry === 'index' ? 'runspan' : `runspan/${entry}`);

  it('installs the packages that README.md counts, without install scripts, and at most 6.2 MB', () => {
    const lock = JSON.parse(readFileSync(join(project(), 'package-lock.json'), 'utf8'));
    const packages = Object.entries<{ hasInstallScript?: boolean }>(lock.packages).filter(([path]) => path !== '');
    expect(packages.map(([path]) => path).sort()).toEqual(['node_modules/runspan', 'node_modules/undici']);
    expect(packages.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([]);
    const sizeMB = sizeOf(join(project(), 'node_modules')) / 1e6;
    expect(sizeMB).toBeLessThanOrEqual(6.2);
    const [, statedMB, count] = /([\d.]+) MB in (\d+) packages/.exec(read('README.md')) ?? [];
    expect(Number(count)).toBe(packages.length);
    expect(Math.abs(Number(statedMB) - sizeMB)).toBeLessThan(0.06);
  }, 120_000);

  it.each(entries.filter((entry) => entry !== 'otel'))(
    'is imported and required as %s without OpenTelemetry',
    async (entry) => {
      const names = await namesOf(specifier(entry), project());
      expect(names.imported).not.toEqual([]);
      expect(names.required).toEqual(names.imported);
    },
    120_000,
  );

  it('is imported and required as otel with the OpenTelemetry API', async () => {
    const target = join(project(), 'node_modules/@opentelemetry/api');
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(root, 'node_modules/@opentelemetry/api'), target, { recursive: true });
    const names = await namesOf('runspan/otel', project());
    expect(names.imported).not.toEqual([]);
    expect(names.required).toEqual(names.imported);
  }, 120_000);

  it('has its version in package.json and in the code', async () => {
    const script = `console.log(require('runspan/package.json').version)`;
    expect((await runNode(['-e', script], {}, project())).stdout.trim()).toBe(version);
    expect(version).toBe(manifest.version);
  }, 120_000);

  it('has the command, which prints its usage', async () => {
    const answer = await runNode([join('node_modules', '.bin', 'runspan'), '--help'], {}, project());
    expect(answer.stderr).toBe('');
    expect(answer.stdout).toMatch(/^Usage: runspan <command>[\s\S]*\n {2}dev\b/);
    expect(answer.code).toBe(0);
  }, 120_000);

  it('has the demo, which needs no key, no network and no other package', async () => {
    const command = join('node_modules', '.bin', 'runspan');
    const answer = await runNode([command, 'demo', '--json'], {}, project());
    expect([answer.stderr, answer.code]).toEqual(['', 0]);
    expect(JSON.parse(answer.stdout)).toMatchObject({ ok: true, differences: [] });
  }, 120_000);

  it('draws the tree of the first example with runspan dev', async () => {
    const hello = read('examples/hello/hello.js');
    writeFileSync(join(project(), 'hello.mjs'), hello);
    const command = join('node_modules', '.bin', 'runspan');
    const answer = await runNode([command, 'dev', '--port', '0', '--', process.execPath, 'hello.mjs'], {}, project());
    const names = [...hello.matchAll(/\bname: '(\w+)'/g)].map(([, name = '']) => name);
    expect(names.length).toBeGreaterThan(2);
    for (const name of names) expect(answer.stdout).toMatch(new RegExp(`^\\W*${name}\\b`, 'm'));
    expect(answer.code).toBe(0);
  }, 120_000);

  it('has declarations that compile in a strict program that also checks its libraries', async () => {
    const lines = entries.map((entry) => `export * as '${entry}' from '${specifier(entry)}';`);
    writeFileSync(join(project(), 'program.ts'), lines.join('\n'));
    const types = join(project(), 'node_modules/@types');
    mkdirSync(types, { recursive: true });
    symlinkSync(join(root, 'node_modules/@types/node'), join(types, 'node'));
    const flags = '--strict --noEmit --module nodenext --target es2022 --lib es2023,esnext.disposable --types node';
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const args = [tsc, ...flags.split(' '), '--skipLibCheck', 'false', 'program.ts'];
    expect((await runNode(args, {}, project())).stdout).toBe('');
  }, 120_000);
});

function sizeOf(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map((entry) => statSync(join(entry.parentPath, entry.name)).size);
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Returns the exports of a module with `import` and with `require`. Fails if one of them prints an error. */
async function namesOf(specifier: string, cwd: string): Promise<{ imported: string[]; required: string[] }> {
  const print = (module: string): string => `console.log(JSON.stringify(Object.keys(${module}).sort()))`;
  const imported = await runNode(
    ['--input-type=module', '-e', `import * as it from '${specifier}'; ${print('it')}`],
    {},
    cwd,
  );
  const required = await runNode(['--input-type=commonjs', '-e', print(`require('${specifier}')`)], {}, cwd);
  expect(imported.stderr).toBe('');
  expect(required.stderr).toBe('');
  return { imported: JSON.parse(imported.stdout), required: JSON.parse(required.stdout) };
}
