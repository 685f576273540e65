import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { version } from '../../src/base/version.ts';
import { installed, node, pack, type Tarball, temporaryFolder } from './packed.ts';
import { entries, manifest, read, root } from './repository.ts';
import { snippetsOf } from './snippets.ts';

const folder = temporaryFolder();
afterAll(folder.remove);

let packed: Tarball | undefined;
const tarball = (): Tarball => {
  packed ??= pack(folder.path);
  return packed;
};

describe('the tarball', () => {
  it('has the files of the committed list; npm run api updates it', async () => {
    const list = `${tarball().files.join('\n')}\n`;
    await expect(list).toMatchFileSnapshot('tarball-files.txt', 'update it with: npm run api');
  });

  it('brings no tests, no sources and no maps', () => {
    expect(tarball().files.filter((path) => /test\.|\.map$|^(src|test)\/|(?<!\.d)\.ts$/.test(path))).toEqual([]);
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

  it('brings few packages of others', () => {
    const lock = JSON.parse(readFileSync(join(project(), 'package-lock.json'), 'utf8'));
    const names = Object.keys(lock.packages).filter((path) => path !== '' && path !== 'node_modules/runspan');
    expect(names.length).toBeLessThanOrEqual(10);
  }, 120_000);

  it.each(entries.filter((entry) => entry !== 'otel'))(
    'is imported and required as %s without OpenTelemetry',
    (entry) => {
      const names = namesOf(specifier(entry), project());
      expect(names.imported).not.toEqual([]);
      expect(names.required).toEqual(names.imported);
    },
    120_000,
  );

  it('is imported and required as otel beside the OpenTelemetry API', () => {
    const target = join(project(), 'node_modules/@opentelemetry/api');
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(root, 'node_modules/@opentelemetry/api'), target, { recursive: true });
    const names = namesOf('runspan/otel', project());
    expect(names.imported).not.toEqual([]);
    expect(names.required).toEqual(names.imported);
  }, 120_000);

  it('has its version in package.json and in the code', () => {
    const script = `console.log(require('runspan/package.json').version)`;
    expect(node(['-e', script], project()).stdout.trim()).toBe(version);
    expect(version).toBe(manifest.version);
  }, 120_000);

  it('brings the command, which tells how it is used', () => {
    const answer = node([join('node_modules', '.bin', 'runspan'), '--help'], project());
    expect(answer.stderr).toBe('');
    expect(answer.stdout).toMatch(/^Usage: runspan <command>[\s\S]*\n {2}dev\b/);
    expect(answer.status).toBe(0);
  }, 120_000);

  it('draws the tree of the program in README.md when that runs under runspan dev', () => {
    const hello = snippetsOf('README.md', read('README.md')).find(({ file }) => file === 'hello.js');
    writeFileSync(join(project(), 'hello.mjs'), hello?.code ?? '');
    const command = join('node_modules', '.bin', 'runspan');
    const answer = node([command, 'dev', '--port', '0', '--', process.execPath, 'hello.mjs'], project());
    const names = [...(hello?.code ?? '').matchAll(/\bname: '(\w+)'/g)].map(([, name = '']) => name);
    expect(names.length).toBeGreaterThan(2);
    for (const name of names) expect(answer.stdout).toMatch(new RegExp(`^\\W*${name}\\b`, 'm'));
    expect(answer.status).toBe(0);
  }, 120_000);

  it('brings declarations that compile for a strict program that checks its libraries too', () => {
    const lines = entries.map((entry) => `export * as ${entry} from '${specifier(entry)}';`);
    writeFileSync(join(project(), 'program.ts'), lines.join('\n'));
    const types = join(project(), 'node_modules/@types');
    mkdirSync(types, { recursive: true });
    symlinkSync(join(root, 'node_modules/@types/node'), join(types, 'node'));
    const flags = '--strict --noEmit --module nodenext --target es2022 --lib es2023,esnext.disposable --types node';
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    expect(node([tsc, ...flags.split(' '), '--skipLibCheck', 'false', 'program.ts'], project()).stdout).toBe('');
  }, 120_000);
});

/** The names that a module gives by `import` and by `require`, with nothing printed beside them. */
function namesOf(specifier: string, cwd: string): { imported: string[]; required: string[] } {
  const print = (module: string): string => `console.log(JSON.stringify(Object.keys(${module}).sort()))`;
  const imported = node(['--input-type=module', '-e', `import * as it from '${specifier}'; ${print('it')}`], cwd);
  const required = node(['--input-type=commonjs', '-e', print(`require('${specifier}')`)], cwd);
  expect(imported.stderr).toBe('');
  expect(required.stderr).toBe('');
  return { imported: JSON.parse(imported.stdout), required: JSON.parse(required.stdout) };
}
