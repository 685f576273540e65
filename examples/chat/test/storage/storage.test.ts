import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { inspect } from 'node:util';
import type { RunnableConfig } from '@langchain/core/runnables';
import { Annotation, type BaseCheckpointSaver, START, StateGraph } from '@langchain/langgraph';
import { type CheckpointTuple, uuid6 } from '@langchain/langgraph-checkpoint';
import { specTest } from '@langchain/langgraph-checkpoint-validation';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { withRuns } from '../../server/protocol/run-checkpoints.ts';
import { ThreadStates } from '../../server/protocol/thread-state.ts';
import { chooseStorage, type Storage } from '../../server/storage/storage.ts';
import { temporaryFolder } from '../support/folder.ts';
import { emptyDatabase, type StoreServer, startPostgres, startRedis } from '../support/server-process.ts';

// The suite of LangGraph for savers takes these from the globals of the runner.
Object.assign(globalThis, { describe, it, expect, beforeAll, beforeEach, afterAll, afterEach });

const folder = temporaryFolder();
const opened: Storage[] = [];
let servers: { readonly postgres: StoreServer; readonly redis: StoreServer };

beforeAll(async () => {
  servers = { postgres: await startPostgres(), redis: await startRedis() };
});
afterAll(async () => {
  for (const storage of opened) await storage.close();
  await servers?.postgres.close();
  await servers?.redis.close();
  folder[Symbol.dispose]();
});

/** A new one of the kind each time. */
const OPEN: Readonly<Record<string, () => Promise<Storage>>> = {
  memory: () => open({}),
  SQLite: () => open({ data: join(folder.path, randomUUID()) }),
  PostgreSQL: async () => open({ postgres: await newDatabase() }),
};

describe('the checkpoints in SQLite', () => {
  specTest({ checkpointerName: 'SQLite', createCheckpointer: async () => (await newStorage('SQLite')).checkpointer });
});

describe('the checkpoints in PostgreSQL', () => {
  const storages: Storage[] = [];
  // What lists is LangGraph's own, and its 650 cases want a database each.
  specTest(
    {
      checkpointerName: 'PostgreSQL',
      createCheckpointer: async () => {
        if (storages.length === 0) storages.push(await newStorage('PostgreSQL'));
        return storages[0]?.checkpointer as BaseCheckpointSaver;
      },
    },
    ['put', 'putWrites', 'getTuple', 'deleteThread'],
  );
});

describe.each(Object.keys(OPEN))('a graph on %s', (name) => {
  it('keeps the branches of a thread apart', async () => {
    const { checkpointer } = await newStorage(name);
    const graph = listGraph(checkpointer);
    const config = { configurable: { thread_id: 'thread' } };
    await graph.invoke({ list: ['root'] }, config);
    const root = (await graph.getState(config)).config;
    const branches: RunnableConfig[] = [];
    for (const branch of ['left', 'right', 'third']) {
      await graph.invoke({ list: [branch] }, root);
      branches.push((await graph.getState(config)).config);
    }
    const lists = await Promise.all(branches.map(async (branch) => (await graph.getState(branch)).values.list));
    expect(lists).toEqual([
      ['root', 'done', 'left', 'done'],
      ['root', 'done', 'right', 'done'],
      ['root', 'done', 'third', 'done'],
    ]);
    expect((await graph.getState(root)).values.list).toEqual(['root', 'done']);
  });

  it('takes any text, as a value and in metadata, by which history is filtered', async () => {
    const { checkpointer } = await newStorage(name);
    const graph = listGraph(checkpointer);
    const config = { configurable: { thread_id: 'thread', checkpoint_ns: '' } };
    const hostile = '\u0000 \ud83d \\u0000 \u2028';
    await graph.invoke({ list: [hostile] }, config);
    expect((await graph.getState(config)).values.list).toEqual([hostile, 'done']);
    const metadata = { source: 'loop' as const, step: 9, parents: {}, hostile, nested: { [hostile]: [hostile] } };
    const { checkpoint } = (await checkpointer.getTuple(config)) as CheckpointTuple;
    const last = { ...checkpoint, id: uuid6(9) };
    await checkpointer.put(config, last, metadata, {});
    expect(await states(checkpointer.list(config, { filter: { hostile } }))).toEqual([last.id]);
    expect(await states(checkpointer.list(config, { filter: { hostile: 'other' } }))).toEqual([]);
  });

  it('knows the trace of a run by the checkpoints of its thread, and of no other', async () => {
    const { checkpointer } = await newStorage(name);
    const graph = listGraph(withRuns(checkpointer, () => {}));
    for (const [thread_id, run_id] of [
      ['ours', 'r1'],
      ['ours', 'r2'],
      ['theirs', 'r3'],
    ]) {
      await graph.invoke({ list: [''] }, { configurable: { thread_id, run_id, trace_id: `of ${run_id}` } });
    }
    const threads = new ThreadStates(graph);
    const traces = (threadId: string) =>
      Promise.all(['r1', 'r2', 'r3', 'r'].map((runId) => threads.traceOf(threadId, runId)));
    expect(await traces('ours')).toEqual(['of r1', 'of r2', undefined, undefined]);
    expect(await traces('theirs')).toEqual([undefined, undefined, 'of r3', undefined]);
    expect(await traces('unknown')).toEqual([undefined, undefined, undefined, undefined]);
  });

  it('pages through history, and forgets a thread and no other', async () => {
    const { checkpointer } = await newStorage(name);
    const graph = listGraph(checkpointer);
    const kept = { configurable: { thread_id: 'kept' } };
    const deleted = { configurable: { thread_id: 'kep_' } };
    for (const config of [kept, deleted]) {
      for (let turn = 0; turn < 3; turn += 1) await graph.invoke({ list: [`${turn}`] }, config);
    }
    const all = await states(graph.getStateHistory(kept));
    const paged: string[] = [];
    let before: RunnableConfig | undefined;
    for (;;) {
      const page = await states(graph.getStateHistory(kept, { limit: 4, ...(before === undefined ? {} : { before }) }));
      paged.push(...page);
      if (page.length < 4) break;
      before = { configurable: { thread_id: 'kept', checkpoint_id: page.at(-1) } };
    }
    expect(paged).toEqual(all);
    expect(paged.length).toBeGreaterThan(8);
    await checkpointer.deleteThread('kep_');
    expect(await states(graph.getStateHistory(deleted))).toEqual([]);
    expect(await states(graph.getStateHistory(kept))).toEqual(all);
  });
});

