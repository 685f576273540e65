import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { registered } from '../../integrations/registered.ts';
import { installed, pack } from '../../package/packed.ts';
import { root, temporaryFolder } from '../../support/folders.ts';
import { runNode, startNode } from '../../support/program.ts';
import { laterNode } from '../later-node.ts';

const here = fileURLToPath(new URL('.', import.meta.url));
// Below this folder, so that the project finds Jest and TypeScript.
const project = temporaryFolder(here);

beforeAll(() => {
  installed(pack(project.path), project.path);
  cpSync(join(here, 'application'), project.path, { recursive: true });
  const api = '@opentelemetry/api';
  mkdirSync(join(project.path, 'node_modules/@opentelemetry'));
  cpSync(join(root, 'node_modules', api), join(project.path, 'node_modules', api), { recursive: true });
});
afterAll(project.remove);

const modules = join(here, 'node_modules');

it('Jest 30 loads every entry with its default configuration, and runs are recorded and delivered', async () => {
  const { code, stderr } = await runNode([join(modules, 'jest/bin/jest.js'), '--ci'], {}, project.path);
  expect(stderr).toMatch(/Tests: +12 passed, 12 total/);
  expect(stderr).not.toMatch(/ReferenceError|cannot write/);
  expect(code).toBe(0);
});

it.each([
  ['traced', ['ask', '  openai.chat.completions']],
  ['unwrapped', ['openai.chat.completions']],
])('a test file of Jest that loads runspan has its %s calls once, also with runspan/register', async (name, runs) => {
  const jest = [join(modules, 'jest/bin/jest.js'), '--ci', '--testMatch', `**/${name}.js`];
  const command = [laterNode(), '--import', 'runspan/register', ...jest];
  const { stdout, stderr, tree } = await registered(command, {}, project.path);
  expect(stderr).toMatch(/Tests: +1 passed/);
  // Jest prints the lines of runspan to standard output.
  expect(stdout).not.toContain('runspan:');
  expect(tree).toEqual(runs);
});

it.each(['--module node16', '--module commonjs --moduleResolution node10'])(
  'TypeScript 5.9 compiles a CommonJS program that imports every entry with %s',
  async (options) => {
    const flags = `${options} --target es2022 --lib es2023,esnext.disposable --strict --types node --skipLibCheck false`;
    // Checking all declarations takes half a minute on a busy machine.
    const tsc = join(modules, 'typescript/bin/tsc');
    const compiled = await startNode([tsc, ...flags.split(' '), 'program.ts'], {}, project.path, 100_000).ended;
    expect(compiled).toMatchObject({ code: 0, stdout: '' });
    const { code, stdout, stderr } = await runNode(['program.js'], {}, project.path);
    expect([code, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toEqual({ doubled: 42, name: 'double', empty: [] });
  },
  120_000,
);
