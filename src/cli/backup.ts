import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { visible } from '../base/text.ts';
import { SqliteStore } from '../receiver/store/sqlite-store.ts';
import { storeFile } from './dev-store.ts';
import { sizeText } from './spool.ts';
import { quoted } from './terminal-text.ts';
import { lastOf, readWords } from './words.ts';

/** The parsed arguments of `runspan backup`. */
export interface BackupInvocation {
  readonly kind: 'backup';
  /** The file to write. */
  readonly file: string;
  /** The file to copy. Undefined selects the default store. */
  readonly store: string | undefined;
}

type Parsed =
  | BackupInvocation
  | { readonly kind: 'help'; readonly topic: 'backup' }
  | { readonly kind: 'mistake'; readonly message: string; readonly topic: 'backup' };

export const backupUsage = `Usage: runspan backup <file> [--store file]

Copies all runs of a store to a new file that can be opened in its place. A receiver may write to
the store meanwhile. An existing file is not overwritten.

Options:
  --store <file>  the file to copy (default RUNSPAN_STORE, else ~/.runspan/runs.db)
  -h, --help      print this

Exit code:
  0; 1 when the copy cannot be made; 2 for a mistake in the arguments
`;

/** Parses the arguments after `runspan backup`. Never throws. */
export function parseBackup(argv: readonly string[]): Parsed {
  const words = readWords(argv, { texts: ['store'] });
  if ('wrong' in words) return mistake(words.wrong);
  if (words.flags.has('help')) return { kind: 'help', topic: 'backup' };
  const [file, another] = words.positionals;
  if (!file) return mistake('expected the file to write');
  if (another !== undefined) return mistake(`unexpected ${quoted(another)}`);
  return { kind: 'backup', file, store: lastOf(words, 'store') };
}

function mistake(message: string): Parsed {
  return { kind: 'mistake', message, topic: 'backup' };
}

/** Writes the copy and returns the line to print. Throws if the copy cannot be made. */
export async function backUp({ file, store: named }: BackupInvocation): Promise<string> {
  const from = storeFile(named);
  if (from === undefined) throw new Error('RUNSPAN_STORE=memory has no store file; name one with --store');
  const store = await SqliteStore.open(from, { readOnly: true });
  try {
    const to = resolve(file);
    await store.backup(to);
    return `${visible(to)}: a copy of ${visible(resolve(from))}, ${sizeText(statSync(to).size)}\n`;
  } finally {
    await store.close();
  }
}
