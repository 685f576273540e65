import { indexedWords, indexText, isFound, runWords, type Search } from '../../../domain/query/search-words.ts';
import type { RunFields } from '../../../domain/run-message.ts';
import type { SqliteConnection } from '../file/database.ts';
import { parsedPayloads } from '../payloads.ts';
import { rowFields, type SelectedRun } from '../run-row.ts';
import type { Condition } from './lists.ts';

/**
 * Maximum number of runs to select by a condition in advance. If more runs match the condition, SQLite checks the
 * condition for each run in the order of the list, and stops at the end of the page.
 */
export const RARE_MAX: number = 20_000;
const WORD_LENGTH_MAX = 64;
const STEP_RUNS = 5_000;

/** Percentage of deleted runs above which a part of the index is rewritten. The default of 10 % takes too long. */
const DELETED_PERCENT = 50;

/** Finds runs by words. Runs that are not indexed yet are read one by one, so results are complete. */
export class SqliteSearch {
  readonly #connection: SqliteConnection;
  readonly #check: () => void;
  readonly #rareMax: number;
  /** Search that the SQL function `has_phrases` evaluates. */
  #search: Search = { prefixes: [], phrases: [] };

  /** `check` throws to end a search. */
  constructor(connection: SqliteConnection, check: () => void, rareMax: number = RARE_MAX) {
    this.#connection = connection;
    this.#check = check;
    this.#rareMax = rareMax;
    connection.define('has_phrases', (n) => +this.#isFound(n as number));
  }

  /** Returns a condition on the run's key `n`. The condition is valid until the next call. */
  condition(search: Search): Condition {
    this.#search = search;
    const query = indexQuery(search);
    const fresh = this.#unindexed().filter((n) => this.#isFound(n));
    const indexed = this.#indexed(query);
    if (indexed.length > this.#rareMax) {
      const checked = search.phrases.length === 0 ? '' : ' AND has_phrases(runs.n)';
      const sql = `(runs.n IN (SELECT rowid FROM words WHERE words MATCH ?) AND runs.n NOT IN unindexed${checked})
        OR runs.n IN (SELECT value FROM json_each(?))`;
      return { sql, params: [query, JSON.stringify(fresh)] };
    }
    const found = search.phrases.length === 0 ? indexed : indexed.filter((n) => this.#isFound(n));
    return { sql: 'runs.n IN (SELECT value FROM json_each(?))', params: [JSON.stringify([...fresh, ...found])] };
  }

  /**
   * Returns the runs that contain all words of the texts, and the runs that are not indexed yet. Returns undefined if the
   * texts contain no words, or if there are many such runs.
   */
  runsWith(texts: readonly string[]): readonly number[] | undefined {
    const phrases = texts.map(indexedWords);
    if (phrases.flat().length === 0) return undefined;
    const found = this.#indexed(indexQuery({ prefixes: [], phrases }));
    return found.length > this.#rareMax ? undefined : [...this.#unindexed(), ...found];
  }

  #indexed(query: string): number[] {
    return this.#connection.all<{ n: number }>(INDEXED, query, this.#rareMax + 1).map(({ n }) => n);
  }

  #unindexed(): number[] {
    return this.#connection.all<{ n: number }>('SELECT n FROM unindexed').map(({ n }) => n);
  }

  #isFound(n: number): boolean {
    this.#check();
    return isFound(this.#search, runWords(searchedFields(this.#connection, n)));
  }
}

/** Indexes the words of changed runs, and deletes the words of deleted runs. */
export class SqliteIndex {
  readonly #connection: SqliteConnection;
  /** Number of runs that are not indexed yet. A run that changed twice may count twice. */
  waiting: number;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.waiting = connection.number('SELECT count(*) FROM unindexed');
    // Not a parameter, because node:sqlite binds numbers as REAL, and FTS5 accepts only integers here.
    connection.run(`INSERT INTO words (words, rank) VALUES ('deletemerge', ${DELETED_PERCENT})`);
  }

  /** Indexes runs for up to `limitMs` milliseconds within the caller's transaction. */
  step(limitMs: number): void {
    const begunMs = performance.now();
    const rows = this.#connection.all<{ n: number }>('SELECT n FROM unindexed ORDER BY n LIMIT ?', STEP_RUNS);
    let done = 0;
    for (const { n } of rows) {
      if (done > 0 && performance.now() - begunMs > limitMs) break;
      this.#connection.run('DELETE FROM words WHERE rowid = ?', n);
      if (this.#connection.one('SELECT 1 FROM runs WHERE n = ?', n) !== undefined) {
        const text = indexText(searchedFields(this.#connection, n));
        this.#connection.run('INSERT INTO words (rowid, text) VALUES (?, ?)', n, text);
      }
      this.#connection.run('DELETE FROM unindexed WHERE n = ?', n);
      done += 1;
    }
    this.waiting = rows.length < STEP_RUNS && done === rows.length ? 0 : this.waiting - done;
  }
}

export function searchedFields(connection: SqliteConnection, n: number): RunFields {
  const row = connection.one<SelectedRun>('SELECT runs.*, fields FROM runs JOIN details USING (n) WHERE n = ?', n);
  return { ...(row && rowFields(row)), ...parsedPayloads(connection, n, ['inputs', 'outputs']) };
}

const INDEXED = 'SELECT rowid AS n FROM words WHERE words MATCH ? AND rowid NOT IN unindexed LIMIT ?';

/** Splits phrases into words, because the index contains no word positions. */
function indexQuery({ prefixes, phrases }: Search): string {
  const whole = phrases.flat().map((word) => (word.length < WORD_LENGTH_MAX ? `"${word}"` : `"${word}"*`));
  return [...prefixes.map((word) => `"${word}"*`), ...whole].join(' ');
}
