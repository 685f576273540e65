import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { dirname } from 'node:path';
import * as v from 'valibot';
import { messageOf, shown } from '../../base/text.ts';
import { isObject, isOrigin } from '../../config/checker.ts';
import { checkedVocabularies, type SpanVocabulary, vocabulariesCheck } from '../../otel/conventions/span-vocabulary.ts';
import { namesCheck } from '../../otel/mapping/resource.ts';
import { checkedPrices, type Prices } from '../../receiver/domain/cost/prices.ts';
import { filledText, object, parsed, type Schema } from '../../receiver/http/validation.ts';
import { PERMISSIONS, type Permission } from '../../receiver/store/key-store.ts';
import { CommandFailure, durationMs, sizeBytes } from '../command-line.ts';
import { storeLocation } from '../stores.ts';

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly publicUrl?: string | undefined;
  readonly allowedOrigins?: readonly string[] | undefined;
  readonly store?: string | undefined;
  /** Retention in milliseconds. */
  readonly maxAge?: number | undefined;
  /** Maximum size of the store file in bytes. */
  readonly maxSize?: number | undefined;
  readonly prices?: Prices | undefined;
  /** Names of the resource attributes of OpenTelemetry spans that become metadata. */
  readonly resource?: readonly string[] | undefined;
  readonly vocabularies?: readonly SpanVocabulary[] | undefined;
  readonly tenants: Readonly<Record<string, TenantConfig>>;
  readonly proxies: readonly ProxyConfig[];
}

interface TenantConfig {
  /** Retention of projects in milliseconds, instead of `maxAge` of the configuration. */
  readonly projects: Readonly<Record<string, { readonly maxAge?: number | undefined }>>;
  readonly limits: {
    /** Maximum number of posts and patches per minute. Each receiver counts by itself, also if several share a store. */
    readonly runsPerMinute?: number | undefined;
  };
}

/** A proxy that authenticates users. Its users get this scope. */
export interface ProxyConfig extends NamedScope {
  readonly addresses: readonly AddressRange[];
  readonly header: string;
  readonly scope: Permission;
}

interface AddressRange {
  readonly ip: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

interface NamedScope {
  readonly tenant: string;
  readonly project?: string | undefined;
}

/** Reads a configuration file. Throws a CommandFailure that lists every problem in the file. */
export function readConfig(path: string): Config {
  const fail = (problems: readonly string[]): never => {
    throw new CommandFailure(problems.map((problem) => `${path}: ${problem}`).join('\n'));
  };
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return fail([isMissing ? 'no such file: create it, or name another file with --config' : messageOf(error)]);
  }
  const result = v.safeParse(SCHEMA, value);
  if (!result.success) return fail(result.issues.map(problemOf));
  const config = result.output;
  const problems = config.proxies.flatMap((proxy, at) => scopeProblems(config, proxy, `proxies.${at}`));
  if (problems.length > 0) return fail(problems);
  const { store } = config;
  return { ...config, ...(store !== undefined && { store: storeLocation(store, dirname(path)) }) };
}

/** Returns why the configuration does not contain the tenant and its project. `place` names the scope's owner. */
export function scopeProblems({ tenants }: Config, { tenant, project }: NamedScope, place?: string): string[] {
  const pathOf = (field: string): string => (place === undefined ? `--${field}` : `\`${place}.${field}\``);
  const known = Object.hasOwn(tenants, tenant) ? tenants[tenant] : undefined;
  if (known === undefined) return [`${pathOf('tenant')} must be one of ${Object.keys(tenants).join(', ')}`];
  if (project === undefined || Object.hasOwn(known.projects, project)) return [];
  return [`${pathOf('project')} must be in \`tenants.${tenant}.projects\`: add ${shown(project)} there`];
}

function fields<Entries extends v.ObjectEntries>(entries: Entries) {
  const expected = `an object with the fields ${Object.keys(entries).join(', ')}`;
  return v.pipe(anObject(expected), v.strictObject(entries, expected));
}

/** Valibot's schemas for objects accept arrays. */
function anObject(expected: string) {
  return v.custom<Record<string, unknown>>(isObject, expected);
}

function whole(least: number, most: number = Number.MAX_SAFE_INTEGER) {
  const expected = `a whole number from ${least}${most === Number.MAX_SAFE_INTEGER ? '' : ` to ${most}`}`;
  return v.pipe(v.number(expected), v.safeInteger(expected), v.minValue(least, expected), v.maxValue(most, expected));
}

