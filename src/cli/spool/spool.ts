import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { visible } from '../../base/text.ts';
import { env } from '../../config/environment.ts';
import { isDestination } from '../../delivery/spool/directory.ts';
import { defaultSpoolDir } from '../../delivery/spool/fs.ts';
import { type DestinationSurvey, type Files, type Holding, purge, surveySpool } from '../../delivery/spool/survey.ts';
import { type CommandContext, webAddress } from '../command-line.ts';
import { counted, sizeText } from '../terminal-text.ts';
import { type FolderOptions, holdingFiles, namedDestination, othersText, runsIn, settingsFor } from './destination.ts';
import { sendSpool } from './send.ts';

const HELP = `
Undelivered runs are stored on disk if durability is spill or write-ahead. The next process with the
same endpoint and workspace delivers the runs of processes that have ended.

Exit code:
  0 on success; 1 if the folder cannot be read, something cannot be delivered or deleted, or --yes
  is missing; 2 for invalid arguments`;

export function define(command: Command, { stdout, endAs }: CommandContext): void {
  const print = (text: string): void => void stdout.write(`${text}\n`);
  command.description('Lists, sends or purges the undelivered runs on disk.').addHelpText('after', HELP);

  withFolderOptions(command.command('list').description('List the undelivered runs.'))
    .option('--json', 'print the files of each process as one line of JSON')
    .action(({ json, ...options }) => {
      const { folder, selected, others, name } = survey(options, options.endpoint !== undefined);
      if (json) for (const line of jsonLines(selected)) print(line);
      else print([listing(folder, selected) ?? `no runs${name} in ${visible(folder)}`, ...others].join('\n'));
    });

  withFolderOptions(
    command.command('send').description('Deliver the undelivered runs of ended processes to the configured service.'),
  )
    .option(
      '--from <hash>',
      'also send runs recorded for this destination, as listed by spool list; can be repeated',
      hash,
    )
    .option('--bad', 'also send readable files that were set aside')
    .action(async (options) => endAs(await sendSpool(options, print)));

  withFolderOptions(command.command('purge').description('Delete undelivered runs.'))
    .option('--all', 'also delete the files of running processes')
    .option('--yes', 'delete; without this option, only show what would be deleted')
    .action((options) => {
      const { lines, isDryRun } = purgeRuns(options);
      print(lines.join('\n'));
      if (isDryRun) endAs(1);
    });
}

function withFolderOptions(command: Command) {
  return command
    .option('--dir <folder>', 'spool folder (default: RUNSPAN_SPOOL_DIR, otherwise ~/.runspan/spool)')
    .option(
      '--endpoint <url>',
      'only runs for this endpoint and RUNSPAN_WORKSPACE_ID, otherwise RUNSPAN_API_KEY (default for send and purge: RUNSPAN_ENDPOINT)',
      webAddress,
    );
}

function hash(text: string, previous: string[] = []): string[] {
  if (isDestination(text)) return [...previous, text];
  throw new InvalidArgumentError('Expected a destination from the output of runspan spool list.');
}

interface PurgeOptions extends FolderOptions {
  readonly all?: true | undefined;
  readonly yes?: true | undefined;
}

function purgeRuns({ all, yes, ...options }: PurgeOptions): { lines: string[]; isDryRun: boolean } {
  const isSelected = options.endpoint !== undefined || env('RUNSPAN_ENDPOINT') !== undefined;
  const { folder, selected, others } = survey(options, isSelected);
  const owners = selected.flatMap((one) => one.owners);
  const dead = owners.filter(({ state }) => all || state === 'dead');
  const damaged = selected.map(({ bad }) => bad);
  const what = purgedText(dead, damaged);
  if (yes) for (const files of [...dead, ...damaged]) purge(files);
  const lines: string[] = [];
  if (what === undefined) lines.push('nothing to delete');
  else if (yes) lines.push(`deleted ${what}, in ${visible(folder)}`);
  else lines.push(`dry run: would delete ${what}, in ${visible(folder)}; pass --yes to delete`);
  const kept = holdingFiles(owners).length - holdingFiles(dead).length;
  if (kept > 0) {
    const processes = counted(kept, 'process that may be running', 'processes that may be running');
    lines.push(`the runs of ${processes} are kept; pass --all to delete them`);
  }
  return { lines: [...lines, ...others], isDryRun: what !== undefined && !yes };
}

