import { indexText } from '../../node_modules/.cache/modules/receiver/domain/query/search-words.js';
import { loadEngine } from '../../node_modules/.cache/modules/receiver/store/sqlite/file/database.js';
import { openToWrite } from '../../node_modules/.cache/modules/receiver/store/sqlite/file/file.js';
import { searchedFields } from '../../node_modules/.cache/modules/receiver/store/sqlite/reads/search.js';

const BATCH = 500;
/** The tables with a run's rows, except the index of its words. */
const TABLES = ['runs', 'details', 'payloads', 'unindexed'];
/** Read into memory first, so that reading is not measured. */
const RUNS_AT_ONCE = 50_000;

/**
 * Returns the seconds in which the engine alone inserts a store's rows: the same rows into the same tables with the
 * same indexes, with prepared statements, in one thread, in transactions of 500 runs. Also returns the seconds for
 * indexing their words.
 */
export async function rawInsertSeconds(from, to) {
  const { connection: source, lock: sourceLock } = openToWrite(await loadEngine(), from);
  const { connection, lock } = openToWrite(await loadEngine(), to);
  const runs = source.number('SELECT max(n) FROM runs');
  let [rows, words] = [0, 0];
  for (let first = 1; first <= runs; first += RUNS_AT_ONCE) {
    const last = Math.min(runs, first + RUNS_AT_ONCE - 1);
    const traces = source.all('SELECT * FROM traces WHERE root BETWEEN ? AND ?', first, last).map(Object.values);
    const rowsOfTables = TABLES.map((table) => rowsOf(source, table, first, last));
    const startedMs = performance.now();
    for (let at = first; at <= last; at += BATCH) {
      connection.exec('BEGIN IMMEDIATE');
      for (let n = at; n < Math.min(last + 1, at + BATCH); n += 1) {
        for (const [index, table] of TABLES.entries()) {
          for (const row of rowsOfTables[index].get(n) ?? []) connection.run(insertion(table, row.length), ...row);
        }
      }
      connection.exec('COMMIT');
    }
    connection.exec('BEGIN IMMEDIATE');
    for (const row of traces) connection.run(insertion('traces', row.length), ...row);
    connection.exec('COMMIT');
    rows += (performance.now() - startedMs) / 1_000;
    words += indexSeconds(source, connection, first, last);
  }
  for (const each of [source, connection]) each.close();
  for (const each of [sourceLock, lock]) each.close();
  return { rows, words };
}

function indexSeconds(source, connection, first, last) {
  let seconds = 0;
  for (let at = first; at <= last; at += BATCH) {
    const texts = [];
    for (let n = at; n < Math.min(last + 1, at + BATCH); n += 1) texts.push([n, indexText(searchedFields(source, n))]);
    const startedMs = performance.now();
    connection.exec('BEGIN IMMEDIATE');
    for (const [n, text] of texts) connection.run('INSERT INTO words (rowid, text) VALUES (?, ?)', n, text);
    connection.exec('COMMIT');
    seconds += (performance.now() - startedMs) / 1_000;
  }
  return seconds;
}

const insertions = new Map();

function insertion(table, columns) {
  const known = insertions.get(table) ?? `INSERT INTO ${table} VALUES (${Array(columns).fill('?').join(', ')})`;
  insertions.set(table, known);
  return known;
}

/** Returns each run's rows. */
function rowsOf(source, table, first, last) {
  const rows = new Map();
  if (table === 'unindexed') {
    for (let n = first; n <= last; n += 1) rows.set(n, [[n]]);
    return rows;
  }
  const perRun = table === 'payloads' ? 4 : 1;
  for (const row of source.each(`SELECT * FROM ${table} WHERE n >= ? AND n < ?`, first * perRun, (last + 1) * perRun)) {
    const n = Math.floor(row.n / perRun);
    const values = Object.values(row);
    if (rows.has(n)) rows.get(n).push(values);
    else rows.set(n, [values]);
  }
  return rows;
}
