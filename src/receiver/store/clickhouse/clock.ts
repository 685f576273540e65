import { type ClickHouse, sql } from './connection.ts';

/**
 * The clock of ClickHouse, so that all receivers of a database have the same time. Otherwise, the changes of a receiver
 * whose clock is late would count as earlier than the stored ones.
 */
export class StoreClock {
  readonly #db: ClickHouse;
  /** Time of ClickHouse when `performance.now()` was 0, in microseconds. */
  #originUs = 0;
  #latestUs = 0;

  private constructor(db: ClickHouse) {
    this.#db = db;
  }

  static async open(db: ClickHouse): Promise<StoreClock> {
    const clock = new StoreClock(db);
    await clock.synchronize();
    return clock;
  }

  /** Reads the time of ClickHouse. `performance.now()` may stop while a machine is suspended. */
  async synchronize(): Promise<void> {
    const startMs = performance.now();
    const [row] = await this.#db.rows<{ us: number }>(sql('SELECT toUnixTimestamp64Micro(now64(6)) AS us'));
    if (row !== undefined) this.#originUs = Math.floor(row.us - ((startMs + performance.now()) / 2) * 1_000);
  }

  /** Returns the current time in microseconds. Every call returns a later time than the one before. */
  nowUs(): number {
    this.#latestUs = Math.max(this.#originUs + Math.floor(performance.now() * 1_000), this.#latestUs + 1);
    return this.#latestUs;
  }

  /** The time of ClickHouse's clock, which may be set back. */
  wallMs(): number {
    return Math.floor(this.#originUs / 1_000 + performance.now());
  }

  nowMs(): number {
    return Math.floor(this.nowUs() / 1_000);
  }
}
