import { resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { env } from '../base/env.ts';
import { visible } from '../base/text.ts';
import { copyRuns } from '../receiver/query/store-copy.ts';
import { ClickHouse } from '../receiver/store/clickhouse/connection.ts';
import { migrate, statements } from '../receiver/store/clickhouse/schema.ts';
import { realPathOf } from '../receiver/store/sqlite/file.ts';
import { SqliteStore } from '../receiver/store/sqlite/sqlite-store.ts';
import { type CommandContext, UsageError } from './command-line.ts';
import { isUrl, openToRead, readPrices } from './stores.ts';
import { counted } from './terminal-text.ts';

const HELP = `
Copies the runs, attachments, feedback and secrets of feedback tokens of all tenants, but not the keys
and the ids of deleted runs. For an exact copy of a file, use "runspan backup". If the copy is
interrupted, run the command again.

Exit code:
  0 on success; 1 if a store cannot be opened; 2 for invalid arguments`;

const MIGRATE_HELP = `
The URL names the HTTP interface and the database, for example
"https://runspan:secret@clickhouse.example.com:8443/runspan". The database must exist. Run the command
before the first "runspan serve", and after each upgrade of runspan.

Exit code:
  0 on success; 1 if ClickHouse cannot be reached or refuses a statement; 2 for invalid arguments`;

/** Interval between progress lines, in milliseconds. */
const PROGRESS_MS = 5_000;
/** The receiver that uses the store enforces its own limits later. */
const NO_LIMITS = { maxAgeMs: Number.MAX_SAFE_INTEGER, maxBytes: Number.MAX_SAFE_INTEGER };

export function define(command: Command, context: CommandContext): void {
  command.description('Copies runs between stores.');
  command
    .command('copy')
    .description('Copy all runs of a store to another store. The other store is created if it is missing.')
    .argument('<from>', 'store file to read. A receiver may be using it')
    .argument('<to>', 'store file to write')
    .option('--prices <file>', 'JSON file with token prices, to calculate the cost of runs that report no cost')
    .addHelpText('after', HELP)
    .action((from, to, { prices }) => copy(resolve(from), resolve(to), prices, context));
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
    stdout.write(
      statements(cluster)
        .map((statement) => `${statement};\n\n`)
        .join(''),
    );
    return;
  }
  if (store === undefined || !isUrl(store)) {
    throw new UsageError('expected the URL of a ClickHouse database: set --store or RUNSPAN_STORE');
  }
  const db = await ClickHouse.connect(store);
  const count = await migrate(db, cluster).finally(() => db.close());
  stdout.write(count === 0 ? 'the tables are up to date\n' : `applied ${counted(count, 'migration')}\n`);
}

async function copy(
  fromPath: string,
  toPath: string,
  prices: string | undefined,
  { stdout, stderr }: CommandContext,
): Promise<void> {
  if (realPathOf(fromPath) === realPathOf(toPath)) throw new UsageError('expected <from> and <to> to be two files');
  const given = prices === undefined ? {} : { prices: readPrices(prices) };
  const from = await openToRead(fromPath);
  try {
    const to = await SqliteStore.open(toPath, { ...NO_LIMITS, ...given });
    try {
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
        const what = [counted(runs, 'run'), counted(traces, 'trace'), `${feedback} feedback`].join(', ');
        stdout.write(`${visible(tenant)}: copied ${what}\n`);
      }
    } finally {
      await to.close();
    }
  } finally {
    await from.close();
  }
}
