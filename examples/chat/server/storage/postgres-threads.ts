import type { Pool } from 'pg';
import type { ThreadIndex, ThreadSummary } from './thread-index.ts';

export class PostgresThreads implements ThreadIndex {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async touch({ id, title, updatedAt }: ThreadSummary, how?: 'renamed'): Promise<void> {
    await this.#pool.query(
      `INSERT INTO chat.threads AS t (id, title, updated_at) VALUES ($1, $2, $3)
        ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at, place = excluded.place,
          title = CASE WHEN t.title = '""' OR $4 AND excluded.title != '""' THEN excluded.title ELSE t.title END`,
      [id, JSON.stringify(title), updatedAt, how === 'renamed'],
    );
  }

  async list(limit: number, offset: number): Promise<ThreadSummary[]> {
    const { rows } = await this.#pool.query<{ id: string; title: string; updated_at: string }>(
      'SELECT id, title, updated_at FROM chat.threads ORDER BY place DESC LIMIT $1 OFFSET $2',
      [limit, offset],
    );
    return rows.map(({ id, title, updated_at }) => ({ id, title: JSON.parse(title), updatedAt: updated_at }));
  }

  async delete(id: string): Promise<void> {
    await this.#pool.query('DELETE FROM chat.threads WHERE id = $1', [id]);
  }
}
