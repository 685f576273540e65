import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { visible } from '../base/text.ts';
import { type CommandContext, UsageError } from './command-line.ts';
import { openStoreToRead, storeFile, withReported } from './stores.ts';
import { sizeText } from './terminal-text.ts';

const HELP = `
Exit code:
  0 on success; 1 if the copy cannot be made; 2 for invalid arguments`;

export function define(command: Command, { stdout, stderr }: CommandContext): void {
  command
    .description(
      'Copies all runs of a store to a new store file. A receiver may write to the store during the copy. Existing files are not overwritten.',
    )
    .argument('<file>', 'file to write')
    .option('--store <file>', 'file to copy (default: RUNSPAN_STORE, otherwise ~/.runspan/runs.db)')
    .addHelpText('after', HELP)
    .action(async (file, options) => {
      const from = storeFile(options.store);
      if (from === undefined) throw new UsageError('RUNSPAN_STORE=memory has no store file; pass a file with --store');
      const to = resolve(file);
      await withReported(from, await openStoreToRead(from), stderr, (store) => store.backup(to));
      stdout.write(`${visible(to)}: a copy of ${visible(from)}, ${sizeText(statSync(to).size)}\n`);
    });
}
