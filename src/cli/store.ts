import type { Command } from '@commander-js/extra-typings';
import { visible } from '../base/text.ts';
import { env } from '../config/environment.ts';
import { delay } from '../platform/timers.ts';
import { copyRuns } from '../receiver/api/store-copy.ts';
import { ALL_RUNS } from '../receiver/filter/run-filter.ts';
import { ClickHouseStore } from '../receiver/store/clickhouse/clickhouse-store.ts';
import { StoreClock } from '../receiver/store/clickhouse/clock.ts';
import { ClickHouse } from '../receiver/store/clickhouse/connection.ts';
import { ClickHouseRetentionTime } from '../receiver/store/clickhouse/retention.ts';
import { migrate, statements } from '../receiver/store/clickhouse/schema.ts';
import type { SqliteRepricing } from '../receiver/store/sqlite/repricing.ts';
import type { SqliteRetentionTime } from '../receiver/store/sqlite/retention.ts';
import { SqliteStore } from '../receiver/store/sqlite/sqlite-store.ts';
import { WorkerThread } from '../receiver/store/sqlite/threads/thread.ts';
import { type CommandContext, CommandFailure, UsageError } from './command-line.ts';
import { readConfig } from './serve/config.ts';
import { withDatabase, withKeys } from './serve/keys.ts';
import {
  isUrl,
  NO_LIMITS,
  openStoreToRead,
  PRICES_OPTION,
  readPrices,
  storeFile,
  storeLocation,
  withReported,
} from './stores.ts';
import { counted } from './terminal-text.ts';

const HELP = `
A store is a file, or the URL of a ClickHouse database with user and password. Copies the runs,
attachments, feedback, and the secrets and revocations of feedback tokens of all tenants. Does not copy
runs without a name, a type or a start time, the ids of deleted runs, and the keys without --keys. For
an exact copy of a file, use "runspan backup". If the copy is interrupted, run the command again.

Exit code:
  0 on success; 1 if a store cannot be opened or lacks some of the runs after the copy; 2 for invalid
  arguments`;

const REPRICE_HELP = `
Changes the costs of runs that report no cost, in lists, traces and statistics too. Give the same prices
to the receiver that uses the store, because it calculates the costs of new and changed runs.

Exit code:
  0 on success; 1 if the prices are invalid or the file cannot be opened; 2 for invalid arguments`;

const MIGRATE_HELP = `
The URL names the HTTP interface and the database, for example
"https://runspan:secret@clickhouse.example.com:8443/runspan". Special characters in the password must be
percent-encoded. The database must exist. Run the command before the first "runspan serve", and after
each upgrade of runspan.

Exit code:
  0 on success; 1 if ClickHouse cannot be reached or refuses a statement; 2 for invalid arguments`;

const PRUNE_HELP = `
The retention time of a store decides which runs are too old. It follows the clock by at most a day per
hour while a receiver runs, so that a wrong clock deletes nothing at once. After a long pause it is late.
With --yes, the receiver that uses the store deletes the old runs within a minute, with ClickHouse within
an hour.

Exit code:
  0 on success; 1 if --yes is missing or the store cannot be opened; 2 for invalid arguments`;

const REASONS_MAX = 20;
const DAY_MS = 86_400_000;
const PROGRESS_MS = 5_000;

export function define(command: Command, context: CommandContext): void {
  command.description(
    'Copies runs between stores, calculates costs again, deletes old runs, and prepares ClickHouse databases.',
  );
  command
    .command('copy')
    .description('Copy all runs of a store to another store. A missing store file is created.')
    .argument('<from>', 'store to read. Receivers may be using it')
    .argument('<to>', 'store to write. Receivers may be using a ClickHouse database, but not a store file')
    .option('--keys', 'copy the keys too')
    .option('--prices <file>', PRICES_OPTION)
    .addHelpText('after', HELP)
    .action((from, to, options) => copy(storeLocation(from), storeLocation(to), options, context));
  command
    .command('reprice')
    .description('Calculate the costs of stored runs again, with other prices.')
    .argument('[file]', 'store file. A receiver may be using it (default: RUNSPAN_STORE, otherwise ~/.runspan/runs.db)')
    .option('--prices <file>', PRICES_OPTION)
    .option('--config <file>', 'use the `prices` in this configuration of a receiver')
    .addHelpText('after', REPRICE_HELP)
    .action((file, options) => reprice(file, options, context));
  command
    .command('prune')
    .description('Set the retention time of a store to the clock, so that old runs are deleted.')
    .argument(
      '[store]',
      'file or ClickHouse URL. Receivers may be using it (default: RUNSPAN_STORE, otherwise ~/.runspan/runs.db)',
    )
    .option('--yes', 'set the time; without this option, only show it')
    .addHelpText('after', PRUNE_HELP)
    .action((store, { yes }) => prune(store, yes === true, context));
  command
    .command('migrate')
    .description('Create or update the tables of a store in ClickHouse.')
    .option('--store <url>', 'URL of the database, with user and password (default: RUNSPAN_STORE)')
    .option('--cluster <name>', 'create replicated tables on all servers of this ClickHouse cluster')
    .option('--print', 'print the statements instead of executing them')
    .addHelpText('after', MIGRATE_HELP)
    .action((options) => migrateStore(options, context));
}

