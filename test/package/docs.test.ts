import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, parse } from 'node:path';
import { transformWithEsbuild } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorCodes } from '../../src/base/errors.ts';
import { createReceiver, type Receiver } from '../../src/receiver.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { runNode } from '../support/program.ts';
import { anchorsOf, brokenLinks } from './page-links.ts';
import { filesUnder, manifest, read } from './repository.ts';
import { commandsOf, masked, type Snippet, snippetsOf } from './snippets.ts';

const NOT_RUN_MAX = 5;
const LANGUAGES = ['js', 'ts', 'sh', 'text', 'console', 'json'];

const pages = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  ...filesUnder('docs', '.md').map((path) => `docs/${path}`),
].filter((page) => existsSync(join(root, page)));
const snippets = pages.flatMap((page) => snippetsOf(page, read(page)));
const ofPeers = snippets.filter(({ isOfPeers }) => isOfPeers);
const programs = snippets.filter(
  ({ language, notRun, isOfPeers }) => /^[jt]s$/.test(language) && notRun === undefined && !isOfPeers,
);
const shells = snippets.filter(({ language, notRun }) => language === 'sh' && notRun === undefined);

describe('the pages', () => {
  it('are those that readers look for first, and more', () => {
    expect(pages).toEqual(expect.arrayContaining(['README.md', 'ARCHITECTURE.md', 'docs/errors.md']));
  });

  it('say the language of every block, so that none is passed over', () => {
    expect(snippets.filter(({ language }) => !LANGUAGES.includes(language)).map(({ place }) => place)).toEqual([]);
  });

  it('leave few snippets to trust', () => {
    const notRun = snippets.flatMap(({ place, notRun }) => (notRun === undefined ? [] : [`${place}: ${notRun}`]));
    expect(notRun.length, notRun.join('\n')).toBeLessThanOrEqual(NOT_RUN_MAX);
  });

  it('say of nothing what it prints that is not run', () => {
    const runs = [...programs, ...shells, ...ofPeers];
    const idle = snippets.filter((one) => one.prints !== undefined && !runs.includes(one));
    expect(idle.map(({ place }) => place)).toEqual([]);
  });

  it('link to pages and headings that are there, as those of the examples do', () => {
    const examples = readdirSync(join(root, 'examples')).map((name) => `examples/${name}/README.md`);
    const linking = [...pages, ...examples.filter((page) => existsSync(join(root, page)))];
    expect(linking).toContain('examples/chat/README.md');
    expect(brokenLinks(linking)).toEqual([]);
  });

  it('have headings that are linked to by their words', () => {
    const page =
      '# A `run-id`, its *place*\n\n## [More](more.md)?\n\n## More\n\n```sh\n# no heading\n```\n\n<a id="own"></a>\n';
    expect([...anchorsOf(page)].sort()).toEqual(['a-run-id-its-place', 'more', 'more-1', 'own']);
  });

  it('name scripts that exist', () => {
    const names = pages.flatMap((page) => [...read(page).matchAll(/\bnpm run ([\w:]+)/g)].map(([, name = '']) => name));
    expect([...new Set(names)].filter((name) => !(name in manifest.scripts))).toEqual([]);
  });

  it('name every variable of the environment that is read, and no other', () => {
    const names = [...new Set(pages.flatMap((page) => read(page).match(/\bRUNSPAN_[A-Z_]*[A-Z]\b/g) ?? []))];
    const readNames = read('src/base/env.ts').match(/\bRUNSPAN_[A-Z_]*[A-Z]\b/g) ?? [];
    expect(names.filter((name) => !(name in errorCodes)).sort()).toEqual([...new Set(readNames)].sort());
  });
});

describe('the snippet', () => {
  const folder = temporaryFolder();
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await createReceiver({ port: 0 });
    layOut(folder.path);
    for (const program of programs) await write(folder.path, program);
  });

  afterAll(async () => {
    await receiver?.close();
    folder.remove();
  });

  it.each(programs.map((program) => [program.place, program] as const))('%s runs', async (_, program) => {
    const path = fileOf(program);
    const output = await run([path.base], join(folder.path, path.dir), receiver.url);
    if (program.prints !== undefined) expect(masked(output)).toEqual(masked(program.prints));
  });

  it('in TypeScript compiles under strict', async () => {
    const typed = programs.filter(({ language }) => language === 'ts').map((program) => sourceOf(program));
    const flags = '--noEmit --strict --module nodenext --target es2022 --lib es2023,esnext.disposable --types node';
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const args = [tsc, ...flags.split(' '), '--skipLibCheck', ...typed];
    if (typed.length > 0) expect((await runNode(args, {}, folder.path)).stdout).toBe('');
  });

  it.each(shells.map((shell) => [shell.place, shell] as const))(
    '%s is made of commands that exist',
    async (_, shell) => {
      for (const command of commandsOf(shell.code)) expect(await unknownIn(command, shell), command).toEqual([]);
      if (shell.prints === undefined) return;
      let output = '';
      for (const command of commandsOf(shell.code)) {
        output += await run(argumentsOf(command), join(folder.path, folderOf(shell)), receiver.url);
      }
      expect(masked(output)).toEqual(masked(shell.prints));
    },
  );
});

