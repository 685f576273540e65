import { unwatchFile, watchFile } from 'node:fs';
import { BlockList } from 'node:net';
import type { Command } from '@commander-js/extra-typings';
import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf, visibleJson } from '../../base/text.ts';
import { mappingWith } from '../../otel/mapping/span-to-run.ts';
import type { ProjectAges } from '../../receiver/domain/retention/ages.ts';
import { Access, type AccessRules, type TrustedProxy } from '../../receiver/http/access/access.ts';
import { type Keyring, StoredKeys } from '../../receiver/http/access/keyring.ts';
import { TokenSigner } from '../../receiver/http/access/token-signer.ts';
import { RunLimits } from '../../receiver/http/run-limits.ts';
import { Faults } from '../../receiver/http/server/faults.ts';
import { startServer } from '../../receiver/receiver.ts';
import { ClickHouseStore } from '../../receiver/store/clickhouse/clickhouse-store.ts';
import type { KeyStore } from '../../receiver/store/key-store.ts';
import { SqliteStore } from '../../receiver/store/sqlite/sqlite-store.ts';
import type { Store, StoreStatus } from '../../receiver/store/store.ts';
import { type CommandContext, CommandFailure, type Ending, UsageError, untilStopped } from '../command-line.ts';
import { isUrl, PRICES_OPTION, readPrices, shownStore, storeLocation } from '../stores.ts';
import { type Config, type ProxyConfig, readConfig } from './config.ts';

const HELP = `
Requests need a key: create keys with "runspan keys create". Log lines are JSON on standard output.
The receiver reads the configuration again when the file changes. On SIGTERM, the receiver finishes
pending requests and exits.

Exit code:
  0; 1 if the configuration is invalid, the store cannot be opened or the receiver cannot listen;
  2 for invalid arguments or a missing store`;

export const CONFIG_FILE = 'runspan.json';

export function define(command: Command, context: CommandContext): void {
  command
    .description('Starts a receiver for a team, with tenants and keys from a configuration file.')
    .option('--config <file>', `configuration (default: ${CONFIG_FILE})`, CONFIG_FILE)
    .option('--store <location>', 'file or ClickHouse URL that stores the runs (default: `store` in the configuration)')
    .option('--prices <file>', PRICES_OPTION)
    .addHelpText('after', HELP)
    .action(async (options) => context.endAs(await serve(options, context)));
}

/** Returns the path or the URL of the store that an option or the configuration names. */
export function namedStore(config: Config | undefined, named: string | undefined): string {
  const store = named ?? config?.store;
  if (store === undefined) throw new UsageError('expected a store: set `store` in the configuration, or --store');
  return storeLocation(store);
}

interface ServiceStore extends Store, KeyStore {
  status(): Promise<StoreStatus>;
  setProjectAges(ages: ProjectAges): Promise<void>;
  close(): Promise<void>;
}

async function openStore(location: string, config: Config, priceFile: string | undefined): Promise<ServiceStore> {
  const { maxAge, maxSize, prices } = config;
  const options = {
    projectMaxAgeMs: projectAgesOf(config),
    ...(maxAge !== undefined && { maxAgeMs: maxAge }),
    ...readPrices(priceFile, prices),
  };
  if (!isUrl(location)) {
    return await SqliteStore.open(location, { ...options, ...(maxSize !== undefined && { maxBytes: maxSize }) });
  }
  if (maxSize !== undefined) throw new CommandFailure('`maxSize` applies only to a store file: use `maxAge`');
  return await ClickHouseStore.open(location, options);
}

