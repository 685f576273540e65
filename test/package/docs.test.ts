import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { errorCodes } from '#src/base/errors.ts';
import { OWN_VARIABLES } from '#src/config/environment.ts';
import { runMain } from '../support/command.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { runNode } from '../support/program.ts';
import {
  fileOf,
  folderOf,
  layOutPrograms,
  ofPeers,
  pages,
  programs,
  shells,
  snippets,
  sourceOf,
} from './documentation.ts';
import { importedBy, installedAbove } from './installs.ts';
import { anchorsOf, brokenLinks, pagesWithin } from './page-links.ts';
import { filesUnder, guides, manifest, read } from './repository.ts';
import { commandsOf, type Snippet } from './snippets.ts';

const NOT_RUN_MAX = 5;
const GUIDES_MAX = 40;
const WORDS_MAX = 70_000;
const GENERATED = ['docs/benchmarks-tables.md', 'docs/opentelemetry-attributes.md'];
const LANGUAGES = ['js', 'jsx', 'ts', 'sh', 'text', 'console', 'json', 'yaml', 'toml', 'ini', 'nginx', 'dockerfile'];

describe('the pages', () => {
  it('define each word of the glossary once', () => {
    const [, glossary = ''] = read('ARCHITECTURE.md').split('## Glossary');
    const rows = [...glossary.matchAll(/^\| ([^|]+) \|/gm)].slice(2);
    const words = rows.flatMap(([, cell = '']) => cell.split(', '));
    expect(words.length).toBeGreaterThan(40);
    expect(words).toEqual([...new Set(words)]);
  });

  it('include README.md, ARCHITECTURE.md and docs/errors.md', () => {
    expect(pages).toEqual(expect.arrayContaining(['README.md', 'ARCHITECTURE.md', 'docs/errors.md']));
  });

  it('in docs/ are few, and have few words, without the generated pages', () => {
    const written = guides.filter((page) => !GENERATED.includes(page));
    const words = written.flatMap((page) => read(page).match(/\S+/g) ?? []);
    expect(written.length).toBeLessThanOrEqual(GUIDES_MAX);
    expect(words.length).toBeLessThanOrEqual(WORDS_MAX);
    expect(read('README.md').match(/\n/g)?.length).toBeLessThanOrEqual(200);
  });

  it('on one SDK have the same sections', () => {
    const names = ['ai-sdk', 'anthropic', 'bedrock', 'claude-agent', 'langchain', 'mastra', 'mcp', 'openai'];
    const sections = /^## Install$.*^## Three lines$.*^## What is recorded$.*^## Limits$/ms;
    expect(names.filter((name) => !sections.test(read(`docs/${name}.md`)))).toEqual([]);
  });

  it('have a language for each code block', () => {
    expect(snippets.filter(({ language }) => !LANGUAGES.includes(language)).map(({ place }) => place)).toEqual([]);
  });

  it('have valid YAML', () => {
    const files = snippets.filter(({ language }) => language === 'yaml');
    const errors = files.flatMap(({ place, code }) =>
      parseAllDocuments(code).flatMap((document) => document.errors.map(({ message }) => `${place}: ${message}`)),
    );
    expect(files.length).toBeGreaterThan(0);
    expect(errors).toEqual([]);
  });

  it('install each package that a program imports, with the version that is tested', () => {
    const page = (lines: string): string => `# A\n\n\`npm install --save-dev ${lines}\`, or:\n\nnpm install b\n`;
    expect([...installedAbove(page('@a/b@5 runspan ../c.tgz'))]).toEqual([
      ...new Map([
        ['@a/b', '5'],
        ['runspan', ''],
        ['b', ''],
      ]),
    ]);
    expect(installedAbove(page('a@5'), 3).has('b')).toBe(false);
    expect(
      importedBy("import type { A } from 'a';\nimport 'b/c';\nimport d from '@d/e';\nimport { f } from './f.js';\n"),
    ).toEqual(['b', '@d/e']);

    // The chat has a package.json of its own.
    const guided = snippets.filter(({ place, notRun }) => /^docs\/(?!chat)/.test(place) && notRun === undefined);
    const missing = guided.flatMap(({ code, file, place }) => {
      const [path = '', line] = place.split(':');
      // Blocks with a file name are one application.
      const installed = installedAbove(read(path), file === undefined ? Number(line) : undefined);
      return importedBy(code).flatMap((name) => (installed.get(name) ? [] : [`${place}: ${name}`]));
    });
    expect(missing).toEqual([]);
    const unversioned = guides.flatMap((path) =>
      [...installedAbove(read(path))].flatMap(([name, version]) =>
        name === 'runspan' || version !== '' ? [] : [`${path}: ${name}`],
      ),
    );
    expect(unversioned).toEqual([]);
  });

  it('have few snippets that are not run', () => {
    const notRun = snippets.flatMap(({ place, notRun }) => (notRun === undefined ? [] : [`${place}: ${notRun}`]));
    expect(notRun.length, notRun.join('\n')).toBeLessThanOrEqual(NOT_RUN_MAX);
  });

  it('have an output only for snippets that are run', () => {
    const runs = [...programs, ...shells, ...ofPeers];
    const idle = snippets.filter((one) => one.prints !== undefined && !runs.includes(one));
    expect(idle.map(({ place }) => place)).toEqual([]);
  });

  it('have an output only of a snippet, or of a named test', () => {
    const outputs = snippets.filter(
      ({ language, place }) => /^(text|console)$/.test(language) && !place.startsWith('ARCH'),
    );
    const isTested = ({ code, testedBy: [path = '', text = ''] = [] }: Snippet): boolean =>
      text !== '' && code.replaceAll('\n', ' ').includes(text) && read(path).includes(text);
    expect(outputs.filter((one) => !isTested(one)).map(({ place }) => place)).toEqual([]);
  });

  it('show only screenshots whose text `npm run check -- release` compares', () => {
    const shown = pages.flatMap((page) =>
      [...read(page).matchAll(/(?:!\[[^\]]*\]\(|\bsrc(?:set)?=")([^)"]+)/g)].map(([, path = '']) => basename(path)),
    );
    const compared = [...read('docs/images/texts.txt').matchAll(/^# (.+\.png)$/gm)].map(([, name = '']) => name);
    expect([...new Set(shown)].sort()).toEqual(compared.sort());
    expect(filesUnder('docs/images', '.png')).toEqual(compared);
  });

  it('have no broken links, and neither have the reference and the READMEs of the examples', () => {
    const examples = readdirSync(join(root, 'examples')).map((name) => `examples/${name}/README.md`);
    const reference = filesUnder('docs/reference', '.md').map((page) => `docs/reference/${page}`);
    const linking = [...pages, ...reference, ...examples.filter((page) => existsSync(join(root, page)))];
    expect(linking).toContain('examples/chat/README.md');
    expect(brokenLinks(linking)).toEqual([]);
  });

  it('are at most two links away from README.md', () => {
    const near = pagesWithin(2, 'README.md');
    expect(pages.filter((page) => !near.has(page))).toEqual([]);
  });

  it('have headings with anchors', () => {
    const page =
      '# A `run-id`, its *place*\n\n## [More](more.md)?\n\n## More\n\n```sh\n# no heading\n```\n\n<a id="own"></a>\n';
    expect([...anchorsOf(page)].sort()).toEqual(['a-run-id-its-place', 'more', 'more-1', 'own']);
  });

  it('count the faults of docs/faults.md in README.md', () => {
    const rows = [...read('docs/faults.md').matchAll(/^\| (\d+) \|/gm)].map(([, number]) => Number(number));
    expect(rows).toEqual(rows.map((_, at) => at + 1));
    expect(read('README.md')).toContain(`the effect of ${rows.length} faults`);
  });

  it('name scripts that exist', () => {
    const names = pages.flatMap((page) => [...read(page).matchAll(/\bnpm run ([\w:]+)/g)].map(([, name = '']) => name));
    // Pages about the chat also name scripts of its copy.
    const scripts = { ...manifest.scripts, ...JSON.parse(read('examples/chat/package.json')).scripts };
    expect([...new Set(names)].filter((name) => !(name in scripts))).toEqual([]);
  });

  it('name exactly the environment variables that are read', () => {
    const names = [...new Set(pages.flatMap((page) => read(page).match(/\bRUNSPAN_[A-Z_]*[A-Z]\b/g) ?? []))];
    expect(names.filter((name) => !(name in errorCodes)).sort()).toEqual(OWN_VARIABLES.toSorted());
  });
});

describe('the snippets', () => {
  const folder = temporaryFolder();
  beforeAll(() => layOutPrograms(folder.path));
  afterAll(folder.remove);

  it('in TypeScript compile under strict', async () => {
    const typed = programs.filter(({ language }) => language === 'ts').map((program) => sourceOf(program));
    const flags = '--noEmit --strict --module nodenext --target es2022 --lib es2023,esnext.disposable --types node';
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const args = [tsc, ...flags.split(' '), '--skipLibCheck', ...typed];
    if (typed.length > 0) expect((await runNode(args, {}, folder.path)).stdout).toBe('');
  });

  it.each(shells.map((shell) => [shell.place, shell] as const))('%s name commands that exist', async (_, shell) => {
    for (const command of commandsOf(shell.code)) expect(await unknownIn(command, shell), command).toEqual([]);
  });
});

/** Returns the words of a command that do not exist: its script, its file or its options. */
async function unknownIn(line: string, shell: Snippet): Promise<string[]> {
  const words = line.split(/\s+/).filter((word) => !/^[A-Z_]+=/.test(word));
  const [program, first = '', second = '', third = ''] = words;
  if (program === 'npm' && first === 'run') return second in manifest.scripts ? [] : [second];
  if (program === 'npm' && first === 'test') return 'test' in manifest.scripts ? [] : [first];
  const file = first === '--import' ? third : first;
  if (program === 'node') return existsHere(file, shell) ? [] : [file];
  if (program !== 'npx' || first !== 'runspan') return [];
  const action = /^(keys|set|spool|store|deployments)$/.test(second) ? [await helpOf(second, third)] : [];
  const texts = [await helpOf(), await helpOf(second), ...action];
  const own = words.slice(2, words.includes('--') ? words.indexOf('--') : undefined);
  const known = texts.flatMap((text) => text.split(/[\s,[\]=]+/));
  return own.filter((word, index) => (index === 0 || word.startsWith('-')) && !known.includes(word));
}

const helps = new Map<string, string>();

/** Returns the help of a command. Each help is read once. */
async function helpOf(...subcommand: readonly string[]): Promise<string> {
  const name = subcommand.join(' ');
  const help = helps.get(name) ?? (await runMain([...subcommand, '--help'])).stdout;
  helps.set(name, help);
  return help;
}

function existsHere(file: string, shell: Snippet): boolean {
  const files = [...programs, ...ofPeers];
  const written = files.some((one) => folderOf(one) === folderOf(shell) && fileOf(one).base === file);
  return written || existsSync(join(root, dirname(shell.place), file)) || existsSync(join(root, file));
}
