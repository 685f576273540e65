import { resolve } from 'node:path';
import { env } from '../base/env.ts';
import { messageOf, visible } from '../base/text.ts';
import { resolveSettings, type Settings } from '../export/settings.ts';
import { defaultSpoolDir } from '../export/spool/fs.ts';
import { type DestinationSurvey, type Files, type Holding, purge, surveySpool } from '../export/spool/survey.ts';
import type { SpoolInvocation } from './spool-arguments.ts';
import { checkEndpoint, namedDestination, othersText } from './spool-destination.ts';
import { counted } from './terminal-text.ts';
import { webAddress } from './words.ts';

type Print = (text: string) => void;

/** Shows or deletes what waits on disk; gives the exit code. Throws when the folder cannot be read. */
export function spool({ action, dir, endpoint, isConfirmed, isAll }: SpoolInvocation, print: Print): number {
  const folder = resolve(dir ?? env('RUNSPAN_SPOOL_DIR') ?? defaultSpoolDir());
  const chosen = endpoint ?? (action === 'purge' ? endpointOfEnvironment() : undefined);
  const wanted = chosen && namedDestination(settingsOf(chosen));
  const isWanted = ({ hash }: DestinationSurvey): boolean => wanted === undefined || hash === wanted.hash;
  const all = surveySpool(folder, Date.now());
  const survey = all.filter(isWanted);
  let code = 0;
  if (action === 'purge') code = purgeAll(folder, survey, isConfirmed, isAll, print);
  else print(`${listing(folder, survey) ?? `nothing waits ${forWhom(wanted)}in ${visible(folder)}`}\n`);
  const others = othersText(all.filter((one) => !isWanted(one)));
  if (others !== undefined) print(`${others}\n`);
  return code;
}

function forWhom(wanted: { readonly name: string } | undefined): string {
  return wanted === undefined ? '' : `for ${wanted.name} `;
}

/** Undefined where none is set. */
function endpointOfEnvironment(): URL | undefined {
  const text = env('RUNSPAN_ENDPOINT');
  const url = webAddress(text);
  if (text !== undefined && url === undefined)
    throw new Error('expected RUNSPAN_ENDPOINT to be an http or https address');
  return url;
}

/** As an exporter to this endpoint has them, which may have to do without the key. Throws when there can be none. */
function settingsOf(endpoint: URL): Settings {
  checkEndpoint(endpoint);
  const settings = resolveSettings({ endpoint: endpoint.href, tracing: true });
  if (settings === undefined) throw new Error('the settings cannot be used; runspan doctor says which');
  return settings;
}

/** Undefined where there is nothing. */
function listing(folder: string, survey: readonly DestinationSurvey[]): string | undefined {
  const lines: string[] = [];
  for (const { hash, owners, bad } of survey) {
    const held = owners.filter(({ files }) => files.length > 0);
    if (held.length === 0 && bad.files.length === 0) continue;
    lines.push('', hash);
    for (const owner of held) {
      lines.push(
        `  process ${owner.name.split('-', 1)[0]}, ${owner.state === 'dead' ? 'dead' : 'alive'}: ${contents(owner)}`,
      );
    }
    if (bad.files.length > 0) lines.push(`  damaged, set aside: ${filesText(bad)}${sinceText(bad)}`);
  }
  return lines.length === 0 ? undefined : [visible(folder), ...lines].join('\n');
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
  const spared = isAll ? [] : owners.filter(({ state, files }) => state !== 'dead' && files.length > 0);
  const waiting = owners.filter(({ state }) => isAll || state === 'dead');
  const damaged = survey.map(({ bad }) => bad);
  const living = counted(spared.length, 'living process', 'living processes');
  const others = spared.length === 0 ? '' : `the runs of ${living} are kept; --all deletes them too\n`;
  const what = doomedText(waiting, damaged);
  if (!isConfirmed && what !== undefined) {
    print(`would delete ${what}, in ${visible(folder)}; nothing was deleted; add --yes to delete it\n${others}`);
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

export function sizeText(bytes: number): string {
  if (bytes < 1_024) return counted(bytes, 'byte');
  const kib = bytes / 1_024;
  return kib < 1_024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1_024).toFixed(1)} MiB`;
}