/** A project that has what the checkout has, and the checkout itself as `runspan`. */
function layOut(folder: string): void {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  mkdirSync(join(folder, 'node_modules'));
  for (const name of readdirSync(join(root, 'node_modules'))) {
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  }
  symlinkSync(root, join(folder, 'node_modules/runspan'));
}

async function write(folder: string, program: Snippet): Promise<void> {
  const { dir, base } = fileOf(program);
  mkdirSync(join(folder, dir), { recursive: true });
  writeFileSync(join(folder, sourceOf(program)), program.code);
  if (program.language !== 'ts') return;
  const { code } = await transformWithEsbuild(program.code, sourceOf(program), { target: 'es2022', tsconfigRaw: {} });
  writeFileSync(join(folder, dir, base), code);
}

/** Every page has a folder; a snippet without a name is called after its line. */
function folderOf({ place }: Snippet): string {
  return place.replace(/\.md:\d+$/, '');
}

function sourceOf(program: Snippet): string {
  const name = program.file ?? `line-${program.place.split(':')[1]}.${program.language}`;
  return join(folderOf(program), name);
}

function fileOf(program: Snippet): { dir: string; base: string } {
  const { dir, name, ext } = parse(sourceOf(program));
  return { dir, base: `${name}${ext === '.ts' ? '.js' : ext}` };
}

/** What of a command does not exist: its script, its file, its option. */
async function unknownIn(line: string, shell: Snippet): Promise<string[]> {
  const words = line.split(/\s+/).filter((word) => !/^[A-Z_]+=/.test(word));
  const [program, first = '', second = ''] = words;
  if (program === 'npm' && first === 'run') return second in manifest.scripts ? [] : [second];
  if (program === 'npm' && first === 'test') return 'test' in manifest.scripts ? [] : [first];
  if (program === 'node') return existsHere(first, shell) ? [] : [first];
  if (program !== 'npx' || first !== 'runspan') return [];
  const texts = await Promise.all([helpOf(), helpOf(second)]);
  const own = words.slice(2, words.includes('--') ? words.indexOf('--') : undefined);
  const known = texts.flatMap((text) => text.split(/[\s,[\]=]+/));
  return own.filter((word, index) => (index === 0 || word.startsWith('-')) && !known.includes(word));
}

const helps = new Map<string, Promise<string>>();

/** What the command says of itself; of a command that many pages have it is asked once. */
function helpOf(...subcommand: readonly string[]): Promise<string> {
  const [name = ''] = subcommand;
  const help =
    helps.get(name) ??
    runNode([join(root, manifest.bin.runspan ?? ''), ...subcommand, '--help']).then(({ stdout }) => stdout);
  helps.set(name, help);
  return help;
}

function existsHere(file: string, shell: Snippet): boolean {
  const written = programs.some((one) => folderOf(one) === folderOf(shell) && fileOf(one).base === file);
  return written || existsSync(join(root, dirname(shell.place), file)) || existsSync(join(root, file));
}

/** The arguments for Node of a command that a page says the output of. */
function argumentsOf(command: string): string[] {
  const [program, ...rest] = command.split(/\s+/);
  if (program === 'node') return rest;
  if (program !== 'npx' || rest[0] !== 'runspan') throw new Error(`a test cannot run: ${command}`);
  const [, subcommand = '', ...options] = rest;
  // The usual port may be taken on the machine that tests.
  const port = subcommand === 'dev' && !options.includes('--port') ? ['--port', '0'] : [];
  return [join(root, manifest.bin.runspan ?? ''), subcommand, ...port, ...options];
}

/** The standard output of a program of Node, which has to end well, in time, and without a complaint of ours. */
async function run(args: readonly string[], cwd: string, endpoint: string): Promise<string> {
  const { code, signal, stdout, stderr } = await runNode(args, { RUNSPAN_ENDPOINT: endpoint }, cwd);
  if (code === 0 && !/^runspan: /m.test(stderr)) return stdout;
  throw new Error(`${args.join(' ')} ended with ${code ?? signal}:\n${stderr}${stdout}`);
}
