import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout. */
export const root: string = fileURLToPath(new URL('../..', import.meta.url));

/** A new folder, outside of the checkout unless it is told where; `remove` takes it away with all that is in it. */
export function temporaryFolder(within = tmpdir()): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(within, 'runspan-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
