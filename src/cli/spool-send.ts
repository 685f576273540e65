import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { env } from '../base/env.ts';
import { visible } from '../base/text.ts';
import { exporterFor } from '../export/create-exporter.ts';
import { Ledger } from '../export/ledger.ts';
import { resolveSettings, type Settings } from '../export/settings.ts';
import { restoreBad } from '../export/spool-bad.ts';
import { FORMAT_FOLDER } from '../export/spool-folder.ts';
import { systemFs } from '../export/spool-fs.ts';
import { redirectLeftovers } from '../export/spool-others.ts';
import { type Holding, surveySpool } from '../export/spool-survey.ts';
import type { Stats } from '../run/stats.ts';
import type { SpoolInvocation } from './spool-arguments.ts';
import { namedDestination, othersText } from './spool-destination.ts';
import { counted } from './terminal-text.ts';

/** Without a run that is delivered or given up for so long, the service is taken to be away. */
const PATIENCE_MS = 30_000;

/** What is on disk, seen from one destination. */
interface Stock {
  readonly dead: readonly Holding[];
  readonly living: readonly Holding[];
  /** Damaged files that were set aside. */
  readonly bad: readonly string[];
  /** A line on other destinations for which there is something. */
  readonly others: string | undefined;
}

/**
 * Delivers what dead processes have left for the configured service; gives the exit code, which is 0 when nothing is left of
 * it. Throws when no service is configured, or the folder cannot be read.
 */
export async function sendSpool(
  invocation: SpoolInvocation,
  print: (text: string) => void,
  patienceMs: number = PATIENCE_MS,
): Promise<number> {
  const settings = settingsFor(invocation);
  prepare(invocation, settings);
  const before = stockOf(settings);
  const stats = await deliver(settings, patienceMs);
  const after = stockOf(settings);

  const { recovered, sent, dropped, lastError } = stats;
  const damaged = after.bad.filter((file) => !before.bad.includes(file)).length;
  const isLeft = after.dead.length > 0;
  const waited = runsIn(before.dead);
  // What has gone, and has not come to us, somebody else was the first to claim; how much was seen of it is by chance.
  const claimed = isLeft || damaged > 0 ? 0 : Math.max(0, waited - recovered);
  // A process that has ended meanwhile has left more.
  const ours = Math.max(waited - claimed, recovered);
  const lines: string[] = [];
  if (ours > 0) lines.push(`delivered ${sent} of ${counted(ours, 'run')} to ${settings.endpoint.origin}`);
  if (claimed > 0) lines.push(`another process has taken over ${ours > 0 ? 'the rest' : 'what waited'}`);
  if (ours + claimed + damaged === 0 && !isLeft) lines.push(`nothing waits for ${namedDestination(settings).name}`);
  if (dropped > 0) lines.push(`${counted(dropped, 'run')} given up`);
  if (damaged > 0) lines.push(`${counted(damaged, 'file')} damaged, set aside`);
  if (isLeft) {
    const unclaimed = `not all of it could be taken over or read in ${visible(settings.spoolDir)}`;
    lines.push(`the rest still waits: ${lastError?.message ?? unclaimed}`);
  }
  if (after.living.length > 0) lines.push(livingText(after.living));
  if (after.others !== undefined) lines.push(after.others);
  print(`${lines.join('\n')}\n`);
  return isLeft || damaged > 0 || dropped > 0 ? 1 : 0;
}

/** Moves files to a folder from which the exporter takes them over. */
function prepare({ from, includesBad }: SpoolInvocation, settings: Settings): void {
  const { spoolDir } = settings;
  const { hash } = namedDestination(settings);
  for (const source of [...from, hash]) {
    if (source !== hash && !existsSync(join(spoolDir, FORMAT_FOLDER, source)))
      throw new Error(`there is no destination ${source} in ${spoolDir}; runspan spool list shows which there are`);
    if (includesBad) restoreBad(systemFs, spoolDir, source, Date.now());
    if (source !== hash) redirectLeftovers(systemFs, spoolDir, source, hash, Date.now());
  }
}

function livingText(living: readonly Holding[]): string {
  const runs = counted(runsIn(living), 'run');
  return living.length === 1
    ? `1 process alive keeps ${runs}, and delivers what it has`
    : `${living.length} processes alive keep ${runs}, and deliver what they have`;
}

function settingsFor({ dir, endpoint }: SpoolInvocation): Settings {
  const settings = resolveSettings({
    tracing: true,
    durability: 'spill',
    ...(dir !== undefined && { spoolDir: dir }),
    ...(endpoint !== undefined && { endpoint: endpoint.href }),
  });
  if (settings !== undefined) return settings;
  const isNamed = endpoint !== undefined || env('RUNSPAN_ENDPOINT') !== undefined;
  throw new Error(
    isNamed
      ? 'nothing was sent: the settings cannot be used; runspan doctor says which'
      : 'nowhere to send to; set RUNSPAN_ENDPOINT, or give --endpoint',
  );
}

async function deliver(settings: Settings, patienceMs: number): Promise<Stats> {
  const exporter = exporterFor(settings, new Ledger(), () => {});
  exporter.recover();
  for (let before = -1, settled = 0; settled > before; ) {
    before = settled;
    const { ok } = await exporter.finish({ timeoutMs: patienceMs });
    const { sent, dropped } = exporter.stats();
    if (ok) break;
    settled = sent + dropped;
  }
  await exporter.close({ timeoutMs: 0 });
  return exporter.stats();
}

function stockOf(settings: Settings): Stock {
  const { hash } = namedDestination(settings);
  const survey = surveySpool(settings.spoolDir, Date.now());
  const own = survey.find((one) => one.hash === hash);
  const held = own?.owners.filter(isHolding) ?? [];
  return {
    dead: held.filter(({ isAlive }) => !isAlive),
    living: held.filter(({ isAlive }) => isAlive),
    bad: own?.bad.files ?? [],
    others: othersText(survey.filter((one) => one !== own)),
  };
}

function isHolding({ files }: Holding): boolean {
  return files.length > 0;
}

function runsIn(holdings: readonly Holding[]): number {
  return holdings.reduce((sum, { runs }) => sum + runs, 0);
}
