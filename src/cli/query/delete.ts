import { Argument, type Command } from '@commander-js/extra-typings';
import { visible } from '../../base/text.ts';
import type { DeletionTarget, RunCounts } from '../../receiver/domain/query/query.ts';
import { countsText, DELETION_KINDS } from '../../receiver/domain/retention/deletion.ts';
import { parseUuid } from '../../receiver/http/run-fields.ts';
import { SqliteStore } from '../../receiver/store/sqlite/sqlite-store.ts';
import { DEFAULT_SCOPE } from '../../receiver/store/store.ts';
import { type CommandContext, CommandFailure, type Output, UsageError } from '../command-line.ts';
import { NO_LIMITS, openStoreToRead, withReported } from '../stores.ts';
import { counted, inShellQuotes } from '../terminal-text.ts';
import { findSource, withSourceOptions } from './run-source.ts';

const HELP = `
Threads and users are deleted with all traces in which a run has this thread or user, and projects
with all traces whose root run is in the project. Traces that arrive after the deletion are kept.
The store ignores messages for deleted traces for 30 days. Without a receiver, only the tenant
"default" of the file is changed, and only if no other process has the file open for writing.

Exit code:
  0; 1 if there is no receiver and no file, the file is in use, the deletion failed, or --yes is
  missing; 2 for invalid arguments`;

export function define(command: Command, { stdout, stderr }: CommandContext): void {
  withSourceOptions(
    command
      .description('Deletes a trace, thread, user or project from a receiver or a store file.')
      .addArgument(new Argument('<kind>', 'what to delete').choices(DELETION_KINDS))
      .argument('<id>', 'id, or the name of a project')
      .option('--yes', 'delete; without this option, only show what would be deleted'),
  )
    .addHelpText('after', HELP)
    .action(async (kind, given, { yes, ...options }) => {
      const id = kind === 'trace' ? parseUuid(given, true) : given;
      if (id === undefined) throw new UsageError(`${inShellQuotes(given)} is not the id of a ${kind}: expected a UUID`);
      const source = await findSource(options);
      let counts: RunCounts | undefined;
      if (typeof source === 'string') counts = await removeFromFile(source, { kind, id }, yes === true, stderr);
      else {
        const { items, next } = await source.projects();
        const projects = `${counted(items.length, 'project')}${next === undefined ? '' : ' or more'}`;
        stderr.write(`runspan: the receiver at ${source.address} with ${projects}\n`);
        counts = await source.remove({ kind, id }, yes === true);
      }
      if (counts === undefined || (yes !== true && counts.runs === 0))
        throw new CommandFailure(`the store has no ${kind} ${visible(id)}`);
      const what = countsText(counts);
      if (yes !== true) throw new CommandFailure(`would delete ${what}; pass --yes to confirm`);
      stdout.write(`deleted ${what} from ${visible(typeof source === 'string' ? source : source.address)}\n`);
    });
}

/** Deletes traces, or only counts their runs. Throws if another process has the file open for writing. */
async function removeFromFile(file: string, target: DeletionTarget, isConfirmed: boolean, stderr: Output) {
  const removable = await withReported(file, await openStoreToRead(file), stderr, async (reader) => {
    if (!isConfirmed) return reader.removable(DEFAULT_SCOPE, target);
    const owner = await reader.owner();
    if (owner === undefined) return undefined;
    const address = visible(owner.address ?? '<the URL of its receiver>');
    throw new CommandFailure(`process ${owner.pid} has ${visible(file)} open; delete through it with --url ${address}`);
  });
  if (!isConfirmed) return removable;
  const store = await SqliteStore.open(file, NO_LIMITS);
  try {
    const counts = await store.remove(DEFAULT_SCOPE, target);
    await store.removed();
    return counts;
  } finally {
    await store.close();
  }
}
