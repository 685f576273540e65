import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, parse } from 'node:path';
import { transformWithEsbuild } from 'vite';
import { linkRunspan, root } from '../support/folders.ts';
import { guides, read } from './repository.ts';
import { type Snippet, snippetsOf } from './snippets.ts';

export const pages: readonly string[] = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', ...guides].filter((page) =>
  existsSync(join(root, page)),
);
export const snippets: readonly Snippet[] = pages.flatMap((page) => snippetsOf(page, read(page)));
export const ofPeers: readonly Snippet[] = snippets.filter(({ isOfPeers }) => isOfPeers);

/** The programs that run with the built package. */
export const programs: readonly Snippet[] = snippets.filter(
  ({ language, notRun, isOfPeers }) => /^[jt]s$/.test(language) && notRun === undefined && !isOfPeers,
);
export const shells: readonly Snippet[] = snippets.filter(
  ({ language, notRun, isOfPeers }) => language === 'sh' && notRun === undefined && !isOfPeers,
);

/** The files that programs and commands of a page read. */
const files = snippets.filter(({ language, file }) => language === 'json' && file !== undefined);

/** Writes the programs and files of each page into a folder of a project, which has this repository as `runspan`. */
export async function layOutPrograms(folder: string): Promise<void> {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  linkRunspan(folder, readdirSync(join(root, 'node_modules')));
  for (const snippet of [...programs, ...files]) await write(folder, snippet);
}

export function folderOf({ place }: Snippet): string {
  return place.replace(/\.md:\d+$/, '');
}

/** Returns the path of a snippet. A snippet without a file name is named after its line. */
export function sourceOf(program: Snippet): string {
  const name = program.file ?? `line-${program.place.split(':')[1]}.${program.language}`;
  return join(folderOf(program), name);
}

export function fileOf(program: Snippet): { dir: string; base: string } {
  const { dir, name, ext } = parse(sourceOf(program));
  return { dir, base: `${name}${ext === '.ts' ? '.js' : ext}` };
}

async function write(folder: string, program: Snippet): Promise<void> {
  const { dir, base } = fileOf(program);
  mkdirSync(join(folder, dir), { recursive: true });
  writeFileSync(join(folder, sourceOf(program)), program.code);
  if (program.language !== 'ts') return;
  const { code } = await transformWithEsbuild(program.code, sourceOf(program), { target: 'es2022', tsconfigRaw: {} });
  writeFileSync(join(folder, dir, base), code);
}
