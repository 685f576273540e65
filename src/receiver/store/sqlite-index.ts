import { indexText } from './search-words.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import { searchedFields } from './sqlite-search.ts';

/** Runs of one transaction at the most. */
const STEP_RUNS = 5_000;

/** Puts the words of runs that have changed into the index, some at a time. */
export class SqliteIndex {
  readonly #connection: SqliteConnection;
  /** Runs that wait, at the most: one that has changed twice may be counted twice until all are done. */
  waiting: number;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.waiting = connection.number('SELECT count(*) FROM unindexed');
  }

  /** Works for so long, in a transaction of the caller. */
  step(limitMs: number): void {
    const begunMs = performance.now();
    const rows = this.#connection.all<{ n: number }>('SELECT n FROM unindexed ORDER BY n LIMIT ?', STEP_RUNS);
    let done = 0;
    for (const { n } of rows) {
      if (done > 0 && performance.now() - begunMs > limitMs) break;
      // Takes out what is there of it, if anything is.
      this.#connection.run('DELETE FROM words WHERE rowid = ?', n);
      this.#connection.run(
        'INSERT INTO words (rowid, text) VALUES (?, ?)',
        n,
        indexText(searchedFields(this.#connection, n)),
      );
      this.#connection.run('DELETE FROM unindexed WHERE n = ?', n);
      done += 1;
    }
    this.waiting = rows.length < STEP_RUNS && done === rows.length ? 0 : this.waiting - done;
  }
}
