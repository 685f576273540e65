import type { TimeRange } from '../../query/query.ts';
import type { RunFilter } from '../run-filter.ts';
import { isFound, runWords, type Search } from '../search-words.ts';
import { allOf, conditionOf, insideOf, rangeConditions } from './conditions.ts';
import { type ClickHouse, joined, type Sql, sql, string, uuids } from './connection.ts';
import { MESSAGE_COLUMNS, payloadsIn, runOf, TOMBSTONE, type WholeMessageRow } from './messages.ts';

/** Maximum number of runs whose text is compared with the search words, latest first. */
const CANDIDATES_MAX = 20_000;
/** Number of runs that are read at once. */
const READ_RUNS = 200;
/** Maximum number of search words with which ClickHouse selects the candidates. */
const SELECTING_WORDS_MAX = 5;

/** A run that may contain the search words. */
interface Candidate {
  readonly id: string;
  readonly grp: string;
  readonly trace: string;
}

/** The runs that a page needs. */
export interface Needed {
  readonly isDescending: boolean;
  readonly limit: number;
  /** Condition of the page, in addition to the filter. */
  readonly condition: Sql;
}

/**
 * Returns the condition for the search words of a filter. Returns no condition if the filter has no search words. In a
 * list of traces, the words may occur in any run of the trace. If `needed` is given, the condition selects at least the
 * runs for a page of runs that is sorted by start time.
 */
export async function searchConditions(
  db: ClickHouse,
  tenant: string,
  filter: RunFilter,
  list: 'runs' | 'traces',
  needed?: Needed,
): Promise<Sql[]> {
  if (filter.search === undefined) return [];
  if (list === 'runs') {
    const condition = allOf([conditionOf(tenant, filter), ...(needed === undefined ? [] : [needed.condition])]);
    const found = await foundRuns(db, tenant, filter.search, filter.range, condition, needed);
    return [sql('id IN (?)', uuids(found.map(({ id }) => id)))];
  }
  const roots = conditionOf(tenant, filter, 'trace');
  const inTraces = {
    sql: `trace IN (SELECT trace FROM runs FINAL WHERE is_root = 1 AND ${roots.sql})`,
    params: roots.params,
  };
  const condition = allOf([insideOf(tenant, filter), inTraces]);
  const found = await foundRuns(db, tenant, filter.search, filter.range, condition);
  return [sql('trace IN (?)', uuids([...new Set(found.map(({ trace }) => trace))]))];
}

/**
 * Returns the runs that match a condition and contain the search words. `range` contains the start of a run of each
 * such trace.
 */
async function foundRuns(
  db: ClickHouse,
  tenant: string,
  search: Search,
  range: TimeRange,
  condition: Sql,
  { isDescending = true, limit = CANDIDATES_MAX }: Partial<Needed> = {},
): Promise<Candidate[]> {
  const direction = isDescending ? 'DESC' : 'ASC';
  const messages = candidateMessages(tenant, search, range);
  const candidates = await db.rows<Candidate>({
    sql: `SELECT id, grp, trace FROM runs FINAL WHERE ${condition.sql} AND id IN (${messages.sql})
      ORDER BY start_us ${direction}, n ${direction} LIMIT ${CANDIDATES_MAX}`,
    params: [...condition.params, ...messages.params],
  });
  const found: Candidate[] = [];
  for (let at = 0; at < candidates.length && found.length < limit; at += READ_RUNS) {
    const part = candidates.slice(at, at + READ_RUNS);
    const ids = await idsWithWords(db, tenant, search, part);
    found.push(...part.filter(({ id }) => ids.has(id)));
  }
  return found;
}

/**
 * Selects the ids of the runs whose messages contain the search words. Text with characters other than ASCII is always
 * selected, because searches ignore accents. The same applies to text with escaped characters.
 */
function candidateMessages(tenant: string, { prefixes, phrases }: Search, range: TimeRange): Sql {
  const words = [...prefixes, ...phrases.flat()].filter((word) => /^[\0-\x7f]+$/.test(word));
  const longest = words.sort((a, b) => b.length - a.length).slice(0, SELECTING_WORDS_MAX);
  const conditions = longest.map((word) =>
    sql(`positionCaseInsensitive(text, ?) > 0 OR ${HAS_OTHER_CHARACTERS}`, string(word)),
  );
  const selecting = conditions.length === 0 ? [sql(HAS_OTHER_CHARACTERS)] : conditions;
  const inRange = rangeConditions(range);
  const { sql: groups, params } = allOf([sql('tenant = ?', string(tenant)), ...inRange]);
  const where = allOf([
    sql(`tenant = ? AND kind < ${TOMBSTONE}`, string(tenant)),
    ...(inRange.length === 0 ? [] : [{ sql: `grp IN (SELECT grp FROM runs WHERE ${groups})`, params }]),
    joined(selecting, ' OR '),
  ]);
  const inRun = selecting.map((one) => ({ sql: `max(${one.sql})`, params: one.params }));
  // The words of a run may be in different messages.
  const having = inRun.length === 1 ? sql('') : joined([sql(' GROUP BY id HAVING 1'), ...inRun], ' AND ');
  return {
    sql: `WITH concat(fields, inputs, outputs) AS text
      SELECT id FROM messages WHERE ${where.sql}${having.sql}`,
    params: [...where.params, ...having.params],
  };
}

const HAS_OTHER_CHARACTERS = `length(text) != lengthUTF8(text) OR position(text, '\\\\u') > 0`;

async function idsWithWords(
  db: ClickHouse,
  tenant: string,
  search: Search,
  candidates: readonly Candidate[],
): Promise<Set<string>> {
  const rows = await db.rows<WholeMessageRow>(
    sql(
      `SELECT ${MESSAGE_COLUMNS}, inputs, outputs, '' AS events FROM messages
        WHERE tenant = ? AND grp IN (?) AND id IN (?) AND kind < ${TOMBSTONE} ORDER BY received_us`,
      string(tenant),
      uuids([...new Set(candidates.map(({ grp }) => grp))]),
      uuids(candidates.map(({ id }) => id)),
    ),
  );
  const byRun = new Map<string, WholeMessageRow[]>(candidates.map(({ id }) => [id, []]));
  for (const row of rows) byRun.get(row.id)?.push(row);
  return new Set([...byRun].filter(([id, own]) => hasWords(id, own, search)).map(([id]) => id));
}

function hasWords(id: string, rows: readonly WholeMessageRow[], search: Search): boolean {
  const { inputs, outputs } = payloadsIn(rows);
  const fields = {
    ...runOf(id, rows).run.fields,
    ...(inputs !== undefined && { inputs: JSON.parse(inputs) }),
    ...(outputs !== undefined && { outputs: JSON.parse(outputs) }),
  };
  return isFound(search, runWords(fields));
}
