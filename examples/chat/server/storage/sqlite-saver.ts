import { isDeepStrictEqual } from 'node:util';
import type { RunnableConfig } from '@langchain/core/runnables';
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  getCheckpointId,
  type PendingWrite,
  WRITES_IDX_MAP,
} from '@langchain/langgraph-checkpoint';
import type { Database, Query, SqlValue } from './database.ts';
import { branchVersion, openWrites, reportFailure, withRunIds } from './postgres-saver.ts';

interface CheckpointRow {
  readonly thread_id: string;
  readonly checkpoint_ns: string;
  readonly checkpoint_id: string;
  readonly parent_checkpoint_id: string | null;
  readonly checkpoint_type: string;
  readonly checkpoint: Uint8Array;
  readonly metadata_type: string;
  readonly metadata: Uint8Array;
}

interface StoredValue {
  readonly channel: string;
  readonly type: string;
  readonly value: Uint8Array;
}

/**
 * SQL that creates the saver's tables. A channel's value is stored once per version, because most channels do not
 * change from one checkpoint to the next.
 */
export const SAVER_TABLES = `
  CREATE TABLE checkpoints (
    n INTEGER PRIMARY KEY, thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT, checkpoint_type TEXT NOT NULL, checkpoint BLOB NOT NULL, metadata_type TEXT NOT NULL,
    metadata BLOB NOT NULL, UNIQUE (thread_id, checkpoint_ns, checkpoint_id)
  ) STRICT;
  CREATE TABLE channel_values (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, channel TEXT NOT NULL, version TEXT NOT NULL,
    type TEXT NOT NULL, value BLOB NOT NULL, UNIQUE (thread_id, checkpoint_ns, channel, version)
  ) STRICT;
  CREATE TABLE writes (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL,
    idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT NOT NULL, value BLOB NOT NULL,
    UNIQUE (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
  ) STRICT;
`;

/**
 * Stores checkpoints of graphs in SQLite. LangGraph's own saver is not used, because it depends on `better-sqlite3`,
 * which requires an install script.
 */
export class SqliteSaver extends BaseCheckpointSaver {
  readonly #database: Database;

  constructor(database: Database) {
    super();
    this.#database = database;
  }

  override getNextVersion(current: number | undefined): number {
    return branchVersion(current);
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const id = getCheckpointId(config);
    const { thread_id, checkpoint_ns = '' } = config.configurable ?? {};
    if (thread_id === undefined) return undefined;
    const place = { thread_id, checkpoint_ns, ...(id === '' ? {} : { checkpoint_id: id }) };
    for await (const tuple of this.list({ configurable: place }, { limit: 1 })) return tuple;
    return undefined;
  }

