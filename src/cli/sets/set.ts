import type { Command } from '@commander-js/extra-typings';
import { type CommandContext, CommandFailure } from '../command-line.ts';
import { withSource, withSourceOptions } from '../query/run-source.ts';
import { checkedFilter } from '../query/traces.ts';
import { examplesOf } from './example.ts';
import { appendExamples } from './set-file.ts';

const HELP = `
Lines of runspan-sets/<name>.jsonl in this folder never change, and its runs are not added again.

Exit code:
  0 on success; 1 if nothing matches, or the file cannot be written; 2 for invalid arguments`;

export function define(command: Command, { stdout }: CommandContext): void {
  command.description('Collects recorded traces in a file of examples.');
  withSourceOptions(
    command
      .command('add')
      .description('Add the matching traces to a set, at most 1,000 at once.')
      .argument('<name>', 'name of the set')
      .argument('<filter...>', 'conditions and search words, as for runspan traces')
      .option('--runs', 'add the matching runs instead of traces'),
  )
    .addHelpText('after', HELP)
    .action(async (name, words, options) => {
      const filter = checkedFilter(words.join(' '));
      const query = { ...(filter && { filter }), order: 'ascending', limit: 1_000 } as const;
      await withSource(options, async (source) => {
        const { items, next } = options.runs ? await source.runs(query) : await source.traces(query);
        if (items.length === 0) throw new CommandFailure('nothing matches');
        if (next !== undefined) throw new CommandFailure('more than 1,000 match; narrow the filter');
        const { added, kept, file } = appendExamples(process.cwd(), name, await examplesOf(source, items));
        stdout.write(`${added} added, ${kept} kept: ${file}\n`);
      });
    });
}
