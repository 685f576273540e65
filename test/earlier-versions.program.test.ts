import { cpSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { createExporter, startRun } from 'runspan';
import { createReceiver, type Receiver, SqliteStore } from 'runspan/receiver';
import { Agent, buildConnector } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { root, temporaryFolder } from './support/folders.ts';
import { filesBelow } from './support/spool.ts';

/** Files written by version 0.1.0 with the programs in `make.mjs`. */
const FIXTURES = join(root, 'test/fixtures/0.1.0');

function emptyFolder(): string {
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  return folder.path;
}

async function receiverOver(store?: SqliteStore): Promise<Receiver> {
  const receiver = await createReceiver(
    store === undefined ? { strict: true, allowedHosts: ['127.0.0.1'] } : { store },
  );
  onTestFinished(() => receiver.close());
  return receiver;
}

describe('a store file written by 0.1.0', () => {
  async function openFixture(): Promise<Receiver> {
    const path = join(emptyFolder(), 'store.db');
    writeFileSync(path, gunzipSync(readFileSync(join(FIXTURES, 'store.db.gz'))));
    const store = await SqliteStore.open(path);
    onTestFinished(() => store.close());
    return receiverOver(store);
  }

  it('contains its runs with parents, payloads, errors, tags, metadata, events and attachments', async () => {
    const receiver = await openFixture();
    const runs = await receiver.runs();
    const named = (name: string) => runs.filter((run) => run.name === name);
    const names = ['agent', 'chat gpt-4o', 'model', 'simple', 'still open', 'tool'];
    expect(runs.map(({ name }) => name).sort()).toEqual(names);
    const [agent] = named('agent');
    expect(agent).toMatchObject({
      inputs: { input: 'Is it raining?' },
      outputs: { role: 'assistant', content: 'Answer to Is it raining?' },
      tags: ['fixture', 'naïve 🎈'],
      extra: { metadata: { thread_id: 'thread-1', user_id: 'user-1' } },
      events: [{ name: 'retrieved', kwargs: { documents: 3 } }],
      attachments: [{ name: 'note', mime_type: 'text/plain', size: 8 }],
    });
    expect(named('tool')[0]).toMatchObject({
      parent_run_id: agent?.id,
      inputs: { city: 'Zürich' },
      error: expect.stringMatching(/^RangeError: no weather for Zürich\n/),
    });
    expect(named('model')[0]).toMatchObject({
      parent_run_id: agent?.id,
      run_type: 'llm',
      inputs: { input: [{ role: 'user', content: 'Is it raining?' }] },
    });
    expect(named('still open')[0]).toMatchObject({ inputs: { waits: true } });
    expect(named('simple')[0]).toMatchObject({
      id: '0199c0de-0000-7000-8000-0000000000aa',
      session_id: '0199c0de-0000-7000-8000-00000000c0de',
    });
  });

  it('contains usage, feedback and attachments that queries find', async () => {
    const { url } = await openFixture();
    const ask = async (path: string) => (await fetch(url + path)).json();
    const { items } = (await ask('/query/traces?filter=name:agent')) as { items: { trace_id: string; id: string }[] };
    expect(items).toMatchObject([{ trace: { runs: 3, errors: 1, usage: { total_tokens: 14 } } }]);
    const simple = '0199c0de-0000-7000-8000-0000000000aa';
    expect(await ask(`/feedback?run=${simple}`)).toMatchObject([
      { key: 'thumb', score: 1, comment: 'good', correction: { text: 'better' } },
    ]);
    const note = await fetch(`${url}/query/runs/${items[0]?.id}/attachments/note`);
    expect(await note.text()).toBe('attached');
  });
});

describe('a spool folder written by 0.1.0', () => {
  /** Copies the folder of a process that ended an hour ago. */
  function spoolOf(name: string): string {
    const spoolDir = join(emptyFolder(), 'spool');
    cpSync(join(FIXTURES, name), spoolDir, { recursive: true });
    const hourAgo = new Date(Date.now() - 3_600_000);
    for (const path of filesBelow(spoolDir)) utimesSync(join(spoolDir, path), hourAgo, hourAgo);
    return spoolDir;
  }

  /** Redirects connections from 127.0.0.1:4777, the destination of the fixtures, to the port of the receiver. */
  function dispatcherTo(receiver: Receiver): Agent {
    const connect = buildConnector({});
    const { port } = new URL(receiver.url);
    const agent = new Agent({ connect: (options, done) => connect({ ...options, port }, done) });
    onTestFinished(() => agent.destroy());
    return agent;
  }

  it.each(['write-ahead-killed', 'spill-left'])('is delivered completely: %s', async (name) => {
    const receiver = await receiverOver();
    const exporter = createExporter({
      endpoint: 'http://127.0.0.1:4777',
      workspaceId: 'fixture',
      durability: 'spill',
      spoolDir: spoolOf(name),
      dispatcher: dispatcherTo(receiver),
    });
    onTestFinished(() => exporter.close().then(() => undefined));
    // The first run opens the spool.
    startRun({ name: 'first', exporter }).end();
    await expect.poll(() => exporter.stats().sent, { timeout: 10_000 }).toBe(8);
    const runs = await receiver.runs();
    const outputsOf = (wanted: string) => runs.filter((run) => run.name === wanted).map(({ outputs }) => outputs);
    expect(outputsOf('turn')).toEqual([{ doubled: 2 }, { doubled: 4 }, { doubled: 6 }]);
    expect(outputsOf('step')).toEqual([{ doubled: 2 }, { doubled: 4 }, { doubled: 6 }]);
    expect(runs.filter((run) => run.name === 'still open')).toMatchObject([{ inputs: { waits: true } }]);
    expect(exporter.stats()).toMatchObject({ recovered: 7, dropped: 0 });
  });
});
