import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { read } from '../package/repository.ts';
import { type Snippet, snippetsOf } from '../package/snippets.ts';
import { root, temporaryFolder } from '../support/folders.ts';

export function guide(page: string): readonly Snippet[] {
  return snippetsOf(page, read(page));
}

/** Writes files of a page into a new project. The project finds the packages of `folder`, and runspan as installed. */
export function projectWith(files: readonly Pick<Snippet, 'file' | 'code'>[], folder: string): string {
  const project = temporaryFolder(folder);
  onTestFinished(project.remove);
  for (const { file = '', code } of files) {
    const path = join(project.path, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, code);
  }
  const installed = join(project.path, 'node_modules/runspan');
  mkdirSync(installed, { recursive: true });
  copyFileSync(join(root, 'package.json'), join(installed, 'package.json'));
  cpSync(join(root, 'dist'), join(installed, 'dist'), { recursive: true });
  return project.path;
}

/** Compiles files of a project with TypeScript under strict. Throws if a type is wrong. */
export function compile(project: string, options: string, files: readonly string[]): void {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const always = '--ignoreConfig --strict --target es2022 --types node --skipLibCheck';
  const args = [tsc, ...`${always} ${options}`.split(' '), ...files];
  execFileSync(process.execPath, args, { cwd: project, stdio: ['ignore', 'inherit', 'inherit'] });
}
