import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { root, temporaryFolder } from '../support/folders.ts';

/** A file with this code in a folder that has what the peers have, and the checkout itself as `runspan`. */
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
