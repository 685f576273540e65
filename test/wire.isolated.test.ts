import { afterEach, describe, expect, it } from 'vitest';
import { configure, currentRun, flush, fromHeaders, startRun, traceable, withRun } from '#src/index.ts';
import { type IngestServer, ingestServerInTest, type Received } from './support/ingest-server.ts';
import { readJsonParts } from './support/multipart-reader.ts';

// The rules are those of the interface, section "POST /runs/multipart"; the numbers are its own.

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';
const STAMP = '\\d{4}\\d{2}\\d{2}T\\d{2}\\d{2}\\d{2}\\d{6}Z';
const ISO_US = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/;

const find = traceable(async (_query: string) => ['a page'], { name: 'find', runType: 'retriever' });
const answer = traceable(
  async (question: { text: string }) => {
    currentRun()?.event('thinking', { about: question.text });
    return { pages: await find(question.text) };
  },
  { name: 'answer' },
);

/** The requests of one call that is coalesced, and of one run below a caller that is posted and patched apart. */
async function traffic(): Promise<{ server: IngestServer; coalesced: Received; post: Received; patch: Received }> {
  const server = await ingestServerInTest();
  configure({ endpoint: server.url, apiKey: 'key-1', workspaceId: 'workspace-1', project: 'docs' });
  await answer({ text: 'où?' });
  await flush();
  const caller = fromHeaders({ 'runspan-trace': '20261120T072240123456Z0193b3a0-1111-7000-8000-000000000001' });
  const options = { name: 'slow', runType: 'llm', inputs: { prompt: 'hi' }, tags: ['t'], metadata: { k: 'v' } };
  const run = withRun(caller, () => startRun(options));
  await flush();
  run.end({ text: 'ho' });
  await flush();
  const [coalesced, post, patch] = server.received as [Received, Received, Received];
  return { server, coalesced, post, patch };
}

afterEach(() => {
  configure({ tracing: false });
});

describe('the wire', () => {
  it('matches the interface for a call sent as one post', async () => {
    const { coalesced } = await traffic();
    const parts = readJsonParts(coalesced);
    const mains = [...parts].filter(([name]) => /^post\.[^.]+$/.test(name)).map(([, record]) => record);
    const root = mains.find(({ name }) => name === 'answer') as Record<string, string>;
    const child = mains.find(({ name }) => name === 'find') as Record<string, string>;

    // 3: what the main part holds, and the three that it does not.
    const fields = 'dotted_order end_time id name run_type session_name start_time trace_id'.split(' ');
    expect(Object.keys(child).sort()).toEqual([...fields, 'parent_run_id'].sort());
    expect(Object.keys(root).sort()).toEqual([...fields, 'extra'].sort());
    // 4: a part for each payload that is there, and none for one that is empty.
    const names = (id: string | undefined) => ['', '.inputs', '.outputs'].map((field) => `post.${id}${field}`);
    expect([...parts.keys()].sort()).toEqual([...names(root.id), `post.${root.id}.events`, ...names(child.id)].sort());
    expect(parts.get(`post.${root.id}.inputs`)).toEqual({ text: 'où?' });
    expect(parts.get(`post.${root.id}.outputs`)).toEqual({ pages: ['a page'] });
    expect(parts.get(`post.${root.id}.events`)).toEqual([
      { name: 'thinking', time: expect.stringMatching(ISO_US), kwargs: { about: 'où?' } },
    ]);
    // 5 and 6: ids, order, parents.
    expect(root.id).toMatch(new RegExp(`^${UUID}$`));
    expect(root.trace_id).toBe(root.id);
    expect(child.trace_id).toBe(root.id);
    expect(child.parent_run_id).toBe(root.id);
    expect(root.dotted_order).toMatch(new RegExp(`^${STAMP}${root.id}$`));
    expect(child.dotted_order).toMatch(new RegExp(`^${root.dotted_order}\\.${STAMP}${child.id}$`));
    for (const run of [root, child]) {
      expect([run.start_time, run.end_time]).toEqual([expect.stringMatching(ISO_US), expect.stringMatching(ISO_US)]);
      const stamp = (run.dotted_order as string).split('.').at(-1)?.slice(0, 22);
      expect(stamp).toBe((run.start_time as string).replaceAll(/[-:.]/g, ''));
      expect(run.session_name).toBe('docs');
    }
  });

  it('contains a longer run as a post and a patch of the same id', async () => {
    const { post, patch } = await traffic();
    const [posted, patched] = [readJsonParts(post), readJsonParts(patch)];
    const [name = ''] = posted.keys();
    const id = name.slice('post.'.length);

    expect([...posted.keys()]).toEqual([`post.${id}`, `post.${id}.inputs`]);
    expect([...patched.keys()]).toEqual([`patch.${id}`, `patch.${id}.outputs`]);
    const { end_time, ...same } = patched.get(`patch.${id}`) as Record<string, unknown>;
    expect(same).toEqual(posted.get(`post.${id}`));
    expect(same).toMatchObject({ parent_run_id: expect.any(String), tags: ['t'], extra: { metadata: { k: 'v' } } });
    expect(end_time).toMatch(ISO_US);
    expect(patched.get(`patch.${id}.outputs`)).toEqual({ text: 'ho' });
  });

  it('has the headers of the interface in each request', async () => {
    const { server } = await traffic();
    for (const { method, path, headers } of server.received) {
      expect([method, path]).toEqual(['POST', '/runs/multipart']);
      expect(headers).toMatchObject({ 'x-api-key': 'key-1', 'x-tenant-id': 'workspace-1' });
    }
  });
});
