import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { type Snippet, snippetsOf } from '../package/snippets.ts';
import { root, temporaryFolder } from '../support/folders.ts';

/** Writes this code to a file in a folder that has the peers' packages, and the checkout itself as `runspan`. */
export function asApplication(code: string): string {
  const folder = temporaryFolder();
  onTestFinished(folder.remove);
  const installed = fileURLToPath(new URL('./otel/node_modules', import.meta.url));
  mkdirSync(join(folder.path, 'node_modules'));
  for (const name of readdirSync(installed))
    symlinkSync(join(installed, name), join(folder.path, 'node_modules', name));
  symlinkSync(root, join(folder.path, 'node_modules/runspan'));
  const path = join(folder.path, 'program.mjs');
  writeFileSync(path, code);
  return path;
}

/** Returns the snippets of a page, by its path in the repository. */
export function snippetsIn(page: string): Snippet[] {
  return snippetsOf(page, readFileSync(join(root, page), 'utf8'));
}

/** Returns the snippet of docs/opentelemetry.md whose code contains the text. */
export function snippetWith(text: string): string {
  const [snippet] = snippetsIn('docs/opentelemetry.md').filter(({ code }) => code.includes(text));
  if (snippet === undefined) throw new Error(`docs/opentelemetry.md has no snippet with ${text}`);
  return snippet.code;
}
