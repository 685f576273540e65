import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { entryOf } from '#src/register/entry.ts';
import { testFolder } from '../support/test-folder.ts';

function inPackage(...path: string[]): string {
  const folder = testFolder({ 'package.json': '{"name":"weather"}' });
  mkdirSync(join(folder, 'src'));
  return join(folder, ...path);
}

test('the script and the working directory are relative to the folder with package.json, and options to the latter', () => {
  const root = inPackage();
  const loader = pathToFileURL(join(root, 'node_modules/tsx/dist/loader.mjs')).href;
  const hoisted = join(root, '../node_modules/tsx/dist/preflight.cjs');
  const files = [`--require=${hoisted}`, `--env-file=${join(root, 'src/local.env')}`, '--env-file=.env'];
  const options = ['--import', loader, ...files, '--import', 'runspan/register'];
  expect(entryOf(['/usr/bin/node', join(root, 'src/agent.ts'), '--city', 'Cork'], options, join(root, 'src'))).toEqual({
    package: 'weather',
    script: 'src/agent.ts',
    args: ['--city', 'Cork'],
    options: [
      '--import',
      '../node_modules/tsx/dist/loader.mjs',
      '--require=../../node_modules/tsx/dist/preflight.cjs',
      '--env-file=./local.env',
      '--env-file=.env',
    ],
    folder: 'src',
  });
});

test.each([
  [
    ['--api-key', 'abc'],
    ['--api-key', '[Redacted]'],
  ],
  [['--api-key=abc'], ['--api-key=[Redacted]']],
  [['OPENAI_API_KEY=abc'], ['OPENAI_API_KEY=[Redacted]']],
  [
    ['--password', 'abc', 'def'],
    ['--password', '[Redacted]', 'def'],
  ],
  [['https://ada:abc@example.com'], ['https://[Redacted]@example.com']],
  [
    ['--name', 'Ada', '-v'],
    ['--name', 'Ada', '-v'],
  ],
])('the arguments %j are recorded as %j', (args, shown) => {
  const script = inPackage('agent.js');
  expect(entryOf(['node', script, ...args], [], join(script, '..'))).toEqual({
    package: 'weather',
    script: 'agent.js',
    args: shown,
    options: [],
  });
});

test.each([
  [['-e', '1']],
  [['--input-type=module', '--eval', 'secret']],
  [['--import', 'data:text/javascript,1']],
  [['-p', '1']],
])('a program with code in the options %j has no entry', (options) => {
  expect(entryOf(['node'], options, '/')).toBeUndefined();
  expect(entryOf(['node', inPackage('agent.js')], options, '/')).toBeUndefined();
});

test('options that load runspan, and those of a debugger and of the watch mode, are left out', () => {
  const script = inPackage('agent.js');
  const options = [
    ...['-r', 'runspan/register', '--inspect-port', '0', '--inspect-brk=1'],
    ...['--watch-path', 'src', '--watch', '--no-warnings'],
  ];
  expect(entryOf(['node', script], options, join(script, '..'))?.options).toEqual(['--no-warnings']);
});
