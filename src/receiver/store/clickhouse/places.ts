import { forgetOldest } from '../../../base/forget-oldest.ts';
import {
  decideTraces,
  type Identity,
  identitiesIn,
  identityOf,
  type KnownTrace,
  type TraceNames,
} from '../../domain/identity.ts';
import { type ClickHouse, type Sql, sql, strings, uuids } from './connection.ts';
import { dayOf, dayOfMs, type Message, type Place } from './messages.ts';

const KNOWN_MAX = 100_000;
export const EARLIEST_DAY = '2000-01-01';
const DAY_MS = 86_400_000;
const UUID_LENGTH = 36;

/** A group. Its id, like all names in this file, follows the name of the tenant. The day of a new group is undefined. */
interface PlacedGroup extends KnownTrace {
  isNamed: boolean;
  day: string | undefined;
}

/** Finds the group and the day under which a message is stored. */
export class PlaceFinder {
  readonly #db: ClickHouse;
  /** Places of recent runs and of traces with a `trace_id`, see `groupKeyText`. */
  readonly #known = new Map<string, Place>();

  constructor(db: ClickHouse) {
    this.#db = db;
  }

  /** Returns the place of each message. Removes a `trace_id` that does not name the group. */
  async find(
    messages: readonly Message[],
    sent: readonly Pick<Message, 'tenant' | 'id' | 'fields'>[] = messages,
  ): Promise<ReadonlyMap<Message, Place>> {
    const today = dayOfMs(Date.now());
    const runs = identitiesIn(
      sent.map(({ tenant, id, fields }) => ({ id: tenant + id, identity: ofTenant(tenant, identityOf(fields)) })),
    );
    const names = await this.#names(runs);
    const groups = decideTraces(runs, names);
    const places = new Map<Message, Place>();
    for (const message of messages) {
      const { trace_id: _, ...fields } = message.fields;
      const run = message.tenant + message.id;
      const group = groups.get(run) as PlacedGroup;
      const { traceId = '' } = runs.get(run) ?? {};
      message.fields = names.named(traceId) === group ? { ...fields, trace_id: uuidOf(traceId) } : fields;
      group.day ??= storedDay(dayOf(fields), today);
      places.set(message, { group_id: uuidOf(group.id), day: group.day });
    }
    return places;
  }

  remember(places: ReadonlyMap<Message, Place>): void {
    for (const [{ tenant, id, fields }, place] of places) {
      for (const key of [keyOf(tenant + id, 0), ...(fields.trace_id ? [keyOf(tenant + fields.trace_id, 1)] : [])]) {
        this.#known.delete(key);
        this.#known.set(key, place);
      }
    }
    forgetOldest(this.#known, KNOWN_MAX);
  }

  async #names(runs: ReadonlyMap<string, Identity>): Promise<Names> {
    const names = new Names();
    const asked = new Set<string>();
    const isKnown = (name: string, isTrace: 0 | 1): boolean => {
      const place = this.#known.get(keyOf(name, isTrace));
      if (place === undefined) asked.add(name);
      else names.add(name, isTrace, place, true);
      return place !== undefined;
    };
    for (const [id, { traceId, otelTraceId, parentId = id }] of runs) {
      for (const run of [id, parentId]) isKnown(run, 0);
      if (traceId !== undefined) isKnown(traceId, 0);
      if (traceId !== undefined && isKnown(traceId, 1)) continue;
      isKnown(otelTraceId ?? id, 1);
    }
    const keys = [...asked].map((name) => ({ tenant: name.slice(0, -UUID_LENGTH), id: uuidOf(name) }));
    const rows = await readNames(this.#db, keys);
    for (const { tenant, id, is_trace, is_named, ...place } of rows)
      names.add(tenant + id, is_trace, place, is_named === 1);
    return names;
  }
}

interface TenantId {
  readonly tenant: string;
  readonly id: string;
}

interface StoredName extends Place, TenantId {
  readonly is_trace: 0 | 1;
  readonly is_named: 0 | 1;
}

class Names implements TraceNames<PlacedGroup> {
  readonly #groups = new Map<string, PlacedGroup>();
  readonly #byName = new Map<string, PlacedGroup>();

  add(name: string, isTrace: 0 | 1, { group_id, day }: Place, isNamed: boolean): void {
    const id = name.slice(0, -UUID_LENGTH) + group_id;
    const group = this.#groups.get(id) ?? { id, isNamed: false, day };
    group.isNamed ||= isTrace === 1 && isNamed;
    this.#groups.set(id, group);
    this.#byName.set(keyOf(name, isTrace), group);
  }

  ofRun(id: string): PlacedGroup | undefined {
    return this.#byName.get(keyOf(id, 0));
  }

  named(name: string): PlacedGroup | undefined {
    return this.#byName.get(keyOf(name, 1));
  }

  create(id: string, isNamed: boolean): PlacedGroup {
    const group = { id, isNamed, day: undefined };
    this.setName(group, id, isNamed);
    return group;
  }

  setName(group: PlacedGroup, name: string, isTraceId: boolean): void {
    group.isNamed ||= isTraceId;
    this.#byName.set(keyOf(name, 1), group);
  }
}

function ofTenant(tenant: string, { traceId, otelTraceId, parentId }: Identity): Identity {
  const own = (name: string | undefined): string | undefined => (name === undefined ? undefined : tenant + name);
  return { traceId: own(traceId), otelTraceId: own(otelTraceId), parentId: own(parentId) };
}

function uuidOf(name: string): string {
  return name.slice(-UUID_LENGTH);
}

function keyOf(name: string, isTrace: 0 | 1): string {
  return isTrace + name;
}

/** Returns a condition that a column contains one of the ids. The conversion uses the sort key of the tables. */
export function inKeys(keys: readonly TenantId[], column: 'id' | 'group_id' = 'id'): Sql {
  const [tenants, ids] = [strings(keys.map(({ tenant }) => tenant)), uuids(keys.map(({ id }) => id))];
  return sql`(tenant, toUInt128(${sql(column)})) IN
    (SELECT arrayJoin(arrayZip(${tenants}, arrayMap(id -> toUInt128(id), ${ids}))))`;
}

/** Order of the groups that have had a name. */
const FIRST = sql('(first_us, found.group_id)');

export async function readNames(db: ClickHouse, names: readonly TenantId[]): Promise<StoredName[]> {
  return names.length === 0 ? [] : await db.rows<StoredName>(namesIn(names));
}

/** Selects the group that each name means, see `RUN_IDS`. */
export function namesIn(names: readonly TenantId[]): Sql {
  return sql`SELECT tenant, id, is_trace, argMin(found.group_id, ${FIRST}) AS group_id,
      argMin(first_day, ${FIRST}) AS day, argMin(named, ${FIRST}) AS is_named FROM (
      SELECT tenant, id, is_trace, group_id, min(day) AS first_day, min(added_us) AS first_us, max(is_named) AS named
      FROM run_ids WHERE is_trace < 2 AND ${inKeys(names)} GROUP BY tenant, id, is_trace, group_id) AS found
    GROUP BY tenant, id, is_trace`;
}

/** Returns `day`, or `today` if `day` is missing, earlier than 2000 or later than tomorrow. */
function storedDay(day: string | undefined, today: string): string {
  const tomorrow = dayOfMs(Date.parse(today) + DAY_MS);
  return day === undefined || day < EARLIEST_DAY || day > tomorrow ? today : day;
}
