import { isObject } from '../../../config/checker.ts';
import { grouped } from '../../domain/grouped.ts';
import { type ClickHouse, type InsertRow, sql, string, uuids } from './connection.ts';
import { addLinks, type Link } from './links.ts';
import { dayOf, dayOfMs, type Message, type Place } from './messages.ts';

/** Maximum number of places kept in memory. */
const KNOWN_MAX = 100_000;
export const EARLIEST_DAY = '2000-01-01';
const DAY_MS = 86_400_000;

/** Finds the group and the day under which a message is stored. */
export class PlaceFinder {
  readonly #db: ClickHouse;
  /** Group and day of the most recent runs, keyed by tenant and run id. */
  readonly #known = new Map<string, Place>();

  constructor(db: ClickHouse) {
    this.#db = db;
  }

  /**
   * Returns the place of each message. The group is the first of these that is known: the message's trace id, the group
   * of the run's earlier messages, the OpenTelemetry trace id, or the parent's group. If none is known, the run starts
   * a new group.
   */
  async find(messages: readonly Message[]): Promise<ReadonlyMap<Message, Place>> {
    const places = new Map<Message, Place>();
    for (const [tenant, own] of grouped(messages, (message) => message.tenant)) {
      for (const [message, place] of await this.#findIn(tenant, own)) places.set(message, place);
    }
    return places;
  }

  async #findIn(tenant: string, messages: readonly Message[]): Promise<ReadonlyMap<Message, Place>> {
    const today = dayOfMs(Date.now());
    const named = new Map<string, Place>();
    for (const { id, fields } of messages) {
      if (fields.trace_id === undefined) continue;
      named.set(id, { grp: fields.trace_id, day: storedDay(dayOf(fields), today) });
    }
    const unnamed = messages.filter(({ id }) => !named.has(id));
    const asked = unnamed.flatMap(({ id, fields }) => [id, fields.parent_run_id ?? id]);
    const stored = await this.#stored(
      tenant,
      asked.filter((id) => !named.has(id)),
    );
    // If a run has both a post and a patch, use the one that names its parent or its OpenTelemetry trace.
    const byId = new Map<string, Message>();
    for (const message of unnamed) if (!byId.has(message.id) || isLinked(message)) byId.set(message.id, message);
    const places = new Map([...stored, ...named]);
    const placeOf = (id: string): Place | undefined => {
      const message = byId.get(id);
      if (places.has(id) || message === undefined) return places.get(id);
      const trace = otelTraceOf(message);
      const own = { grp: trace ?? id, day: storedDay(dayOf(message.fields), today) };
      // Must come before the recursion, which would otherwise never end if runs are each other's parents.
      places.set(id, own);
      const parent = trace === undefined ? message.fields.parent_run_id : undefined;
      const place = (parent === undefined ? undefined : placeOf(parent)) ?? own;
      places.set(id, place);
      return place;
    };
    return new Map(messages.map((message) => [message, placeOf(message.id) ?? { grp: message.id, day: today }]));
  }

  /** Returns the places of runs, by run id. Unknown runs have no entry. */
  async #stored(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, Place>> {
    const places = new Map<string, Place>();
    const unknown = new Set<string>();
    for (const id of ids) {
      const place = this.#known.get(tenant + id);
      if (place === undefined) unknown.add(id);
      else places.set(id, place);
    }
    if (unknown.size === 0) return places;
    return new Map([...places, ...(await readPlaces(this.#db, tenant, [...unknown]))]);
  }

  /**
   * Stores the group and the day of runs, unless this receiver has already stored them. If a run was in another group
   * before, links the two groups.
   */
  async add(places: Iterable<readonly [tenant: string, id: string, place: Place]>, nowUs: () => number): Promise<void> {
    const rows: InsertRow[] = [];
    const added: [string, Place][] = [];
    const links = new Map<string, Link[]>();
    const addedUs = nowUs();
    for (const [tenant, id, place] of places) {
      const known = this.#known.get(tenant + id);
      if (known?.grp === place.grp) continue;
      rows.push({ tenant, id, ...place, added_us: addedUs });
      added.push([tenant + id, place]);
      if (known !== undefined) links.set(tenant, [...(links.get(tenant) ?? []), [known.grp, place.grp]]);
    }
    await this.#db.insert('run_ids', rows);
    for (const [tenant, own] of links) await addLinks(this.#db, tenant, own, nowUs());
    for (const [key, place] of added) this.#remember(key, place);
  }

  #remember(key: string, place: Place): void {
    this.#known.delete(key);
    this.#known.set(key, place);
    if (this.#known.size <= KNOWN_MAX) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      break;
    }
  }
}

/** Reads the group and the day that were last stored for each run, by run id. Unknown runs have no entry. */
export async function readPlaces(
  db: ClickHouse,
  tenant: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Place>> {
  const rows = await db.rows<Place & { id: string }>(
    sql(
      `SELECT id, argMax(grp, added_us) AS grp, argMax(day, added_us) AS day FROM run_ids
        WHERE tenant = ? AND id IN (?) GROUP BY id`,
      string(tenant),
      uuids(ids),
    ),
  );
  return new Map(rows.map(({ id, grp, day }) => [id, { grp, day }]));
}

function isLinked(message: Message): boolean {
  return message.fields.parent_run_id !== undefined || otelTraceOf(message) !== undefined;
}

/** Returns a message's OpenTelemetry trace id as a UUID. */
function otelTraceOf({ fields }: Message): string | undefined {
  const otel = fields.extra?.metadata?.otel;
  const id = isObject(otel) ? otel.trace_id : undefined;
  if (typeof id !== 'string' || !/^[0-9a-f]{32}$/i.test(id)) return undefined;
  return id.toLowerCase().replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Returns `day`, or `today` if `day` is missing, earlier than 2000 or later than tomorrow. */
function storedDay(day: string | undefined, today: string): string {
  const tomorrow = dayOfMs(Date.parse(today) + DAY_MS);
  return day === undefined || day < EARLIEST_DAY || day > tomorrow ? today : day;
}
