import { parseExact, withValues } from '../../../../payload/fields.ts';
import type { TimeRange } from '../../../domain/query/query.ts';
import { isFound, isUnspaced, runWords, type Search } from '../../../domain/query/search-words.ts';
import type { RunFilter } from '../../../filter/run-filter.ts';
import { all } from '../../../filter/sql.ts';
import { StoreError } from '../../store.ts';
import { type ClickHouse, inParts, integer, integers, type Sql, sql, string, uuids } from '../connection.ts';
import { MESSAGE_COLUMNS, mergedRun, payloadsIn, readMessages, TOMBSTONE, type WholeMessageRow } from '../messages.ts';
import { SEARCHED_TEXT, UNSPACED_TOKENS } from '../schema.ts';
import { directionOf, insideOf, rowCondition } from './conditions.ts';

/** Maximum number of runs whose text one search reads. */
const CANDIDATES_MAX = 20_000;
const READ_RUNS = 100;
/** Maximum number of words, and of phrases in scripts without spaces, that select candidates. */
const SELECTING_WORDS_MAX = 5;
/** Maximum number of pairs of characters that select the candidates for a phrase. */
const SELECTING_PAIRS_MAX = 8;
/** Minimum length of these words. The longest one may be shorter. */
const SELECTING_LENGTH_MIN = 4;
const RETRY_AFTER_S = 5;
/** The condition of a search that has found nothing. */
export const NO_ITEM: Sql = sql('0');
/** Tolerance for clock differences, in microseconds: how long before its run's start time a message may arrive. */
const EARLY_US = 86_400_000_000;
/** With these settings, the text index finds any part of a word. */
const ANY_PART = sql('SETTINGS text_index_like_min_pattern_length = 1, text_index_like_max_postings_to_read = 1000000');

interface Candidate {
  readonly id: string;
  readonly group_id: string;
  readonly trace: string;
  /** Start time of the run, or of the root run in a list of traces. */
  readonly start_us: number;
}

/** The page that a search has to fill. */
interface Needed {
  readonly isDescending: boolean;
  readonly limit: number;
  /** Condition for the items after the cursor. */
  readonly condition: Sql;
}

/**
 * Returns a condition for a filter's search words, or none if the filter has no search. In a list of traces, one run of
 * the trace must contain all words. If `needed` is given, the search stops once it has found enough items for one page
 * sorted by start time. Rejects with a StoreError if there are too many candidates.
 */
export async function searchConditions(
  db: ClickHouse,
  tenant: string,
  filter: RunFilter,
  list: 'runs' | 'traces',
  needed?: Needed,
): Promise<Sql[]> {
  const { search } = filter;
  if (search === undefined) return [];
  const key = list === 'traces' ? 'trace' : 'id';
  const isCandidate = candidateCondition(tenant, search, filter.range);
  const usage = list === 'traces' ? 'trace' : 'run';
  const where = all([rowCondition(tenant, filter, usage), ...(needed === undefined ? [] : [needed.condition])]);
  const direction = directionOf(needed?.isDescending ?? true);
  const inside = insideOf(tenant, filter);
  const selected =
    list === 'runs'
      ? sql`SELECT id, group_id, trace, start_us FROM runs FINAL WHERE ${where} AND ${isCandidate}
          ORDER BY start_us ${direction}, n ${direction} LIMIT ${CANDIDATES_MAX} ${ANY_PART}`
      : sql`SELECT id, group_id, trace, roots.start_us AS start_us
          FROM (SELECT id, group_id, trace FROM runs FINAL WHERE ${inside} AND ${isCandidate}) AS found
          JOIN (SELECT trace, start_us, n FROM runs FINAL WHERE is_root = 1 AND ${where}) AS roots USING (trace)
          ORDER BY roots.start_us ${direction}, roots.n ${direction} LIMIT ${CANDIDATES_MAX} ${ANY_PART}`;
  const candidates = await db.rows<Candidate>(selected);
  const limit = needed?.limit ?? Number.POSITIVE_INFINITY;
  const isCut = candidates.length === CANDIDATES_MAX;
  // The texts of so many runs are read only to fill a page.
  if (isCut && needed === undefined) throw tooManyRuns();
  const found = new Map<string, number>();
  for (let at = 0; at < candidates.length && found.size < limit; at += READ_RUNS) {
    const part = candidates.slice(at, at + READ_RUNS).filter((candidate) => !found.has(candidate[key]));
    for await (const ids of inParts(part, (some) => idsWithWords(db, tenant, search, some))) {
      for (const candidate of part) if (ids.has(candidate.id)) found.set(candidate[key], candidate.start_us);
    }
  }
  if (isCut && found.size < limit) throw tooManyRuns();
  if (found.size === 0) return [NO_ITEM];
  // The start time makes the query faster, because it is part of the primary key.
  return [sql`start_us IN (${integers([...found.values()])}) AND ${sql(key)} IN (${uuids([...found.keys()])})`];
}