describe('the choice of a storage', () => {
  it.each([
    [{ data: 'folder', postgres: 'postgres://host/db' }, 'choose one of them'],
    [{ redis: 'redis://host' }, 'it needs PostgreSQL'],
    [{ data: 'folder', redis: 'redis://host' }, 'it needs PostgreSQL'],
    [{ postgres: 'mysql://u:secret-of-chat@host' }, 'has to begin with postgres://'],
    [{ postgres: 'postgres://host', redis: 'http://:secret-of-chat@host' }, 'has to begin with redis://'],
    [{ postgres: 'postgres://u:secret-of-chat@host:port/db' }, 'PostgreSQL at postgres:… cannot be used: Invalid URL'],
  ])('is refused for %j', async (choice, message) => {
    const error = await chooseStorage(choice).catch((reason: unknown) => reason as Error);
    expect(inspect(error)).toContain(message);
    expect(inspect(error, { depth: 10 })).not.toContain('secret-of-chat');
  });

  it('says which store cannot be reached, and never with what password', async () => {
    const redis = 'redis://:secret-of-chat@127.0.0.1:1/0';
    const postgres = await newDatabase();
    const wrong = { ...choiceOf(postgres), redis: servers.redis.url.replace('secret-of-chat', 'secret-of-chat-2') };
    for (const [choice, message] of [
      [choiceOf('postgres://chat:secret-of-chat@127.0.0.1:1/db'), 'PostgreSQL at postgres://127.0.0.1:1/db cannot'],
      [choiceOf(`${postgres}-missing`), 'does not exist'],
      [{ ...choiceOf(postgres), redis }, 'Redis at redis://127.0.0.1:1/0 cannot be used: connect ECONNREFUSED'],
      [wrong, 'WRONGPASS'],
    ] as const) {
      const error = await chooseStorage(choice).catch((reason: unknown) => reason as Error);
      expect(inspect(error, { depth: 10 })).toContain(message);
      expect(inspect(error, { depth: 10 })).not.toContain('secret-of-chat');
    }
  });

  it('makes the tables once, however many instances start at the same time', async () => {
    const postgres = await newDatabase();
    await Promise.all(Array.from({ length: 5 }, () => open({ postgres })));
    const client = new Client(postgres);
    await client.connect();
    const { rows } = await client.query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'chat'");
    const names = rows.map(({ table_name }) => table_name).sort();
    expect(names).toEqual([
      ...['checkpoint_blobs', 'checkpoint_migrations', 'checkpoint_writes', 'checkpoints', 'events', 'migrations'],
      ...['sessions', 'threads'],
    ]);
    await client.query('INSERT INTO chat.migrations VALUES (3)');
    await client.end();
    await expect(chooseStorage({ postgres })).rejects.toThrow('its tables are of version 3');
  });

  it('puts events into Redis where it is named, and the rest into PostgreSQL', async () => {
    const storage = await open({ postgres: await newDatabase(), redis: servers.redis.url });
    const thread = randomUUID();
    await storage.sessions.append(thread, [{ channel: 'messages', namespace: [], body: '{}' }]);
    await storage.threads.touch({ id: thread, title: 'title', updatedAt: new Date(0).toISOString() });
    const other = await open({ postgres: await newDatabase(), redis: servers.redis.url });
    expect((await other.sessions.read(thread, 0, 10)).events).toHaveLength(1);
    expect(await other.threads.list(10, 0)).toEqual([]);
  });
});

function newStorage(name: string): Promise<Storage> {
  return (OPEN[name] as () => Promise<Storage>)();
}

async function open(choice: Parameters<typeof chooseStorage>[0]): Promise<Storage> {
  const storage = await chooseStorage(choice);
  opened.push(storage);
  return storage;
}

function choiceOf(postgres: string): { readonly postgres: string } {
  return { postgres };
}

function newDatabase(): Promise<string> {
  return emptyDatabase(servers.postgres);
}

/** Adds a word to whatever list it is given. */
function listGraph(checkpointer: BaseCheckpointSaver) {
  const State = Annotation.Root({ list: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }) });
  return new StateGraph(State)
    .addNode('work', () => ({ list: ['done'] }))
    .addEdge(START, 'work')
    .compile({ checkpointer });
}

async function states(history: AsyncIterable<{ readonly config: RunnableConfig }>): Promise<string[]> {
  const ids: string[] = [];
  for await (const { config } of history) ids.push(config.configurable?.checkpoint_id);
  return ids;
}
