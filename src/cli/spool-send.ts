import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { env } from '../base/env.ts';
import { visible } from '../base/text.ts';
import { delay } from '../base/timers.ts';
import { exporterFor } from '../export/create-exporter.ts';
import type { Exporter } from '../export/exporter.ts';
import { Ledger, totalStats } from '../export/ledger.ts';
import { resolveSettings, type Settings } from '../export/settings.ts';
import { FORMAT_FOLDER } from '../export/spool/directory.ts';
import { systemFs } from '../export/spool/fs.ts';
import { type Holding, restoreBad, surveySpool } from '../export/spool/survey.ts';
import type { Stats } from '../run/stats.ts';
import type { SpoolInvocation } from './spool-arguments.ts';
import { checkEndpoint, namedDestination, othersText } from './spool-destination.ts';
import { counted } from './terminal-text.ts';

/** Without a run that is delivered or given up for so long, the service is taken to be away. */
const PATIENCE_MS = 30_000;

/** The files on disk, grouped by their relation to the destinations that are sent. */
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
  const hashes = [...new Set([...invocation.from, namedDestination(settings).hash])];
  prepare(invocation, settings, hashes);
  while (hasEndedOwners(settings, hashes)) await delay(500, undefined, true);
  const before = stockOf(settings, hashes);
  const stats = await deliver(settings, hashes, patienceMs);
  const after = stockOf(settings, hashes);

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
  if (claimed > 0) lines.push(`another process delivers ${ours > 0 ? 'the rest' : 'what waited'}`);
  if (ours + claimed + damaged === 0 && !isLeft) lines.push(`nothing waits for ${namedDestination(settings).name}`);
  if (dropped > 0) lines.push(`${counted(dropped, 'run')} given up`);
  if (damaged > 0) lines.push(`${counted(damaged, 'file')} damaged, set aside`);
  if (invocation.includesBad && before.bad.length > 0) lines.push(unreadableText(before.bad.length));
  if (isLeft) {
    const unclaimed = `not all of it could be taken over or read in ${visible(settings.spoolDir)}`;
    lines.push(`the rest still waits: ${lastError?.message ?? unclaimed}`);
  }
  if (after.living.length > 0) lines.push(livingText(after.living));
  if (after.others !== undefined) lines.push(after.others);
  print(`${lines.join('\n')}\n`);
  return isLeft || damaged > 0 || dropped > 0 ? 1 : 0;
}

/**
 * Throws if a destination does not exist. With `--bad`, moves files to a folder from which the exporter takes them
 * over.
 */
function prepare({ from, includesBad }: SpoolInvocation, { spoolDir }: Settings, hashes: readonly string[]): void {
  const missing = from.find((hash) => !existsSync(join(spoolDir, FORMAT_FOLDER, hash)));
  if (missing !== undefined)
    throw new Error(`there is no destination ${missing} in ${spoolDir}; runspan spool list shows the destinations`);
  if (includesBad) for (const hash of hashes) restoreBad(systemFs, spoolDir, hash, Date.now());
}

/** Whether a process has just ended, so that its files can be taken over within 10 seconds. */
function hasEndedOwners({ spoolDir }: Settings, hashes: readonly string[]): boolean {
  const survey = surveySpool(spoolDir, Date.now()).filter(({ hash }) => hashes.includes(hash));
  return survey.some(({ owners }) => owners.some(({ state, files }) => state === 'ended' && files.length > 0));
}

function unreadableText(files: number): string {
  return files === 1
    ? '1 file that was set aside cannot be read whole and stays'
    : `${files} files that were set aside cannot be read whole and stay`;
}

function livingText(living: readonly Holding[]): string {
  const runs = runsIn(living);
  const [belong, them] = runs === 1 ? ['belongs', 'it'] : ['belong', 'them'];
  const deliver = living.length === 1 ? 'delivers' : 'deliver';
  const processes = counted(living.length, 'living process', 'living processes');
  return `${counted(runs, 'run')} ${belong} to ${processes}, which ${deliver} ${them}`;
}

function settingsFor({ dir, endpoint }: SpoolInvocation): Settings {
  if (endpoint !== undefined) checkEndpoint(endpoint);
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

/**
 * Delivers the runs of each destination from its own folder. Undelivered runs therefore stay with their destination.
 */
async function deliver(settings: Settings, hashes: readonly string[], patienceMs: number): Promise<Stats> {
  const ledger = new Ledger();
  let isDelivered = true;
  for (const spoolDestination of hashes) {
    const exporter = exporterFor({ ...settings, spoolDestination }, ledger, () => {});
    exporter.recover();
    isDelivered = await finish(exporter, patienceMs);
    await exporter.close({ timeoutMs: 0 });
    if (!isDelivered) break;
  }
  return totalStats([ledger]);
}

async function finish(exporter: Exporter, patienceMs: number): Promise<boolean> {
  for (let before = -1, settled = 0; settled > before; ) {
    before = settled;
    const { ok } = await exporter.finish({ timeoutMs: patienceMs });
    if (ok) return true;
    const { sent, dropped } = exporter.stats();
    settled = sent + dropped;
  }
  return false;
}

function stockOf(settings: Settings, hashes: readonly string[]): Stock {
  const survey = surveySpool(settings.spoolDir, Date.now());
  const own = survey.filter(({ hash }) => hashes.includes(hash));
  const held = own.flatMap(({ owners }) => owners.filter(isHolding));
  return {
    dead: held.filter(({ state }) => state === 'dead'),
    living: held.filter(({ state }) => state !== 'dead'),
    bad: own.flatMap(({ bad }) => bad.files),
    others: othersText(survey.filter((one) => !own.includes(one))),
  };
}

function isHolding({ files }: Holding): boolean {
  return files.length > 0;
}

function runsIn(holdings: readonly Holding[]): number {
  return holdings.reduce((sum, { runs }) => sum + runs, 0);
}
