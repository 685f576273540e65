import { merged } from './run-state.ts';
import { isFound, runWords, type Search } from './search-words.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import type { Condition } from './sqlite-filter.ts';
import { payloadKey } from './sqlite-run.ts';
import type { RunFields } from './store.ts';

/** Up to so many runs that the index names are looked up one by one; of more the index is asked along the way. */
const RARE_MAX = 20_000;
/** Words are indexed up to this length. */
const WORD_LENGTH_MAX = 64;

/** Finds runs by their words. What is not in the index yet is looked through, so that nothing is missed. */
export class SqliteSearch {
  readonly #connection: SqliteConnection;
  readonly #rareMax: number;
  /** What is being searched for, for the function that SQL calls. */
  #search: Search = { prefixes: [], phrases: [] };

  constructor(connection: SqliteConnection, rareMax: number = RARE_MAX) {
    this.#connection = connection;
    this.#rareMax = rareMax;
    connection.define('has_phrases', (n) => +this.#isFound(n as number));
  }

  /** A condition on `n`, the key of a run. It holds until the next is asked for. */
  condition(search: Search): Condition {
    this.#search = search;
    const query = indexQuery(search);
    const fresh = this.#unindexed().filter((n) => this.#isFound(n));
    const indexed = this.#connection.all<{ n: number }>(INDEXED, query, this.#rareMax + 1).map(({ n }) => n);
    if (indexed.length > this.#rareMax) {
      const checked = search.phrases.length === 0 ? '' : ' AND has_phrases(n)';
      const sql = `(n IN (SELECT rowid FROM words WHERE words MATCH ?) AND n NOT IN unindexed${checked})
        OR n IN (SELECT value FROM json_each(?))`;
      return { sql, values: [query, JSON.stringify(fresh)] };
    }
    const found = search.phrases.length === 0 ? indexed : indexed.filter((n) => this.#isFound(n));
    return { sql: 'n IN (SELECT value FROM json_each(?))', values: [JSON.stringify([...fresh, ...found])] };
  }

  #unindexed(): number[] {
    return this.#connection.all<{ n: number }>('SELECT n FROM unindexed').map(({ n }) => n);
  }

  #isFound(n: number): boolean {
    return isFound(this.#search, runWords(searchedFields(this.#connection, n)));
  }
}

/** The fields of a run that its words are taken from, and other small ones. */
export function searchedFields(connection: SqliteConnection, n: number): RunFields {
  const row = connection.one<{ posted: string | null; patched: string | null }>(
    'SELECT posted, patched FROM details WHERE n = ?',
    n,
  );
  const fields: RunFields = merged<RunFields>(JSON.parse(row?.posted ?? '{}'), JSON.parse(row?.patched ?? '{}'));
  for (const field of ['inputs', 'outputs'] as const) {
    const payload = connection.one<{ text: string }>('SELECT text FROM payloads WHERE n = ?', payloadKey(n, field));
    if (payload !== undefined) fields[field] = JSON.parse(payload.text);
  }
  return fields;
}

const INDEXED = 'SELECT rowid AS n FROM words WHERE words MATCH ? AND rowid NOT IN unindexed LIMIT ?';

/** The index knows which words a run has and not where, so that of a phrase it is asked for the words. */
function indexQuery({ prefixes, phrases }: Search): string {
  const whole = phrases.flat().map((word) => (word.length < WORD_LENGTH_MAX ? `"${word}"` : `"${word}"*`));
  return [...prefixes.map((word) => `"${word}"*`), ...whole].join(' ');
}