type LogLine = (level: string, message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** Maximum time that pending requests have after SIGTERM, in milliseconds. */
const DRAIN_MS = 20_000;
/** Interval at which the configuration file is checked, in milliseconds. */
const CHECK_INTERVAL_MS = 1_000;
/** Fields that take effect only after a restart. */
const FIXED_FIELDS = ['host', 'port', 'store', 'maxAge', 'maxSize', 'prices', 'resource', 'vocabularies'] as const;

async function serve(
  given: { readonly config: string; readonly store?: string | undefined; readonly prices?: string | undefined },
  { stdout }: CommandContext,
): Promise<Ending> {
  const started = readConfig(given.config);
  let config = started;
  const log: LogLine = (level, message, fields) =>
    void stdout.write(
      `${visibleJson(JSON.stringify({ time: new Date().toISOString(), level, message, ...fields }))}\n`,
    );
  diagnostics.setLog((level, message) => log(level, message));
  const { host, port } = started;
  const location = namedStore(config, given.store);
  const store = await openStore(location, config, given.prices);
  try {
    const tenants = (): string[] => Object.keys(config.tenants);
    const keys = new StoredKeys(store, tenants);
    const access = new Access(rulesOf(config, keys), new TokenSigner(store));
    const limits = new RunLimits((tenant) => config.tenants[tenant]?.limits.runsPerMinute);
    const status = (): Promise<StoreStatus> => store.status();
    const { vocabularies, resource } = started;
    const mapping = mappingWith(vocabularies, resource);
    const options = { store, strict: false, faults: new Faults(), access, limits, status, tenants, mapping };
    const server = await startServer(options, host, port, { closeMs: DRAIN_MS });
    const stopWatching = watchConfig(given.config, log, (changed) => {
      const fixed = FIXED_FIELDS.filter((field) => JSON.stringify(changed[field]) !== JSON.stringify(started[field]));
      config = changed;
      access.rules = rulesOf(config, keys);
      store.setProjectAges(projectAgesOf(config)).catch((error) => log('error', messageOf(error)));
      log('info', 'the configuration has changed', fixed.length === 0 ? {} : { effective_after_restart: fixed });
    });
    try {
      if (store instanceof SqliteStore) await store.setAddress(server.url);
      log('info', 'the receiver is listening', { url: server.url, store: shownStore(location), tenants: tenants() });
      const ending = await untilStopped();
      log('info', 'the receiver is stopping');
      return ending;
    } finally {
      stopWatching();
      await server.close();
    }
  } finally {
    await store.close();
    log('info', 'the receiver has stopped');
  }
}

/** Calls `onChange` with each new valid configuration. Logs an invalid configuration. Returns a function to stop. */
function watchConfig(path: string, log: LogLine, onChange: (config: Config) => void): () => void {
  const check = (): void => {
    try {
      onChange(readConfig(path));
    } catch (error) {
      const problems = error instanceof Error ? error.message.split('\n') : [messageOf(error)];
      log('error', 'the configuration is invalid, the previous one stays in use', { problems });
    }
  };
  // Compares the file's status, because editors and Kubernetes replace the file instead of changing it.
  watchFile(path, { interval: CHECK_INTERVAL_MS, persistent: false }, check);
  return () => unwatchFile(path, check);
}

function projectAgesOf({ tenants }: Config): ProjectAges {
  const agesOf = ({ projects }: Config['tenants'][string]) =>
    Object.entries(projects).flatMap(([project, { maxAge }]) => (maxAge === undefined ? [] : [[project, maxAge]]));
  return Object.fromEntries(Object.entries(tenants).map(([name, one]) => [name, Object.fromEntries(agesOf(one))]));
}

function rulesOf({ host, publicUrl, allowedOrigins, proxies }: Config, keys: Keyring): AccessRules {
  return {
    host,
    keys,
    publicUrl,
    allowedOrigins,
    allowedHosts: publicUrl === undefined ? [] : [new URL(publicUrl).hostname],
    proxies: proxies.map(proxyOf),
  };
}

function proxyOf({ addresses, header, tenant, project, scope: permission }: ProxyConfig): TrustedProxy {
  const list = new BlockList();
  for (const { ip, prefix, family } of addresses) list.addSubnet(ip, prefix, family);
  const scope = { tenant, ...(project !== undefined && { project }) };
  return { addresses: list, header, grant: { id: `proxy ${header}`, scope, permission } };
}