function tooManyRuns(): StoreError {
  return new StoreError('busy', 'Too many runs contain these words: choose a shorter time range', RETRY_AFTER_S);
}

/** Returns a condition for runs with the search words, also inside other words or spread over their messages. */
function candidateCondition(tenant: string, { prefixes, phrases }: Search, { fromUs }: TimeRange): Sql {
  const groups = [...prefixes.map((word) => [word]), ...phrases];
  const characters = byLength(groups.map((words) => words.filter(isUnspaced)).filter(({ length }) => length > 0));
  // The index splits words at underscores.
  const words = new Set(groups.flat().flatMap((word) => (isUnspaced(word) ? [] : word.split('_').filter(Boolean))));
  const selecting = byLength([...words])
    // Short words exclude few runs, because most texts contain them.
    .filter(({ length }, at) => (at === 0 && characters.length === 0) || length >= SELECTING_LENGTH_MIN)
    .map((word) => sql`${sql(SEARCHED_TEXT)} LIKE ${string(`%${word}%`)}`);
  const message = all([
    sql`tenant = ${string(tenant)} AND kind < ${TOMBSTONE}`,
    // A run can have a start time in the future. Its messages were received before that time.
    ...(Number.isFinite(fromUs) && fromUs < Date.now() * 1_000
      ? [sql`received_us >= ${integer(fromUs - EARLY_US)}`]
      : []),
  ]);
  const conditions = [...characters.map(tokensCondition), ...selecting];
  return all(conditions.map((one) => sql`id IN (SELECT id FROM messages WHERE ${message} AND ${one})`));
}

/** Returns the longest ones, which exclude most runs. */
function byLength<Text extends { readonly length: number }>(texts: readonly Text[]): Text[] {
  return texts.toSorted((a, b) => b.length - a.length).slice(0, SELECTING_WORDS_MAX);
}

/** Returns a condition for messages in which these characters of scripts without spaces may be neighbours. */
function tokensCondition(characters: readonly string[]): Sql {
  const pairs = characters.slice(1).map((character, at) => `${characters[at]}${character}`);
  const tokens = new Set(pairs.length === 0 ? characters : pairs);
  return all(
    [...tokens].slice(0, SELECTING_PAIRS_MAX).map((token) => sql`has(${sql(UNSPACED_TOKENS)}, ${string(token)})`),
  );
}

async function idsWithWords(db: ClickHouse, tenant: string, search: Search, candidates: readonly Candidate[]) {
  const columns = sql`${MESSAGE_COLUMNS}, inputs, outputs, '' AS events`;
  const byRun = await readMessages<WholeMessageRow>(db, tenant, candidates, columns);
  return new Set([...byRun].filter(([id, own]) => hasWords(id, own, search)).map(([id]) => id));
}

function hasWords(id: string, rows: readonly WholeMessageRow[], search: Search): boolean {
  const payloads = withValues(payloadsIn(rows), (text) => parseExact(`${text}`));
  return isFound(search, runWords({ ...mergedRun(id, rows).run.fields, ...payloads }));
}
