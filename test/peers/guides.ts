import { copyFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { read } from '../package/repository.ts';
import { type Snippet, snippetsOf } from '../package/snippets.ts';
import { root, temporaryFolder } from '../support/folders.ts';

/** Returns the snippets of a page. */
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
