import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { read } from './repository.ts';

const page = read('ARCHITECTURE.md');
const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());

/** The names between backquotes; three transports share one ending. */
function namesIn(text: string): Set<string> {
  const names = [...text.matchAll(/`([\w/-]+\.(?:tsx?|json|css|html|svg)|[\w-]+-)`/g)].map(([, name = '']) => name);
  return new Set(names.map((name) => (name.endsWith('-') ? `${name}transport.ts` : name)));
}

/** The paths of all files below a folder, in order. */
function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return entries.map((entry) => relative(folder, join(entry.parentPath, entry.name))).sort();
}

describe('ARCHITECTURE.md', () => {
  it.each(folders.map(({ name }) => name))('has a word for every file of src/%s, and for no other', (folder) => {
    const start = page.search(new RegExp(`^\`${folder}/\``, 'm'));
    const rest = page.slice(start + 1);
    const end = rest.search(/^(`\w+\/`|##|Beside)/m);

    // A row may mention a file of another folder of `src`.
    const named = [...namesIn(rest.slice(0, end))].filter(
      (name) => !folders.some((other) => name.startsWith(`${other.name}/`)),
    );
    expect(named.sort()).toEqual(filesIn(join(root, 'src', folder)));
  });
});
