import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { visible } from '../../base/text.ts';
import type { Settings } from '../../config/options.ts';
import { exporterFor } from '../../delivery/create-exporter.ts';
import type { Exporter } from '../../delivery/exporter.ts';
import { Ledger, totalStats } from '../../delivery/ledger.ts';
import { FORMAT_FOLDER } from '../../delivery/spool/directory.ts';
import { systemFs } from '../../delivery/spool/fs.ts';
import { restoreBad, surveySpool } from '../../delivery/spool/survey.ts';
import { delay } from '../../platform/timers.ts';
import type { Stats } from '../../run/stats.ts';
import { CommandFailure } from '../command-line.ts';
import { counted } from '../terminal-text.ts';
import { type FolderOptions, holdingFiles, namedDestination, othersText, runsIn, settingsFor } from './destination.ts';

export interface SendOptions extends FolderOptions {
  /** Hashes of other destinations whose spooled runs are also sent. */
  readonly from?: readonly string[] | undefined;
  /** Whether to also send readable runs from files that were set aside as damaged. */
  readonly bad?: true | undefined;
}

/** If no run is delivered or dropped for this long, the command gives up. */
const PATIENCE_MS = 30_000;

/**
 * Sends the spooled runs of ended processes to the configured service. Returns exit code 0 if no undelivered runs
 * remain. Throws if no service is configured or the spool folder cannot be read.
 */
export async function sendSpool(
  options: SendOptions,
  print: (text: string) => void,
  patienceMs: number = PATIENCE_MS,
): Promise<number> {
  const settings = settingsFor(options);
  const destination = namedDestination(settings);
  const hashes = [...new Set([...(options.from ?? []), destination.hash])];
  prepare(options, settings, hashes);
  let before = stockOf(settings, hashes);
  // Waits up to 10 seconds until the files of processes that have just ended can be claimed.
  for (; before.running.some(({ state }) => state === 'ended'); before = stockOf(settings, hashes)) {
    await delay(500, undefined, true);
  }
  const { recovered, sent, dropped, lastError } = await deliver(settings, hashes, patienceMs);
  const after = stockOf(settings, hashes);

  const isLeft = after.dead.length > 0;
  // `recovered` excludes runs in files that could not be claimed.
  const total = isLeft ? Math.max(runsIn(before.dead), recovered) : recovered;
  const damaged = after.bad.filter((file) => !before.bad.includes(file)).length;
  const lines: string[] = [];
  if (total > 0) lines.push(`delivered ${sent} of ${counted(total, 'run')} to ${settings.endpoint.origin}`);
  else if (damaged === 0 && !isLeft) lines.push(`no runs to send for ${destination.name}`);
  if (dropped > 0) lines.push(`${counted(dropped, 'run')} dropped`);
  if (damaged > 0) lines.push(`${counted(damaged, 'file')} damaged and set aside`);
  if (options.bad && before.bad.length > 0)
    lines.push(`${counted(before.bad.length, 'damaged file')} not sent, kept on disk`);
  if (isLeft) {
    const unclaimed = `some files in ${visible(settings.spoolDir)} could not be claimed or read`;
    lines.push(`the other runs remain on disk: ${lastError?.message ?? unclaimed}`);
  }
  if (after.running.length > 0) {
    const processes = counted(after.running.length, 'running process', 'running processes');
    lines.push(`${counted(runsIn(after.running), 'run')} of ${processes} not sent`);
  }
  for (const line of after.others)
    lines.push(`${line}; to send them here, too, add --from with each hash of runspan spool list`);
  print(lines.join('\n'));
  return isLeft || damaged > 0 || dropped > 0 ? 1 : 0;
}

/** Throws if a destination does not exist. With `--bad`, moves damaged files to a folder that the exporter claims. */
function prepare({ from, bad }: SendOptions, { spoolDir }: Settings, hashes: readonly string[]): void {
  const missing = from?.find((hash) => !existsSync(join(spoolDir, FORMAT_FOLDER, hash)));
  if (missing !== undefined) {
    throw new CommandFailure(`no destination ${missing} in ${spoolDir}; list the destinations with runspan spool list`);
  }
  if (bad) for (const hash of hashes) restoreBad(systemFs, spoolDir, hash, Date.now());
}

/** Delivers the runs of each destination from its own folder, so that undelivered runs remain there. */
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

function stockOf({ spoolDir }: Settings, hashes: readonly string[]) {
  const survey = surveySpool(spoolDir, Date.now());
  const own = survey.filter(({ hash }) => hashes.includes(hash));
  const holdings = holdingFiles(own.flatMap(({ owners }) => owners));
  return {
    dead: holdings.filter(({ state }) => state === 'dead'),
    running: holdings.filter(({ state }) => state !== 'dead'),
    bad: own.flatMap(({ bad }) => bad.files),
    others: othersText(survey.filter((one) => !own.includes(one))),
  };
}
