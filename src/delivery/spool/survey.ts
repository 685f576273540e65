import { join, resolve } from 'node:path';
import { diagnostics } from '../../base/diagnostics.ts';
import { ignoreErrors } from '../../base/guard.ts';
import { shownAddress } from '../../config/checker.ts';
import {
  BAD_FOLDER,
  FORMAT_FOLDER,
  isDestination,
  type Owner,
  OwnerFolder,
  ownersIn,
  removeIfEmpty,
  segmentsIn,
} from './directory.ts';
import { checkFolders, ifExists, removeFile, type SpoolFs, systemFs } from './fs.ts';
import { type RunName, readSegment } from './segment.ts';

export interface Files {
  readonly folder: string;
  readonly files: readonly string[];
  readonly bytes: number;
  readonly oldestMs: number | undefined;
}

export interface Holding extends Files {
  readonly runs: number;
}

/** The files for one endpoint with its workspace, or with its API key if no workspace is set. */
export interface DestinationSurvey {
  readonly hash: string;
  readonly owners: readonly (Holding & Pick<Owner, 'name' | 'state'>)[];
  /** Damaged files. Readable runs in these files are not counted, because the runs were already delivered. */
  readonly bad: Files;
}

export function surveySpool(spoolDir: string, wallMs: number): DestinationSurvey[] {
  const hashes = ifExists(() => destinationsIn(systemFs, spoolDir)) ?? [];
  return hashes.sort().map((hash) => surveyDestination(spoolDir, hash, wallMs));
}

export function purge({ folder, files }: Files): void {
  for (const file of files) removeFile(systemFs, file);
  removeIfEmpty(systemFs, folder);
}

/**
 * Moves undelivered segment files from `bad` to a new folder. The next exporter for the same destination takes over the
 * files. The age of each file is reset to 0.
 */
export function restoreBad(fs: SpoolFs, spoolDir: string, destinationHash: string, wallMs: number): void {
  const owner = new OwnerFolder(fs, spoolDir, destinationHash, () => wallMs);
  const bad = join(owner.destinationPath, BAD_FOLDER);
  if (ifExists(() => checkFolders(fs, spoolDir, [FORMAT_FOLDER, destinationHash, BAD_FOLDER]) ?? true) !== true) return;
  try {
    for (const file of segmentsIn(fs, bad)) {
      const path = join(bad, file);
      const { records, damagedRuns } = readSegment(fs, path) ?? { records: [], damagedRuns: [] };
      // The readable records of a damaged file were already delivered.
      if (records.length === 0 || damagedRuns.length > 0) continue;
      owner.make();
      fs.utimesSync(path, wallMs / 1_000, wallMs / 1_000);
      fs.renameSync(path, join(owner.path, file));
    }
  } finally {
    owner.leave();
  }
}

/**
 * Finds segment files that dead processes left for other destinations. If a process's newest file is older than
 * `ageMaxMs`, deletes the process's files one by one, and yields the runs in each file. Logs once how to deliver the
 * remaining files.
 */
export function* expireLeftovers(
  { fs, spoolDir, destinationHash }: OwnerFolder,
  endpoint: URL,
  wallMs: number,
  ageMaxMs: number,
): Generator<readonly RunName[]> {
  // All exporters in a process use the same folder, so one search per minute is enough.
  if (Math.abs(wallMs - (searchedAtMs.get(spoolDir) ?? 0)) < SEARCH_EVERY_MS) return;
  searchedAtMs.set(spoolDir, wallMs);
  const hashes = (ignoreErrors(() => destinationsIn(fs, spoolDir)) ?? []).filter((hash) => hash !== destinationHash);
  const leftovers = hashes.flatMap((hash) => ignoreErrors(() => leftoversOf(fs, spoolDir, hash, wallMs)) ?? []);
  const waiting = leftovers.filter(({ writtenAtMs }) => wallMs - writtenAtMs <= ageMaxMs);
  if (waiting.length > 0) logLeftovers(spoolDir, endpoint, waiting);
  for (const leftover of leftovers) if (!waiting.includes(leftover)) yield* deleteLeftover(fs, leftover);
}

/** Segment files of a dead process, for a destination that no live process uses. */
interface Leftover {
  readonly destinationHash: string;
  readonly folder: string;
  readonly files: readonly string[];
  /** Modification time of the newest file. */
  readonly writtenAtMs: number;
}