async function migrateStore(
  { store = env('RUNSPAN_STORE'), cluster, print }: { store?: string; cluster?: string; print?: true },
  { stdout }: CommandContext,
): Promise<void> {
  if (print) {
    for (const statement of statements(cluster)) stdout.write(`${statement};\n\n`);
    return;
  }
  if (store === undefined || !isUrl(store)) {
    throw new UsageError('expected the URL of a ClickHouse database: set --store or RUNSPAN_STORE');
  }
  const db = await ClickHouse.connect(store);
  const count = await migrate(db, cluster).finally(() => db.close());
  stdout.write(count === 0 ? 'the tables are up to date\n' : `applied ${counted(count, 'migration')}\n`);
}

async function reprice(
  named: string | undefined,
  { prices, config }: { prices?: string; config?: string },
  { stdout, stderr }: CommandContext,
): Promise<void> {
  const path = fileOf(named);
  const options = readPrices(prices, config === undefined ? undefined : readConfig(config).prices);
  await withReported(path, await openStoreToRead(path), stderr, () => {});
  const thread = await WorkerThread.open<Pick<SqliteRepricing, 'step'>>({ path, reprice: options });
  const total = { runs: 0, changed: 0 };
  const unknown = new Map<string, number>();
  try {
    for (let last = 0, isDone = false; !isDone; ) {
      const startMs = performance.now();
      const step = await thread.call('step', last);
      ({ last, isDone } = step);
      total.runs += step.runs;
      total.changed += step.changed;
      for (const [reason, runs] of Object.entries(step.unknown)) unknown.set(reason, (unknown.get(reason) ?? 0) + runs);
      // Otherwise a receiver that writes to the file would find it locked most of the time.
      if (!isDone) await delay(performance.now() - startMs, undefined);
    }
  } finally {
    await thread.close();
  }
  stdout.write(`calculated the costs of ${counted(total.runs, 'run')}; ${total.changed} changed\n`);
  const reasons = [...unknown].sort(([, a], [, b]) => b - a);
  for (const [reason, runs] of reasons.slice(0, REASONS_MAX)) {
    stdout.write(`${counted(runs, 'run')} without a cost: ${visible(reason)}\n`);
  }
  if (reasons.length > REASONS_MAX) stdout.write(`… and ${reasons.length - REASONS_MAX} other reasons\n`);
}

async function prune(named: string | undefined, isConfirmed: boolean, { stdout, stderr }: CommandContext) {
  const given = named ?? env('RUNSPAN_STORE');
  const location = given !== undefined && isUrl(given) ? given : fileOf(given);
  await withReported(location, await openLocation(location), stderr, () => {});
  await withRetentionTime(location, async (time, wallMs) => {
    const timeMs = (await time.read()) ?? wallMs;
    const [earlier, now] = [timeMs, wallMs].map((ms) => new Date(ms).toISOString());
    const lag = `${(Math.max(0, wallMs - timeMs) / DAY_MS).toFixed(1)} days`;
    stdout.write(`retention time ${earlier}, clock ${now}, lag ${lag}\n`);
    if (!isConfirmed) throw new CommandFailure('would set the retention time to the clock; pass --yes to confirm');
    await time.write(wallMs);
    stdout.write('set the retention time to the clock\n');
  });
}

