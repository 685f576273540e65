import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from './folders.ts';

/** Returns a folder with these files by path, which is deleted when the test has finished. */
export function testFolder(files: Readonly<Record<string, string>> = {}): string {
  const folder = temporaryFolder();
  onTestFinished(folder.remove);
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  return folder.path;
}
