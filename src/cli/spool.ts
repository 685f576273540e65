import { resolve } from 'node:path';
import { env } from '../base/env.ts';
import { messageOf } from '../base/text.ts';
import { destinationOf } from '../export/create-exporter.ts';
import { resolveSettings } from '../export/settings.ts';
import { defaultSpoolDir, destinationHash } from '../export/spool-folder.ts';
import { type DestinationSurvey, type Holding, purge, surveySpool } from '../export/spool-survey.ts';
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
    if (bad.files.length > 0) lines.push(`  damaged, set aside: ${contents(bad)}`);
  }
  if (lines.length === 0) return `nothing waits in ${visible(folder)}\n`;
  return `${[visible(folder), ...lines].join('\n')}\n`;
}

function contents({ files, runs, bytes, oldestMs }: Holding): string {
  const since = oldestMs === undefined ? '' : `, oldest ${new Date(oldestMs).toISOString().slice(0, 19)}Z`;
  return `${counted(runs, 'run')} in ${counted(files.length, 'file')}, ${sizeText(bytes)}${since}`;
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
  const doomed: Holding[] = [...owners.filter(({ isAlive }) => isAll || !isAlive), ...survey.map(({ bad }) => bad)];
  const files = doomed.reduce((sum, one) => sum + one.files.length, 0);
  const bytes = doomed.reduce((sum, one) => sum + one.bytes, 0);
  const runs = doomed.reduce((sum, one) => sum + one.runs, 0);
  const what = `${counted(runs, 'run')} in ${counted(files, 'file')}, ${sizeText(bytes)}, in ${visible(folder)}`;
  const others =
    spared.length === 0
      ? ''
      : `${counted(spared.length, 'process', 'processes')} alive left alone; --all takes theirs too\n`;
  if (!isConfirmed && files > 0) {
    print(`would delete ${what}; nothing was, add --yes\n${others}`);
    return 1;
  }
  const problems = doomed.flatMap((holding) => problemOf(() => purge(holding)));
  if (problems.length === 0)
    print(`${files === 0 ? 'nothing to delete' : 'deleted'}${files === 0 ? '' : ` ${what}`}\n${others}`);
  else print(`could not delete everything: ${problems[0]}\n`);
  return problems.length === 0 ? 0 : 1;
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
