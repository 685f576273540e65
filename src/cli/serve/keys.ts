import { type Command, Option, type OptionValues } from '@commander-js/extra-typings';
import { visible } from '../../base/text.ts';
import { ClickHouse } from '../../receiver/store/clickhouse/connection.ts';
import { ClickHouseKeys } from '../../receiver/store/clickhouse/keys.ts';
import { checkSchema } from '../../receiver/store/clickhouse/schema.ts';
import { keyIdOf, newKey, PERMISSIONS, type StoredKey } from '../../receiver/store/key-store.ts';
import type { SqliteKeys } from '../../receiver/store/sqlite/keys.ts';
import { WorkerThread } from '../../receiver/store/sqlite/threads/thread.ts';
import { type CommandContext, CommandFailure, UsageError } from '../command-line.ts';
import { isUrl } from '../stores.ts';
import { type Config, readConfig, scopeProblems } from './config.ts';
import { CONFIG_FILE, namedStore } from './serve.ts';

const HELP = `
The receiver may be running. It accepts a new key, and rejects a revoked key, within a second.

Exit code:
  0; 1 if the configuration is invalid, the store cannot be opened or the key is unknown; 2 for
  invalid arguments`;

const METRICS_OF_PROJECT = 'a key with the scope metrics reads figures of all projects: leave out --project';

export function define(command: Command, { stdout, stderr }: CommandContext): void {
  command.description('Creates, lists and revokes the keys of a receiver.').addHelpText('after', HELP);

  withStoreOptions(command.command('create').description('Create a key and print it. The key is not shown again.'))
    .requiredOption('--tenant <name>', 'tenant whose data the key can reach')
    .option('--project <name>', 'limit the key to this project')
    .addOption(
      new Option('--scope <scope>', 'what the key allows: to send, to read, everything, or only /metrics')
        .choices(PERMISSIONS)
        .makeOptionMandatory(),
    )
    .option('--name <name>', 'name of the key in lists')
    .action(async ({ tenant, project, scope: permission, name, ...options }) => {
      const config = configOf(options);
      const [problem] = config === undefined ? [] : scopeProblems(config, { tenant, project });
      if (problem !== undefined) throw new UsageError(problem);
      if (permission === 'metrics' && project !== undefined) throw new UsageError(METRICS_OF_PROJECT);
      const { id, hash, text } = newKey();
      const limits = { ...(project !== undefined && { project }), ...(name !== undefined && { name }) };
      const key: StoredKey = { id, hash, tenant, permission, createdMs: Date.now(), ...limits };
      await withKeys(namedStore(config, options.store), true, (keys) => keys.addKey(key));
      stdout.write(`${text}\n`);
      stderr.write(`runspan: created the key ${id}; store the key now, it is not shown again\n`);
    });

  withStoreOptions(command.command('list').description('List the keys, without their secrets.')).action(
    async (options) => {
      const keys = await withKeys(locationOf(options), false, (keys) => keys.keys());
      stdout.write(keys.length === 0 ? 'no keys\n' : table([COLUMNS, ...keys.map(rowOf)]));
    },
  );

  withStoreOptions(command.command('revoke').description('Revoke a key.').argument('<id>', 'id of the key')).action(
    async (given, options) => {
      // Users may pass the whole key.
      const id = keyIdOf(given) ?? given;
      const key = await withKeys(locationOf(options), false, (keys) => keys.revokeKey(id, Date.now()));
      if (key === undefined) throw new CommandFailure(`there is no key ${id}: see runspan keys list`);
      stdout.write(`revoked the key ${id}\n`);
    },
  );
}

interface StoreOptions {
  readonly config?: string | undefined;
  readonly store?: string | undefined;
}

function withStoreOptions<Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) {
  return command
    .option('--config <file>', `configuration of the receiver (default: ${CONFIG_FILE}, without --store)`)
    .option(
      '--store <location>',
      'file or ClickHouse URL that stores the keys (default: `store` in the configuration)',
    );
}

function locationOf(options: StoreOptions): string {
  return namedStore(configOf(options), options.store);
}

function configOf({ config, store }: StoreOptions): Config | undefined {
  return config === undefined && store !== undefined ? undefined : readConfig(config ?? CONFIG_FILE);
}

/** Functions that run in a worker thread. */
type KeyCalls = { [Name in keyof SqliteKeys]: SqliteKeys[Name] };

type KeyList = Pick<ClickHouseKeys, 'addKey' | 'keys' | 'revokeKey'>;

/** Opens a store beside receivers that may be using it. */
export async function withKeys<Result>(
  location: string,
  create: boolean,
  use: (keys: KeyList) => Promise<Result>,
): Promise<Result> {
  if (isUrl(location)) return await withDatabase(location, (db) => use(new ClickHouseKeys(db)));
  const thread = await WorkerThread.open<KeyCalls>({ path: location, keys: { create } });
  const keys: KeyList = {
    addKey: (key) => thread.call('addKey', key),
    keys: () => thread.call('keys'),
    revokeKey: (id, revokedMs) => thread.call('revokeKey', id, revokedMs),
  };
  return await use(keys).finally(() => thread.close());
}

/** Calls `use` with a connection to a database whose tables are up to date. */
export async function withDatabase<Result>(url: string, use: (db: ClickHouse) => Promise<Result>): Promise<Result> {
  const db = await ClickHouse.connect(url);
  return await checkSchema(db)
    .then(() => use(db))
    .finally(() => db.close());
}

const COLUMNS = ['id', 'scope', 'tenant', 'project', 'name', 'created', 'last used', 'revoked'];

function rowOf(key: StoredKey): string[] {
  const { id, permission, tenant, project = '-', name = '-' } = key;
  const times = [key.createdMs, key.usedMs, key.revokedMs].map((ms) =>
    ms === undefined ? '-' : `${new Date(ms).toISOString().slice(0, 19)}Z`,
  );
  return [id, permission, tenant, project, name, ...times].map(visible);
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = COLUMNS.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const lineOf = (row: readonly string[]): string => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ');
  return rows.map((row) => `${lineOf(row).trimEnd()}\n`).join('');
}
