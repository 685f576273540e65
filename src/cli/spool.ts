import { resolve } from 'node:path';
import { env } from '../base/env.ts';
import { messageOf } from '../base/text.ts';
import { destinationOf } from '../export/create-exporter.ts';
import { resolveSettings } from '../export/settings.ts';
import { defaultSpoolDir, destinationHash } from '../export/spool-folder.ts';
import { type DestinationSurvey, type Files, type Holding, purge, surveySpool } from '../export/spool-survey.ts';
import type { SpoolInvocation } from './spool-arguments.ts';
import { counted, visible } from './terminal-text.ts';

type Print = (text: string) => void;

/** Shows or deletes what waits on disk; gives the exit code. Throws when the folder cannot be read. */
export function spool({ action, dir, endpoint, isConfirmed, isAll }: SpoolInvocation, print: Print): number {
  const folder = resolve(dir ?? env('RUNSPAN_SPOOL_DIR') ?? defaultSpoolDir());
  const hash = endpoint && hashOf(endpoint);
  const survey = surveySpool(folder, Date.now()).filter((one) => hash === undefined || one.hash === hash);
  if (action === 'list') {
    print(listing(folder, survey));
    return 0;
  }
  return purgeAll(folder, survey, isConfirmed, isAll, print);
}

/** As an exporter to this endpoint has it, which may have to do without the key. Throws when there can be none. */
function hashOf(endpoint: URL): string {
  const settings = resolveSettings({ endpoint: endpoint.href, tracing: true });
  if (settings === undefined) throw new Error('the settings cannot be used; runspan doctor says which');
  return destinationHash(destinationOf(settings));
}

function listing(folder: string, survey: readonly DestinationSurvey[]): string {
  const lines: string[] = [];
  for (const { hash, owners, bad } of survey) {
    const held = owners.filter(({ files }) => files.length > 0);
    if (held.length === 0 && bad.files.length === 0) continue;
    lines.push('', hash);
    for (const owner of held) {
      lines.push(`  process ${owner.name.split('-', 1)[0]}, ${owner.isAlive ? 'alive' : 'dead'}: ${contents(owner)}`);
    }
    if (bad.files.length > 0) lines.push(`  damaged, set aside: ${filesText(bad)}${sinceText(bad)}`);
  }
  if (lines.length === 0) return `nothing waits in ${visible(folder)}\n`;
  return `${[visible(folder), ...lines].join('\n')}\n`;
}

function contents(holding: Holding): string {
  return `${counted(holding.runs, 'run')} in ${filesText(holding)}${sinceText(holding)}`;
}

function filesText({ files, bytes }: Pick<Files, 'files' | 'bytes'>, kind = 'file'): string {
  return `${counted(files.length, kind)}, ${sizeText(bytes)}`;
}

function sinceText({ oldestMs }: Files): string {
  return oldestMs === undefined ? '' : `, oldest ${new Date(oldestMs).toISOString().slice(0, 19)}Z`;
}

function purgeAll(
  folder: string,
  survey: readonly DestinationSurvey[],
  isConfirmed: boolean,
  isAll: boolean,
  print: Print,
): number {
  const owners = survey.flatMap((one) => one.owners);
  const spared = isAll ? [] : owners.filter(({ isAlive, files }) => isAlive && files.length > 0);
  const waiting = owners.filter(({ isAlive }) => isAll || !isAlive);
  const damaged = survey.map(({ bad }) => bad);
  const others =
    spared.length === 0
      ? ''
      : `${counted(spared.length, 'process', 'processes')} alive left alone; --all takes theirs too\n`;
  const what = doomedText(waiting, damaged);
  if (!isConfirmed && what !== undefined) {
    print(`would delete ${what}, in ${visible(folder)}; nothing was, add --yes\n${others}`);
    return 1;
  }
  const problems = [...waiting, ...damaged].flatMap((files) => problemOf(() => purge(files)));
  if (problems.length > 0) print(`could not delete everything: ${problems[0]}\n`);
  else print(`${what === undefined ? 'nothing to delete' : `deleted ${what}, in ${visible(folder)}`}\n${others}`);
  return problems.length === 0 ? 0 : 1;
}

/** Undefined where there is nothing. */
function doomedText(waiting: readonly Holding[], damaged: readonly Files[]): string | undefined {
  const [kept, bad] = [total(waiting), total(damaged)];
  const runs = waiting.reduce((sum, one) => sum + one.runs, 0);
  const texts: string[] = [];
  if (kept.files.length > 0) texts.push(`${counted(runs, 'run')} in ${filesText(kept)}`);
  if (bad.files.length > 0) texts.push(filesText(bad, 'damaged file'));
  return texts.length === 0 ? undefined : texts.join(' and ');
}

function total(all: readonly Files[]): Pick<Files, 'files' | 'bytes'> {
  return { files: all.flatMap(({ files }) => files), bytes: all.reduce((sum, { bytes }) => sum + bytes, 0) };
}

function problemOf(work: () => void): string[] {
  try {
    work();
    return [];
  } catch (thrown) {
    return [visible(messageOf(thrown))];
  }
}

function sizeText(bytes: number): string {
  if (bytes < 1_024) return counted(bytes, 'byte');
  const kib = bytes / 1_024;
  return kib < 1_024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1_024).toFixed(1)} MiB`;
}
