import type { SqliteDatabase } from './sqlite-database.ts';
import type { ThreadIndex, ThreadSummary } from './thread-index.ts';

export class SqliteThreads implements ThreadIndex {
  readonly #database: SqliteDatabase;

  constructor(database: SqliteDatabase) {
    this.#database = database;
  }

  async touch({ id, title, updatedAt }: ThreadSummary, how?: 'renamed'): Promise<void> {
    this.#database.run(
      `INSERT INTO threads (id, title, updated_at, place)
        SELECT ?, ?, ?, coalesce(max(place), 0) + 1 FROM threads WHERE true
        ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at, place = excluded.place,
          title = CASE WHEN title = '""' OR ? AND excluded.title != '""' THEN excluded.title ELSE title END`,
      id,
      JSON.stringify(title),
      updatedAt,
      how === 'renamed' ? 1 : 0,
    );
  }

  async list(limit: number, offset: number): Promise<ThreadSummary[]> {
    const sql = 'SELECT id, title, updated_at FROM threads ORDER BY place DESC LIMIT ? OFFSET ?';
    const rows = this.#database.all<{ id: string; title: string; updated_at: string }>(sql, limit, offset);
    return rows.map(({ id, title, updated_at }) => ({ id, title: JSON.parse(title), updatedAt: updated_at }));
  }

  async delete(id: string): Promise<void> {
    this.#database.run('DELETE FROM threads WHERE id = ?', id);
  }
}
