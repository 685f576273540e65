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
import { versionAfter } from './channel-version.ts';
import { type Dumped, SqliteChannels } from './sqlite-channels.ts';
import type { SqliteDatabase, SqlValue } from './sqlite-database.ts';

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

/** The format that checkpoints have by now. */
const FORMAT = 4;

/** Checkpoints of graphs in a file. */
export class SqliteSaver extends BaseCheckpointSaver {
  readonly #database: SqliteDatabase;
  readonly #channels: SqliteChannels;

  constructor(database: SqliteDatabase) {
    super();
    this.#database = database;
    this.#channels = new SqliteChannels(database, this.serde);
  }

  override getNextVersion(current: number | undefined): number {
    return versionAfter(current);
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread_id, checkpoint_ns = '' } = config.configurable ?? {};
    if (thread_id === undefined) return undefined;
    const id = getCheckpointId(config);
    const [isIt, values] = id === '' ? ['', []] : [' AND checkpoint_id = ?', [id]];
    const row = this.#database.one<CheckpointRow>(
      `SELECT * FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?${isIt} ORDER BY checkpoint_id DESC LIMIT 1`,
      thread_id,
      checkpoint_ns,
      ...values,
    );
    return row && this.#tupleOf(row);
  }

  /** Newest first. Each is read when its turn comes, so that a long history is not held in memory. */
  override async *list(
    config: RunnableConfig,
    { before, limit, filter }: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    let left = limit ?? Number.POSITIVE_INFINITY;
    for (const n of this.#numbers(config, before)) {
      if (left <= 0) return;
      const row = this.#database.one<CheckpointRow>('SELECT * FROM checkpoints WHERE n = ?', n);
      if (row === undefined || !(await this.#fits(row, filter))) continue;
      left -= 1;
      yield await this.#tupleOf(row);
    }
  }

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { thread_id, checkpoint_ns = '', checkpoint_id } = config.configurable ?? {};
    checkThread(thread_id);
    const { channel_values, ...rest } = checkpoint;
    const changed = Object.entries(newVersions).filter(([channel]) => channel in channel_values);
    const [dumped, dumpedMetadata, ...values] = await Promise.all([
      this.serde.dumpsTyped(rest),
      this.serde.dumpsTyped(metadata),
      ...changed.map(([channel]) => this.serde.dumpsTyped(channel_values[channel])),
    ]);
    this.#database.transaction(() => {
      for (const [place, [channel, version]] of changed.entries()) {
        this.#channels.write({ thread_id, checkpoint_ns }, channel, version, values[place] as Dumped);
      }
      this.#database.run(
        `INSERT OR REPLACE INTO checkpoints
          (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint_type, checkpoint, metadata_type, metadata)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        ...[thread_id, checkpoint_ns, checkpoint.id, checkpoint_id ?? null],
        ...[...dumped, ...dumpedMetadata],
      );
    });
    return { configurable: { thread_id, checkpoint_ns, checkpoint_id: checkpoint.id } };
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { thread_id, checkpoint_ns = '', checkpoint_id } = config.configurable ?? {};
    checkThread(thread_id);
    if (checkpoint_id === undefined) throw new Error('The config has no checkpoint_id in its "configurable".');
    const dumped = await Promise.all(writes.map(([, value]) => this.serde.dumpsTyped(value)));
    this.#database.transaction(() => {
      for (const [place, [channel]] of writes.entries()) {
        const [type, value] = dumped[place] as [string, Uint8Array];
        // Those of a kind of their own, as interrupts, are written anew; the others stay what they were when a task runs again.
        const idx = WRITES_IDX_MAP[channel] ?? place;
        const row = [thread_id, checkpoint_ns, checkpoint_id, taskId, idx, channel, type, value] as SqlValue[];
        const otherwise = idx < 0 ? 'REPLACE' : 'IGNORE';
        // Bytes of which there are none may arrive as NULL.
        this.#database.run(`INSERT OR ${otherwise} INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, coalesce(?, x''))`, ...row);
      }
    });
  }

  override async deleteThread(threadId: string): Promise<void> {
    this.#database.transaction(() => {
      for (const table of ['checkpoints', 'channel_values', 'writes']) {
        this.#database.run(`DELETE FROM ${table} WHERE thread_id = ?`, threadId);
      }
    });
  }

  #numbers(config: RunnableConfig, before: RunnableConfig | undefined): number[] {
    const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {};
    const conditions: [string, SqlValue | undefined][] = [
      ['thread_id = ?', thread_id],
      ['checkpoint_ns = ?', checkpoint_ns],
      ['checkpoint_id = ?', checkpoint_id],
      ['checkpoint_id < ?', before?.configurable?.checkpoint_id],
    ];
    const wanted = conditions.filter((condition): condition is [string, SqlValue] => condition[1] !== undefined);
    const where = wanted.length === 0 ? '' : `WHERE ${wanted.map(([sql]) => sql).join(' AND ')}`;
    const sql = `SELECT n FROM checkpoints ${where} ORDER BY checkpoint_id DESC`;
    return this.#database.all<{ n: number }>(sql, ...wanted.map(([, value]) => value)).map(({ n }) => n);
  }

  async #fits(row: CheckpointRow, filter: Readonly<Record<string, unknown>> | undefined): Promise<boolean> {
    if (filter === undefined) return true;
    const metadata = (await this.serde.loadsTyped(row.metadata_type, row.metadata)) as Record<string, unknown>;
    return Object.entries(filter).every(([key, value]) => isDeepStrictEqual(metadata[key], value));
  }

  async #tupleOf(row: CheckpointRow): Promise<CheckpointTuple> {
    const { thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id } = row;
    const place = { thread_id, checkpoint_ns };
    const checkpoint: Checkpoint = await this.serde.loadsTyped(row.checkpoint_type, row.checkpoint);
    checkpoint.channel_values = await this.#channels.read(place, checkpoint.channel_versions);
    if (checkpoint.v < FORMAT && parent_checkpoint_id !== null)
      await this.#channels.addSends(checkpoint, place, parent_checkpoint_id);
    return {
      config: { configurable: { ...place, checkpoint_id } },
      checkpoint,
      metadata: await this.serde.loadsTyped(row.metadata_type, row.metadata),
      pendingWrites: await this.#writesOf(row),
      ...(parent_checkpoint_id === null
        ? {}
        : { parentConfig: { configurable: { ...place, checkpoint_id: parent_checkpoint_id } } }),
    };
  }

  #writesOf({ thread_id, checkpoint_ns, checkpoint_id }: CheckpointRow): Promise<CheckpointPendingWrite[]> {
    const rows = this.#database.all<{ task_id: string; channel: string; type: string; value: Uint8Array }>(
      `SELECT task_id, channel, type, value FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
        ORDER BY task_id, idx`,
      thread_id,
      checkpoint_ns,
      checkpoint_id,
    );
    return Promise.all(
      rows.map(async ({ task_id, channel, type, value }): Promise<CheckpointPendingWrite> => {
        return [task_id, channel, await this.serde.loadsTyped(type, value)];
      }),
    );
  }
}

function checkThread(threadId: unknown): void {
  if (typeof threadId !== 'string') throw new Error('The config has no thread_id in its "configurable".');
}
