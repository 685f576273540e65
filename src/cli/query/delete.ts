import { Argument, type Command } from '@commander-js/extra-typings';
import { visible } from '../../base/text.ts';
import { type CommandContext, CommandFailure, webAddress } from '../command-line.ts';
import { receiverAt, removalText } from './run-source.ts';

const HELP = `
A run is deleted with its descendants. Threads and users are deleted with all traces in which a run
has this thread or user, and projects with all traces whose root run is in the project. The receiver
ignores messages for deleted runs for 30 days. If you end this command, the receiver continues to
delete.

Exit code:
  0; 1 if nothing is found, there is no receiver, --yes is missing, or the deletion failed or was
  cancelled; 2 for invalid arguments`;

const KINDS = ['run', 'trace', 'thread', 'user', 'project'] as const;

export function define(command: Command, { stdout, stderr }: CommandContext): void {
  command
    .description('Deletes a run, trace, thread, user or project from a receiver.')
    .addArgument(new Argument('<kind>', 'what to delete').choices(KINDS))
    .argument('<id>', 'id, or the name of a project')
    .option(
      '--url <address>',
      'receiver (default: the receiver of runspan dev); the key is read from RUNSPAN_RECEIVER_KEY',
      webAddress,
    )
    .option('--yes', 'delete; without this option, only show what would be deleted')
    .addHelpText('after', HELP)
    .action(async (kind, id, { url, yes }) => {
      const removal = await receiverAt(url).remove({ kind, id }, yes === true, (progress) =>
        stderr.write(`runspan: deleted ${removalText(progress)} so far\n`),
      );
      if (removal === undefined) throw new CommandFailure(`the receiver has no ${kind} ${visible(id)}`);
      const what = removalText(removal);
      if (yes !== true) throw new CommandFailure(`would delete ${what}; pass --yes to confirm`);
      stdout.write(`deleted ${what}\n`);
    });
}