function* deleteLeftover(fs: SpoolFs, { folder, files }: Leftover): Generator<readonly RunName[]> {
  const ids = new Set<string>();
  for (const file of files) {
    try {
      const content = readSegment(fs, file);
      if (content === undefined || content.isLaterVersion) continue;
      fs.unlinkSync(file);
      const runs = [...content.records.map(({ run }) => run), ...content.damagedRuns];
      yield runs.filter(({ id }) => id === '' || (!ids.has(id) && ids.add(id)));
    } catch {
      // The next search tries to delete the file again.
    }
  }
  removeIfEmpty(fs, folder);
}

function logLeftovers(spoolDir: string, endpoint: URL, leftovers: readonly Leftover[]): void {
  const count = leftovers.reduce((sum, { files }) => sum + files.length, 0);
  const hashes = [...new Set(leftovers.map(({ destinationHash }) => destinationHash))].slice(0, DESTINATIONS_MAX);
  const command = `runspan spool send ${sendOptions(spoolDir, hashes, ['--endpoint', shownAddress(endpoint)])}`;
  diagnostics.warnOnce(
    `spool ${spoolDir} others`,
    `spool: files for another endpoint, workspace or key wait in ${spoolDir} (${count}), and expire after limits.spoolAgeMs. ` +
      `If these settings have changed, set RUNSPAN_ENDPOINT to ${shownAddress(endpoint)} and run \`${command}\`, which sends the runs to ${endpoint.origin} with ` +
      'RUNSPAN_API_KEY and RUNSPAN_WORKSPACE_ID. Omit each --from of another program or tenant.',
  );
}

const SEARCH_EVERY_MS = 50_000;

const searchedAtMs = new Map<string, number>();

const DESTINATIONS_MAX = 5;

function leftoversOf(fs: SpoolFs, spoolDir: string, destinationHash: string, wallMs: number): Leftover[] {
  checkFolders(fs, spoolDir, [FORMAT_FOLDER, destinationHash]);
  const owners = ownersIn(fs, join(spoolDir, FORMAT_FOLDER, destinationHash), wallMs);
  // If a live process uses the destination, it takes over the files of dead processes.
  if (owners.some(({ state }) => state !== 'dead')) return [];
  return owners.flatMap(({ path: folder }) => {
    const files = segmentsIn(fs, folder).map((name) => join(folder, name));
    const writtenAtMs = Math.max(...files.map((path) => fs.lstatSync(path).mtimeMs));
    return files.length === 0 ? [] : [{ destinationHash, folder, files, writtenAtMs }];
  });
}

function destinationsIn(fs: SpoolFs, spoolDir: string): string[] {
  checkFolders(fs, spoolDir, [FORMAT_FOLDER]);
  return fs.readdirSync(join(spoolDir, FORMAT_FOLDER)).filter(isDestination);
}

function surveyDestination(spoolDir: string, hash: string, wallMs: number): DestinationSurvey {
  checkFolders(systemFs, spoolDir, [FORMAT_FOLDER, hash]);
  const folder = join(resolve(spoolDir), FORMAT_FOLDER, hash);
  const owners = ownersIn(systemFs, folder, wallMs).sort((one, other) => (one.name < other.name ? -1 : 1));
  return {
    hash,
    owners: owners.map(({ name, path, state }) => ({ name, state, ...holdingIn(path) })),
    bad: holdingIn(join(folder, BAD_FOLDER)),
  };
}

/** Counts the segment files in a folder. Files that another process deletes or moves meanwhile are skipped. */
function holdingIn(folder: string): Holding {
  const files: string[] = [];
  const ids = new Set<string>();
  let bytes = 0;
  let oldestMs: number | undefined;
  for (const name of segmentsIn(systemFs, folder)) {
    const path = join(folder, name);
    const segment = ifExists(() => readSegment(systemFs, path));
    if (segment === undefined) continue;
    for (const { run } of segment.records) ids.add(run.id);
    bytes += segment.bytes;
    oldestMs = Math.min(oldestMs ?? segment.modifiedAtMs, segment.modifiedAtMs);
    files.push(path);
  }
  return { folder, files, runs: ids.size, bytes, oldestMs };
}

/** Returns the options with which `runspan spool send` sends the runs of these destinations, quoted for a shell. */
export function sendOptions(spoolDir: string, hashes: readonly string[], others: readonly string[] = []): string {
  return ['--dir', spoolDir, ...others, ...hashes.flatMap((hash) => ['--from', hash])].map(shellWord).join(' ');
}

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