const string = (parse: (text: string) => number | undefined) => (value: unknown) =>
  typeof value === 'string' ? parse(value) : undefined;

const publicUrl = parsed('a URL without path, for example https://runs.example.com', (value) => {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/` ? url.origin : undefined;
});

const address = parsed(
  'an address or a range, for example 10.0.0.5 or 10.0.0.0/8',
  (value): AddressRange | undefined => {
    const [, ip = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(String(value)) ?? [];
    const version = isIP(ip);
    const family = version === 6 ? 'ipv6' : 'ipv4';
    const most = version === 6 ? 128 : 32;
    const prefix = bits === undefined ? most : Number(bits);
    return version === 0 || prefix > most ? undefined : { ip, prefix, family };
  },
);

function checked<Input, Output>(schema: v.GenericSchema<Input>, expected: string, check: (value: Input) => Output) {
  return v.pipe(
    schema,
    v.rawTransform<Input, Output>(({ dataset, addIssue, NEVER }) => {
      try {
        return check(dataset.value);
      } catch (error) {
        addIssue({ message: `${expected} (${messageOf(error)})` });
        return NEVER;
      }
    }),
  );
}

const vocabularyList = v.custom<readonly unknown[]>(vocabulariesCheck[1], vocabulariesCheck[0]);

const maxAge = v.optional(parsed('a time, for example 12h or 30d', string(durationMs)));

const FILLED = 'a non-empty string';
const TENANT_NAME = 'a name of 1 to 64 letters, digits, dots, hyphens and underscores';
const HEADER_NAME = 'the name of a header, for example x-forwarded-user';

const tenant = fields({
  projects: v.optional(
    v.pipe(
      anObject('an object with a field per project'),
      v.record(v.pipe(v.string(), v.nonEmpty(FILLED)), fields({ maxAge })),
    ),
    {},
  ),
  limits: v.optional(fields({ runsPerMinute: v.optional(whole(1)) }), {}),
});

const proxy = fields({
  addresses: v.pipe(v.array(address, 'an array of addresses'), v.nonEmpty('an array with at least one address')),
  header: v.pipe(v.string(HEADER_NAME), v.regex(/^[a-z0-9-]+$/i, HEADER_NAME), v.toLowerCase()),
  tenant: filledText,
  project: v.optional(filledText),
  scope: v.optional(v.picklist(PERMISSIONS, `one of ${PERMISSIONS.join(', ')}`), 'read'),
});

const SCHEMA: Schema<Config> = fields({
  host: v.optional(filledText, '127.0.0.1'),
  port: v.optional(whole(0, 65_535), 4_777),
  publicUrl: v.optional(publicUrl),
  allowedOrigins: v.optional(
    v.array(v.custom<string>(isOrigin, 'an origin such as https://shop.example.com'), 'an array'),
  ),
  store: v.optional(filledText),
  maxAge,
  maxSize: v.optional(parsed('a size, for example 500mb or 4gb', string(sizeBytes))),
  prices: v.optional(checked(object, 'an object with prices', checkedPrices)),
  resource: v.optional(v.custom<readonly string[]>(namesCheck[1], namesCheck[0])),
  vocabularies: v.optional(checked(vocabularyList, 'an array of vocabularies', checkedVocabularies)),
  tenants: v.pipe(
    anObject('an object with a field per tenant'),
    v.record(v.pipe(v.string(), v.regex(/^[\w.-]{1,64}$/, TENANT_NAME)), tenant),
    v.check((tenants) => Object.keys(tenants).length > 0, 'an object with at least one tenant'),
  ),
  proxies: v.optional(v.array(proxy, 'an array'), []),
});

function problemOf({ path, message, input, expected }: v.BaseIssue<unknown>): string {
  const keys = path?.map(({ key }) => String(key)) ?? [];
  const name = keys.length === 0 ? 'the file' : `\`${keys.join('.')}\``;
  if (path?.at(-1)?.origin !== 'key') return `expected ${name} to be ${message}, got ${shown(input)}`;
  if (expected !== 'never') {
    // A record reports an invalid key with the message of the key's schema.
    return input === undefined ? `${name} is missing` : `expected the name ${name} to be ${message}`;
  }
  const parent = keys.length === 1 ? 'the file' : `\`${keys.slice(0, -1).join('.')}\``;
  return `${name} is unknown: ${parent} is ${message}`;
}