/**
 * Returns the spool files of all destinations in the folder. If `isSelected` is set, returns only those of the
 * configured destination.
 */
function survey(options: FolderOptions, isSelected: boolean) {
  const folder = resolve(options.dir ?? env('RUNSPAN_SPOOL_DIR') ?? defaultSpoolDir());
  const destination = isSelected ? namedDestination(settingsFor(options)) : undefined;
  const all = surveySpool(folder, Date.now());
  const selected = all.filter(({ hash }) => destination === undefined || hash === destination.hash);
  return {
    folder,
    selected,
    others: othersText(all.filter((one) => !selected.includes(one))),
    name: destination === undefined ? '' : ` for ${destination.name}`,
  };
}

function listing(folder: string, survey: readonly DestinationSurvey[]): string | undefined {
  const lines: string[] = [];
  for (const { hash, owners, bad } of survey) {
    const holding = holdingFiles(owners);
    if (holding.length === 0 && bad.files.length === 0) continue;
    lines.push('', hash);
    for (const owner of holding) {
      const process = `process ${processOf(owner)}, ${owner.state}`;
      lines.push(`  ${process}: ${counted(owner.runs, 'run')} in ${filesText(owner)}${oldestText(owner)}`);
    }
    if (bad.files.length > 0) lines.push(`  damaged, set aside: ${filesText(bad)}${oldestText(bad)}`);
  }
  return lines.length === 0 ? undefined : [visible(folder), ...lines].join('\n');
}

/** Returns one line of JSON for the files of each process, and for the damaged files of each destination. */
function jsonLines(survey: readonly DestinationSurvey[]): string[] {
  return survey.flatMap(({ hash: destination, owners, bad }) => {
    const lines: object[] = holdingFiles(owners).map((owner) => ({
      destination,
      state: owner.state,
      process: Number(processOf(owner)),
      runs: owner.runs,
      ...filesJson(owner),
    }));
    if (bad.files.length > 0) lines.push({ destination, state: 'damaged', ...filesJson(bad) });
    return lines.map((line) => JSON.stringify(line));
  });
}

function filesJson({ files, bytes, oldestMs }: Files): object {
  return { files: files.length, bytes, oldest: oldestMs === undefined ? null : isoText(oldestMs) };
}

function processOf({ name }: { readonly name: string }): string | undefined {
  return name.split('-', 1)[0];
}

function purgedText(owners: readonly Holding[], damaged: readonly Files[]): string | undefined {
  const [kept, bad] = [total(owners), total(damaged)];
  const texts: string[] = [];
  if (kept.files.length > 0) texts.push(`${counted(runsIn(owners), 'run')} in ${filesText(kept)}`);
  if (bad.files.length > 0) texts.push(filesText(bad, 'damaged file'));
  return texts.length === 0 ? undefined : texts.join(' and ');
}

function total(all: readonly Files[]): Pick<Files, 'files' | 'bytes'> {
  return { files: all.flatMap(({ files }) => files), bytes: all.reduce((sum, { bytes }) => sum + bytes, 0) };
}

function filesText({ files, bytes }: Pick<Files, 'files' | 'bytes'>, kind = 'file'): string {
  return `${counted(files.length, kind)}, ${sizeText(bytes)}`;
}

function oldestText({ oldestMs }: Files): string {
  return oldestMs === undefined ? '' : `, oldest ${isoText(oldestMs)}`;
}

function isoText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
