import { otelTraceIdOf } from '../../domain/removal.ts';
import { type ClickHouse, sql, strings, uuids } from './connection.ts';
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
   * of the run's earlier messages or of its children, the OpenTelemetry trace id, or the parent's group. If none is
   * known, the run starts a new group.
   */
  async find(messages: readonly Message[]): Promise<ReadonlyMap<Message, Place>> {
    const today = dayOfMs(Date.now());
    const named = new Map<string, Place>();
    const unnamed: Message[] = [];
    for (const message of messages) {
      const { trace_id: group_id } = message.fields;
      if (group_id === undefined) unnamed.push(message);
      else named.set(keyOf(message), { group_id, day: storedDay(dayOf(message.fields), today) });
    }
    const asked = unnamed.flatMap(({ tenant, id, fields }) =>
      [id, fields.parent_run_id ?? id].map((of) => ({ tenant, id: of })),
    );
    const places = new Map([...(await this.#stored(asked.filter((run) => !named.has(keyOf(run))))), ...named]);
    // If a run has both a post and a patch, use the one that names its parent or its OpenTelemetry trace.
    const byRun = new Map<string, Message>();
    for (const message of unnamed)
      if (!byRun.has(keyOf(message)) || isLinked(message)) byRun.set(keyOf(message), message);
    const placeOf = (key: string): Place | undefined => {
      const message = byRun.get(key);
      if (places.has(key) || message === undefined) return places.get(key);
      const { tenant, id, fields } = message;
      const trace = otelTraceIdOf(message.fields);
      const own = { group_id: trace ?? id, day: storedDay(dayOf(fields), today) };
      // Must come before the recursion, which would otherwise never end if runs are each other's parents.
      places.set(key, own);
      const parentId = trace === undefined ? fields.parent_run_id : undefined;
      const place = (parentId === undefined ? undefined : placeOf(keyOf({ tenant, id: parentId }))) ?? own;
      places.set(key, place);
      return place;
    };
    return new Map(
      messages.map((message) => [message, placeOf(keyOf(message)) ?? { group_id: message.id, day: today }]),
    );
  }

  /** Keeps the places of stored messages. */
  remember(places: ReadonlyMap<Message, Place>): void {
    for (const [message, place] of places) {
      this.#known.delete(keyOf(message));
      this.#known.set(keyOf(message), place);
    }
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= KNOWN_MAX) return;
      this.#known.delete(oldest);
    }
  }

  /** Returns the places that were stored last for runs, by tenant and run id. Unknown runs have no entry. */
  async #stored(runs: readonly RunKey[]): Promise<ReadonlyMap<string, Place>> {
    const places = new Map<string, Place>();
    const unknown = new Map<string, RunKey>();
    for (const run of runs) {
      const place = this.#known.get(keyOf(run));
      if (place === undefined) unknown.set(keyOf(run), run);
      else places.set(keyOf(run), place);
    }
    if (unknown.size === 0) return places;
    const asked = [...unknown.values()];
    const rows = await this.#db.rows<Place & RunKey>(
      sql(
        `SELECT tenant, id, argMax(group_id, added_us) AS group_id, argMax(day, added_us) AS day FROM run_ids
          WHERE (tenant, toUInt128(id)) IN ${KEYS} GROUP BY tenant, id`,
        strings(asked.map(({ tenant }) => tenant)),
        uuids(asked.map(({ id }) => id)),
      ),
    );
    for (const { tenant, id, group_id, day } of rows) places.set(keyOf({ tenant, id }), { group_id, day });
    return places;
  }
}

interface RunKey {
  readonly tenant: string;
  readonly id: string;
}

function keyOf({ tenant, id }: RunKey): string {
  return tenant + id;
}

/** A set of tenants and ids. The parameters are an array of each. The conversion uses the sort key of the tables. */
export const KEYS = '(SELECT arrayJoin(arrayZip(?, arrayMap(id -> toUInt128(id), ?))))';

function isLinked(message: Message): boolean {
  return message.fields.parent_run_id !== undefined || otelTraceIdOf(message.fields) !== undefined;
}

/** Returns `day`, or `today` if `day` is missing, earlier than 2000 or later than tomorrow. */
function storedDay(day: string | undefined, today: string): string {
  const tomorrow = dayOfMs(Date.parse(today) + DAY_MS);
  return day === undefined || day < EARLIEST_DAY || day > tomorrow ? today : day;
}
