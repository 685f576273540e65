import { describe, expect, test, vi } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { pathSegment } from '#src/receiver/domain/path-segment.ts';
import type { Receiver } from '#src/receiver.ts';
import { CHILD, call, END, makeChild, makeRun, part, type Reply, ROOT, sendJson, sendParts, start } from './wire.ts';

const METADATA = { thread_id: 'chat 1/2', user_id: 'ada' };

async function filled(): Promise<Receiver> {
  const receiver = await start();
  await send(receiver);
  return receiver;
}

function send(receiver: Receiver) {
  return sendParts(
    receiver,
    part(`post.${ROOT}`, makeRun({ extra: { metadata: METADATA } })),
    part(`post.${CHILD}`, makeChild({ end_time: END })),
  );
}

const remove = (receiver: Receiver, path: string) => call(`${receiver.url}/query/${path}`, 'DELETE');

test('a request that sends deleted runs again says how many messages were discarded', async () => {
  const receiver = await filled();
  await remove(receiver, `traces/${ROOT}?confirm=${ROOT}`);
  const accepted = async (reply: Promise<Reply>) => (await reply).body;
  expect(await accepted(send(receiver))).toEqual({ accepted: 2, discarded: 2 });
  const child = makeChild({ inputs: {} });
  expect(await accepted(sendJson(receiver, 'POST', '/runs', child))).toEqual({ accepted: 1, discarded: 1 });
  const batch = { post: [child], patch: [makeRun(), { ...child, end_time: END }] };
  expect(await accepted(sendJson(receiver, 'POST', '/runs/batch', batch))).toEqual({ accepted: 3, discarded: 3 });
  const metrics = await (await fetch(`${receiver.url}/metrics`)).text();
  expect(metrics).toContain('\nrunspan_discarded_runs_total 6\n');
  expect(metrics).toContain('\nrunspan_accepted_runs_total 2\n');
});

describe('a request that deletes', () => {
  test.each([
    ['traces', ROOT],
    ['threads', METADATA.thread_id],
    ['users', METADATA.user_id],
    ['projects', 'default'],
  ])('%s asks for a confirmation, and is logged in one line', async (path, id) => {
    const warn = vi.spyOn(diagnostics, 'warn').mockReturnValue();
    const receiver = await filled();
    const url = `${path}/${encodeURIComponent(id)}`;
    const asked = await remove(receiver, url);
    expect([asked.status, asked.body]).toEqual([
      409,
      { detail: expect.stringMatching(/^This deletes 2 runs of 1 trace: /), runs: 2, traces: 1 },
    ]);
    expect((await remove(receiver, `${url}?confirm=another`)).status).toBe(409);
    expect(await receiver.runs()).toHaveLength(2);
    expect(warn).not.toHaveBeenCalled();

    const done = await remove(receiver, `${url}?confirm=${encodeURIComponent(id)}`);
    expect([done.status, done.body]).toEqual([200, { runs: 2, traces: 1 }]);
    const kind = path.slice(0, -1);
    expect(warn.mock.calls).toEqual([[`a client deletes the ${kind} ${id} of the tenant default: 2 runs of 1 trace`]]);
    // The client sends the runs again.
    await send(receiver);
    expect(await receiver.runs()).toEqual([]);
    expect((await remove(receiver, url)).status).toBe(404);
    const again = await remove(receiver, `${url}?confirm=${encodeURIComponent(id)}`);
    expect(again.body).toEqual({ runs: 0, traces: 0 });
  });

  test.each(['.', '..', '..,', '%2E%2E', 'a/../b'])('a project named %s finds it', async (name) => {
    vi.spyOn(diagnostics, 'warn').mockReturnValue();
    const receiver = await filled();
    const run = { id: ROOT.replace('1111', '3333'), name: 'a', run_type: 'llm', start_time: END, inputs: {} };
    expect((await sendJson(receiver, 'POST', '/runs', { ...run, session_name: name })).status).toBe(202);
    const done = await remove(receiver, `projects/${pathSegment(name)}?confirm=${encodeURIComponent(name)}`);
    expect([done.status, done.body]).toEqual([200, { runs: 1, traces: 1 }]);
    expect((await receiver.runs()).map(({ id }) => id)).toEqual([ROOT, CHILD]);
  });

  test('an invalid id, or with unknown parameters, is refused', async () => {
    const receiver = await filled();
    for (const path of ['traces/7', `traces/${ROOT}?force=true`]) {
      expect((await remove(receiver, path)).status).toBe(422);
    }
  });
});
