import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { StoreError } from './store-error.ts';

/**
 * Makes a folder, and those that it is to be in, for their owner alone. One by one: of a place that takes no folder, as `/proc`, the recursive `mkdir` of
 * Node never comes back.
 */
export function makeFolder(folder: string): void {
  const missing: string[] = [];
  for (let path = resolve(folder); !existsSync(path); path = dirname(path)) missing.unshift(path);
  try {
    for (const path of missing) make(path);
  } catch (error) {
    throw new StoreError(
      `The folder ${folder} cannot be made: ${(error as Error).message}; name another one with --data.`,
    );
  }
  if (!statSync(folder).isDirectory())
    throw new StoreError(`${folder} is a file, and has to be a folder; name one with --data.`);
}

function make(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Somebody else has made it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !existsSync(path)) throw error;
  }
}
