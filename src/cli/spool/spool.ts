import { resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { env } from '../../base/env.ts';
import { messageOf, visible } from '../../base/text.ts';
import { resolveSettings } from '../../export/settings.ts';
import { isDestination } from '../../export/spool/directory.ts';
import { defaultSpoolDir } from '../../export/spool/fs.ts';
import { type DestinationSurvey, type Files, type Holding, purge, surveySpool } from '../../export/spool/survey.ts';
import {
  type CommandContext,
  CommandFailure,
  type Output,
  parseWebAddress,
  UsageError,
  webAddress,
} from '../command-line.ts';
import { counted, sizeText } from '../terminal-text.ts';
import { checkEndpoint, holdingFiles, namedDestination, othersText, runsIn } from './destination.ts';
import { sendSpool } from './send.ts';

const HELP = `
Undelivered runs are stored on disk if durability is spill or write-ahead. The next process with the
same endpoint and workspace delivers the runs of processes that have ended.

Exit code:
  0; 1 if the folder cannot be read, something cannot be delivered or deleted, or --yes is missing;
  2 for invalid arguments`;

export function define(command: Command, { stdout, endAs }: CommandContext): void {
  const exit = (code: number): void => endAs({ kind: 'exit', code });
  command.description('Lists, sends or purges the undelivered runs on disk.').addHelpText('after', HELP);

  withFolderOptions(command.command('list').description('List the undelivered runs.')).action((options) => {
    listSpool(options, stdout);
  });

  withFolderOptions(
    command.command('send').description('Deliver the undelivered runs of ended processes to the configured service.'),
  )
    .option(
      '--from <hash>',
      'also send runs recorded for this destination, as shown by spool list; can be repeated',
      hash,
    )
    .option('--bad', 'also send readable files that were set aside')
    .action(async (options) => exit(await sendSpool(options, (text) => stdout.write(text))));

  withFolderOptions(command.command('purge').description('Delete undelivered runs.'))
    .option('--all', 'also delete the files of running processes')
    .option('--yes', 'delete; without this option, only show what would be deleted')
    .action((options) => exit(purgeSpool(options, stdout)));
}

function withFolderOptions(command: Command) {
  return command
    .option('--dir <folder>', 'folder of the spool (default: RUNSPAN_SPOOL_DIR, otherwise ~/.runspan/spool)')
    .option(
      '--endpoint <url>',
      'only runs for this endpoint, with RUNSPAN_WORKSPACE_ID, otherwise RUNSPAN_API_KEY (default for send and purge: RUNSPAN_ENDPOINT)',
      webAddress('--endpoint'),
    );
}

function hash(text: string, previous: string[] = []): string[] {
  if (!isDestination(text)) throw new UsageError('expected --from to be a destination that runspan spool list shows');
  return [...previous, text];
}

interface FolderOptions {
  readonly dir?: string | undefined;
  readonly endpoint?: URL | undefined;
}

function listSpool({ dir, endpoint }: FolderOptions, stdout: Output): void {
  const { folder, selected, others, forDestination } = survey(dir, endpoint);
  stdout.write(`${listing(folder, selected) ?? `no runs${forDestination} in ${visible(folder)}`}\n`);
  stdout.write(others);
}

function purgeSpool(
  { dir, endpoint, all, yes }: FolderOptions & { readonly all?: true | undefined; readonly yes?: true | undefined },
  stdout: Output,
): number {
  const { folder, selected, others } = survey(dir, endpoint ?? endpointOfEnvironment());
  const owners = selected.flatMap((one) => one.owners);
  const kept = all ? [] : holdingFiles(owners).filter(({ state }) => state !== 'dead');
  const waiting = owners.filter(({ state }) => all || state === 'dead');
  const damaged = selected.map(({ bad }) => bad);
  const processes = counted(kept.length, 'running process', 'running processes');
  const notes = `${kept.length === 0 ? '' : `the runs of ${processes} are kept; --all deletes them too\n`}${others}`;
  const what = purgedText(waiting, damaged);
  if (!yes && what !== undefined) {
    stdout.write(`dry run: would delete ${what}, in ${visible(folder)}; pass --yes to delete\n${notes}`);
    return 1;
  }
  const [problem] = [...waiting, ...damaged].flatMap((files) => problemOf(() => purge(files)) ?? []);
  if (problem !== undefined) stdout.write(`could not delete everything: ${problem}\n${others}`);
  else stdout.write(`${what === undefined ? 'nothing to delete' : `deleted ${what}, in ${visible(folder)}`}\n${notes}`);
  return problem === undefined ? 0 : 1;
}

function survey(dir: string | undefined, endpoint: URL | undefined) {
  const folder = resolve(dir ?? env('RUNSPAN_SPOOL_DIR') ?? defaultSpoolDir());
  const destination = endpoint && destinationOf(endpoint);
  const all = surveySpool(folder, Date.now());
  const selected = all.filter(({ hash }) => destination === undefined || hash === destination.hash);
  const others = othersText(all.filter((one) => !selected.includes(one)));
  return {
    folder,
    selected,
    others: others === undefined ? '' : `${others}\n`,
    forDestination: destination === undefined ? '' : ` for ${destination.name}`,
  };
}

function endpointOfEnvironment(): URL | undefined {
  const text = env('RUNSPAN_ENDPOINT');
  const url = text === undefined ? undefined : parseWebAddress(text);
  if (text === undefined || url !== undefined) return url;
  throw new CommandFailure('expected RUNSPAN_ENDPOINT to be an http or https address');
}

/** Returns the destination of an exporter with this endpoint, which may have no key. */
function destinationOf(endpoint: URL): { readonly hash: string; readonly name: string } {
  checkEndpoint(endpoint);
  const settings = resolveSettings({ endpoint: endpoint.href, tracing: true });
  if (settings === undefined) throw new CommandFailure('the settings are invalid; run runspan doctor for details');
  return namedDestination(settings);
}

/** Returns undefined if there are no files. */
function listing(folder: string, survey: readonly DestinationSurvey[]): string | undefined {
  const lines: string[] = [];
  for (const { hash, owners, bad } of survey) {
    const holding = holdingFiles(owners);
    if (holding.length === 0 && bad.files.length === 0) continue;
    lines.push('', hash);
    for (const owner of holding) {
      const process = `process ${owner.name.split('-', 1)[0]}, ${owner.state === 'dead' ? 'dead' : 'alive'}`;
      lines.push(`  ${process}: ${counted(owner.runs, 'run')} in ${filesText(owner)}${oldestText(owner)}`);
    }
    if (bad.files.length > 0) lines.push(`  damaged, set aside: ${filesText(bad)}${oldestText(bad)}`);
  }
  return lines.length === 0 ? undefined : [visible(folder), ...lines].join('\n');
}

function filesText({ files, bytes }: Pick<Files, 'files' | 'bytes'>, kind = 'file'): string {
  return `${counted(files.length, kind)}, ${sizeText(bytes)}`;
}

function oldestText({ oldestMs }: Files): string {
  return oldestMs === undefined ? '' : `, oldest ${new Date(oldestMs).toISOString().slice(0, 19)}Z`;
}

/** Returns undefined if there are no files. */
function purgedText(waiting: readonly Holding[], damaged: readonly Files[]): string | undefined {
  const [kept, bad] = [total(waiting), total(damaged)];
  const texts: string[] = [];
  if (kept.files.length > 0) texts.push(`${counted(runsIn(waiting), 'run')} in ${filesText(kept)}`);
  if (bad.files.length > 0) texts.push(filesText(bad, 'damaged file'));
  return texts.length === 0 ? undefined : texts.join(' and ');
}

function total(all: readonly Files[]): Pick<Files, 'files' | 'bytes'> {
  return { files: all.flatMap(({ files }) => files), bytes: all.reduce((sum, { bytes }) => sum + bytes, 0) };
}

function problemOf(work: () => void): string | undefined {
  try {
    work();
    return undefined;
  } catch (thrown) {
    return visible(messageOf(thrown));
  }
}
