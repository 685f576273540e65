import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Keeps a note, and says so. */
export type SaveNote = (text: string) => Promise<string>;

/** Notes in a file of a folder; without one they are gone with the process. */
export function noteKeeper(folder: string | undefined): SaveNote {
  if (folder === undefined) return async (text) => `Saved until the chat ends: ${text}`;
  return async (text) => {
    await appendFile(join(folder, 'notes.md'), `- ${text.replaceAll('\n', '\n  ')}\n`, { mode: 0o600 });
    return `Saved: ${text}`;
  };
}
