import { type Checkpoint, maxChannelVersion, type SerializerProtocol, TASKS } from '@langchain/langgraph-checkpoint';
import type { SqliteDatabase } from './sqlite-database.ts';

/** The namespace of a thread in which checkpoints are. */
export interface CheckpointSpace {
  readonly thread_id: string;
  readonly checkpoint_ns: string;
}

/** A value as it is kept: of which form, and its bytes. */
export type Dumped = readonly [type: string, value: Uint8Array];

interface ValueRow {
  readonly type: string;
  readonly value: Uint8Array;
}

/** The values of the channels of checkpoints. Each is kept once for its version, in which many checkpoints have it. */
export class SqliteChannels {
  readonly #database: SqliteDatabase;
  readonly #serde: SerializerProtocol;

  constructor(database: SqliteDatabase, serde: SerializerProtocol) {
    this.#database = database;
    this.#serde = serde;
  }

  write(
    { thread_id, checkpoint_ns }: CheckpointSpace,
    channel: string,
    version: number | string,
    dumped: Dumped,
  ): void {
    // Bytes of which there are none may arrive as NULL.
    const sql = "INSERT OR IGNORE INTO channel_values VALUES (?, ?, ?, ?, ?, coalesce(?, x''))";
    this.#database.run(sql, thread_id, checkpoint_ns, channel, String(version), ...dumped);
  }

  async read(
    { thread_id, checkpoint_ns }: CheckpointSpace,
    versions: Checkpoint['channel_versions'],
  ): Promise<Record<string, unknown>> {
    const sql =
      'SELECT type, value FROM channel_values WHERE thread_id = ? AND checkpoint_ns = ? AND channel = ? AND version = ?';
    const rows = Object.entries(versions).flatMap(([channel, version]): [string, ValueRow][] => {
      const row = this.#database.one<ValueRow>(sql, thread_id, checkpoint_ns, channel, String(version));
      return row === undefined ? [] : [[channel, row]];
    });
    const loaded = rows.map(async ([channel, { type, value }]) => [channel, await this.#serde.loadsTyped(type, value)]);
    return Object.fromEntries(await Promise.all(loaded));
  }

  /** Before the fourth format of checkpoints, what was sent to tasks was among the writes of the one before it. */
  async addSends(
    checkpoint: Checkpoint,
    { thread_id, checkpoint_ns }: CheckpointSpace,
    parentId: string,
  ): Promise<void> {
    const rows = this.#database.all<ValueRow>(
      `SELECT type, value FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? AND channel = ?
        ORDER BY task_id, idx`,
      thread_id,
      checkpoint_ns,
      parentId,
      TASKS,
    );
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_values[TASKS] = await Promise.all(
      rows.map(({ type, value }) => this.#serde.loadsTyped(type, value)),
    );
    checkpoint.channel_versions[TASKS] = versions.length === 0 ? 1 : maxChannelVersion(...versions);
  }
}