  /**
   * Lists checkpoints, newest first. Each checkpoint is read when it is requested, so that a long history is not held
   * in memory.
   */
  override async *list(
    config: RunnableConfig,
    { before, limit = Number.POSITIVE_INFINITY, filter = {} }: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {};
    const conditions: [string, SqlValue | undefined][] = [
      ['thread_id =', thread_id],
      ['checkpoint_ns =', checkpoint_ns],
      ['checkpoint_id =', checkpoint_id],
      ['checkpoint_id <', before?.configurable?.checkpoint_id],
    ];
    const given = conditions.filter((condition): condition is [string, SqlValue] => condition[1] !== undefined);
    const where = given.map(([condition], index) => `${condition} $${index + 1}`).join(' AND ') || 'true';
    const numbers = await this.#database.query<{ n: number }>(
      `SELECT n FROM checkpoints WHERE ${where} ORDER BY checkpoint_id DESC ${limit === 1 && Object.keys(filter).length === 0 ? 'LIMIT 1' : ''}`,
      ...given.map(([, value]) => value),
    );
    let left = limit;
    for (const { n } of numbers) {
      if (left <= 0) return;
      const [row] = await this.#database.query<CheckpointRow>('SELECT * FROM checkpoints WHERE n = $1', n);
      if (row === undefined) continue;
      const metadata = await this.serde.loadsTyped(row.metadata_type, row.metadata);
      if (!Object.entries(filter).every(([key, value]) => isDeepStrictEqual(metadata[key], value))) continue;
      left -= 1;
      yield await this.#tupleOf(row, metadata);
    }
  }

  override async put(
    config: RunnableConfig,
    { channel_values, ...checkpoint }: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { thread_id, checkpoint_ns = '', checkpoint_id: parentId = null } = config.configurable ?? {};
    if (typeof thread_id !== 'string') throw new Error('Expected a thread_id in `configurable`.');
    const [head, meta] = await Promise.all([
      this.serde.dumpsTyped(checkpoint),
      this.serde.dumpsTyped(withRunIds(config, metadata)),
    ]);
    const values = await Promise.all(
      Object.entries(newVersions)
        .filter(([channel]) => Object.hasOwn(channel_values, channel))
        .map(async ([channel, version]) => {
          return [channel, String(version), ...(await this.serde.dumpsTyped(channel_values[channel]))] as const;
        }),
    );
    const write = this.#database.transaction(async (query) => {
      await query(
        `INSERT OR REPLACE INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id,
          checkpoint_type, checkpoint, metadata_type, metadata) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
        ...[thread_id, checkpoint_ns, checkpoint.id, parentId, ...head, ...meta],
      );
      // `coalesce` is needed because the driver binds an empty Uint8Array as NULL.
      const sql = "INSERT OR IGNORE INTO channel_values VALUES ($1, $2, $3, $4, $5, coalesce($6, x''))";
      for (const value of values) await query(sql, thread_id, checkpoint_ns, ...value);
    });
    await reportFailure(config, write, undefined);
    return { configurable: { thread_id, checkpoint_ns, checkpoint_id: checkpoint.id } };
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { thread_id, checkpoint_ns = '', checkpoint_id } = config.configurable ?? {};
    if (typeof thread_id !== 'string') throw new Error('Expected a thread_id in `configurable`.');
    if (typeof checkpoint_id !== 'string') throw new Error('Expected a checkpoint_id in `configurable`.');
    const dumped = await Promise.all(writes.map(([, value]) => this.serde.dumpsTyped(value)));
    const write = this.#database.transaction(async (query) => {
      for (const [index, [channel]] of writes.entries()) {
        const [type = '', value = null] = dumped[index] ?? [];
        // If a task runs again, its special writes, such as interrupts, replace the earlier ones. All other writes of
        // the repeated task are ignored.
        const idx = WRITES_IDX_MAP[channel] ?? index;
        await query(
          `INSERT OR ${idx < 0 ? 'REPLACE' : 'IGNORE'} INTO writes
            VALUES ($1, $2, $3, $4, $5, $6, $7, coalesce($8, x''))`,
          ...[thread_id, checkpoint_ns, checkpoint_id, taskId, idx, channel, type, value],
        );
      }
    });
    await reportFailure(config, write, undefined);
  }

  override async deleteThread(threadId: string): Promise<void> {
    await this.#database.transaction(async (query: Query) => {
      for (const table of ['checkpoints', 'channel_values', 'writes'])
        await query(`DELETE FROM ${table} WHERE thread_id = $1`, threadId);
    });
  }

  async #tupleOf(row: CheckpointRow, metadata: CheckpointMetadata): Promise<CheckpointTuple> {
    const { thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id } = row;
    const configOf = (id: string): RunnableConfig => ({
      configurable: { thread_id, checkpoint_ns, checkpoint_id: id },
    });
    const checkpoint: Checkpoint = await this.serde.loadsTyped(row.checkpoint_type, row.checkpoint);
    const versions = Object.entries(checkpoint.channel_versions).map(([channel, version]) => [
      channel,
      String(version),
    ]);
    const values = await this.#database.query<StoredValue>(
      `SELECT c.channel, c.type, c.value FROM json_each($3) AS wanted CROSS JOIN channel_values AS c
        ON c.thread_id = $1 AND c.checkpoint_ns = $2 AND c.channel = wanted.key AND c.version = wanted.value`,
      ...[thread_id, checkpoint_ns, JSON.stringify(Object.fromEntries(versions))],
    );
    const writes = await this.#database.query<StoredValue & { readonly task_id: string }>(
      `SELECT task_id, channel, type, value FROM writes
        WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = $3 ORDER BY task_id, idx`,
      ...[thread_id, checkpoint_ns, checkpoint_id],
    );
    const load = ({ type, value }: StoredValue): Promise<unknown> => this.serde.loadsTyped(type, value);
    const entries = values.map(async (stored) => [stored.channel, await load(stored)] as const);
    checkpoint.channel_values = Object.fromEntries(await Promise.all(entries));
    const pendingWrites = writes.map(async (stored): Promise<CheckpointPendingWrite> => {
      return [stored.task_id, stored.channel, await load(stored)];
    });
    return {
      config: configOf(checkpoint_id),
      checkpoint,
      metadata,
      pendingWrites: openWrites(await Promise.all(pendingWrites)),
      ...(parent_checkpoint_id !== null && { parentConfig: configOf(parent_checkpoint_id) }),
    };
  }
}