/** Calls `use` with the retention time of a store and the time of its clock. Receivers may be using the store. */
async function withRetentionTime(
  location: string,
  use: (time: Pick<ClickHouseRetentionTime, 'read' | 'write'>, wallMs: number) => Promise<void>,
): Promise<void> {
  if (isUrl(location)) {
    const wallMs = async (db: ClickHouse): Promise<number> => (await StoreClock.open(db)).wallMs();
    return await withDatabase(location, async (db) => use(new ClickHouseRetentionTime(db), await wallMs(db)));
  }
  type Calls = Pick<SqliteRetentionTime, 'read' | 'write'>;
  const thread = await WorkerThread.open<Calls>({ path: location, retention: true });
  const time = { read: () => thread.call('read'), write: (timeMs: number) => thread.call('write', timeMs) };
  await use(time, Date.now()).finally(() => thread.close());
}

/** Returns the path of the store file. Throws for a store in memory. */
function fileOf(named: string | undefined): string {
  const file = storeFile(named);
  if (file === undefined) throw new UsageError('expected a store file: RUNSPAN_STORE is `memory`');
  return file;
}

function openLocation(location: string): Promise<SqliteStore | ClickHouseStore> {
  return isUrl(location) ? ClickHouseStore.open(location, { readOnly: true }) : openStoreToRead(location);
}

async function copy(
  fromLocation: string,
  toLocation: string,
  { prices, keys }: { prices?: string; keys?: true },
  context: CommandContext,
): Promise<void> {
  if (fromLocation === toLocation) throw new UsageError('expected <from> and <to> to be two stores');
  const given = readPrices(prices);
  const opened = await openLocation(fromLocation);
  const isComplete = await withReported(fromLocation, opened, context.stderr, async (from) => {
    const to = await (isUrl(toLocation)
      ? ClickHouseStore.open(toLocation, { ...given, maxAgeMs: NO_LIMITS.maxAgeMs })
      : SqliteStore.open(toLocation, { ...given, ...NO_LIMITS }));
    return withReported(toLocation, to, context.stderr, () => copyTenants(from, to, context));
  });
  if (keys) {
    const count = await copyKeys(fromLocation, toLocation);
    context.stdout.write(`copied ${counted(count, 'key')}\n`);
  }
  if (!isComplete) {
    throw new CommandFailure('<to> has fewer runs than were copied: it does not accept runs that were deleted in it');
  }
}

/** Returns whether the second store has at least as many runs as were copied, in each tenant. */
async function copyTenants(
  from: SqliteStore | ClickHouseStore,
  to: SqliteStore | ClickHouseStore,
  { stdout, stderr }: CommandContext,
): Promise<boolean> {
  let isComplete = true;
  for (const secret of await from.tokenSecrets()) await to.addTokenSecret(secret);
  let reportedMs = performance.now();
  for (const tenant of await from.tenants()) {
    const scope = { tenant };
    for (const { id, revokedMs } of await from.revokedTokens(scope)) await to.revokeTokens(scope, id, revokedMs);
    const { runs, traces, feedback } = await copyRuns(from, to, scope, (copied) => {
      if (performance.now() - reportedMs < PROGRESS_MS) return;
      reportedMs = performance.now();
      stderr.write(`runspan: copied ${counted(copied, 'run')} of ${visible(tenant)}\n`);
    });
    if (to instanceof ClickHouseStore) await to.settled();
    const { total } = await to.statistics(scope, { filter: ALL_RUNS });
    const what = [counted(runs, 'run'), counted(traces, 'trace'), `${feedback} feedback`].join(', ');
    stdout.write(`${visible(tenant)}: copied ${what}; <to> has ${counted(total.runs, 'run')}\n`);
    isComplete &&= total.runs >= runs;
  }
  return isComplete;
}

/** Adds the keys that the second store lacks, and revokes the keys that are revoked in the first store. */
async function copyKeys(fromLocation: string, toLocation: string): Promise<number> {
  const copied = await withKeys(fromLocation, false, (from) => from.keys());
  return await withKeys(toLocation, false, async (to) => {
    const known = new Set((await to.keys()).map(({ id }) => id));
    for (const key of copied) {
      if (!known.has(key.id)) await to.addKey(key);
      if (key.revokedMs !== undefined) await to.revokeKey(key.id, key.revokedMs);
    }
    return copied.length;
  });
}
