import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { DEFAULT_SCOPE, MemoryStore, type Receiver } from '#src/receiver.ts';
import { id, post } from './conformance/support.ts';
import { startService } from './service.ts';
import { CHILD, makeRun, part, ROOT, START, sendParts, start } from './wire.ts';

interface ServerEvent {
  event: string;
  id: string;
  data: { seq: string; trace_ids?: string[] };
}

/** Opens a change stream. `next` returns its next event. */
async function follow(receiver: Pick<Receiver, 'url'>, headers: Record<string, string> = {}) {
  const request = get(`${receiver.url}/query/changes`, { headers });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  onTestFinished(() => void request.destroy());
  const lines = response.setEncoding('utf8')[Symbol.asyncIterator]();
  let text = '';
  const next = async (): Promise<ServerEvent> => {
    while (!text.includes('\n\n')) {
      const { value, done } = await lines.next();
      if (done) throw new Error('the stream ended');
      text += value;
    }
    const [message = ''] = text.split('\n\n', 1);
    text = text.slice(message.length + 2);
    const fields = Object.fromEntries(message.split('\n').map((line) => line.split(': ', 2)));
    return { ...fields, data: JSON.parse(fields.data ?? 'null') } as ServerEvent;
  };
  return { response, request, next };
}

const send = (receiver: Receiver) => sendParts(receiver, part(`post.${ROOT}`, makeRun()));

describe('a change stream', () => {
  const postOf = (id: string) => {
    const fields = { name: 'n', run_type: 'chain', start_time: START };
    return { kind: 'post' as const, id, fields, attachments: [] };
  };

  test('starts with `ready` and then reports changed traces, several changes in one event', async () => {
    const store = new MemoryStore();
    const receiver = await start({ store });
    const { response, next } = await follow(receiver);
    expect(response.headers['content-type']).toBe('text/event-stream');
    expect(await next()).toEqual({ event: 'ready', id: '0', data: { seq: '0' } });
    await send(receiver);
    expect(await next()).toEqual({ event: 'change', id: '1', data: { seq: '1', trace_ids: [ROOT] } });
    for (let count = 0; count < 3; count += 1) void store.apply(DEFAULT_SCOPE, [postOf(ROOT)]);
    expect(await next()).toEqual({ event: 'change', id: '4', data: { seq: '4', trace_ids: [ROOT] } });
  });

  test('reports missed changes after Last-Event-ID, without traces if it is unknown', async () => {
    const receiver = await start();
    await send(receiver);
    const order = `20261120T072240123456Z${CHILD}`;
    await sendParts(receiver, part(`post.${CHILD}`, makeRun({ id: CHILD, trace_id: CHILD, dotted_order: order })));
    const firstAfter = async (id: string) => (await follow(receiver, { 'last-event-id': id })).next();
    expect(await firstAfter('1')).toEqual({ event: 'change', id: '2', data: { seq: '2', trace_ids: [CHILD] } });
    expect(await firstAfter('2')).toMatchObject({ event: 'ready' });
    for (const unknown of ['nonsense', '3']) {
      expect(await firstAfter(unknown)).toEqual({ event: 'change', id: '2', data: { seq: '2' } });
    }
  });

  test('reports the cursor of a store unchanged', async () => {
    const store = new MemoryStore();
    store.changes = async () => ({ cursor: '001', traceIds: [] });
    const { next } = await follow(await start({ store }));
    expect(await next()).toEqual({ event: 'ready', id: '001', data: { seq: '001' } });
  });

  test('names at most 1000 traces', async () => {
    const store = new MemoryStore();
    const receiver = await start({ store });
    const idOf = (index: number) => `00000000-0000-7000-8000-${index.toString().padStart(12, '0')}`;
    const posts = (count: number) => Array.from({ length: count }, (_, at) => postOf(idOf(at)));
    const { next } = await follow(receiver);
    await next();
    await store.apply(DEFAULT_SCOPE, posts(1_000));
    expect((await next()).data.trace_ids).toHaveLength(1_000);
    await store.apply(DEFAULT_SCOPE, posts(1_001));
    expect((await next()).data).toEqual({ seq: '2' });
  });

  test('unsubscribes when the client disconnects', async () => {
    const store = new MemoryStore();
    const subscribe = store.subscribe.bind(store);
    const unsubscribed = vi.fn();
    store.subscribe = (scope, listener) => {
      const unsubscribe = subscribe(scope, listener);
      return () => {
        unsubscribe();
        unsubscribed();
      };
    };
    const { request, next } = await follow(await start({ store }));
    await next();
    expect(unsubscribed).not.toHaveBeenCalled();
    request.destroy();
    await vi.waitFor(() => expect(unsubscribed).toHaveBeenCalledOnce());
  });

  test('gets 503 while 100 streams are open', async () => {
    const store = new MemoryStore();
    const receiver = await start({ store });
    const streams = [];
    for (let at = 0; at < 100; at += 1) streams.push(await follow(receiver));
    const { response: refused } = await follow(receiver);
    expect(refused.statusCode).toBe(503);
    expect(refused.headers['retry-after']).toBe('5');
    expect((await send(receiver)).status).toBe(202);
    streams[0]?.request.destroy();
    await vi.waitFor(async () => expect((await follow(receiver)).response.statusCode).toBe(200));
  });

  test('ends when the receiver closes', async () => {
    const receiver = await start();
    const { next } = await follow(receiver);
    await next();
    const ended = expect(next()).rejects.toThrow('the stream ended');
    await receiver.close();
    await ended;
  });

  describe('of a key that is limited to a project', () => {
    const ago = (minutes: number) => ({ start_time: new Date(Date.now() - minutes * 60_000).toISOString() });
    const chat = (number: number, minutes = 0) => post(number, { session_name: 'chat', ...ago(minutes) });
    const secret = (number: number) => post(number, { session_name: 'secret', ...ago(0) });
    const acme = { tenant: 'acme' };

    async function followBoth() {
      const { url, store, addKey } = await startService();
      const keyOf = (project?: string) =>
        addKey({ tenant: 'acme', permission: 'read', ...(project !== undefined && { project }) }).text;
      const open = (key: string, last?: string) =>
        follow({ url }, { 'x-api-key': key, ...(last !== undefined && { 'last-event-id': last }) });
      const key = keyOf('chat');
      const [limited, all] = [await open(key), await open(keyOf())];
      for (const { next } of [limited, all]) expect(await next()).toMatchObject({ event: 'ready' });
      return { store, limited, all, reopen: (last: string) => open(key, last) };
    }

    test('names only traces with runs in the project', async () => {
      const { store, limited, all, reopen } = await followBoth();
      await store.apply(acme, [secret(1), chat(2), secret(3), post(4, { parent: 3, session_name: 'chat', ...ago(0) })]);
      expect((await limited.next()).data.trace_ids?.sort()).toEqual([id(2), id(3)]);
      expect((await all.next()).data.trace_ids).toHaveLength(3);
      await store.apply(acme, [secret(5)]);
      expect((await all.next()).data.trace_ids).toEqual([id(5)]);
      await store.apply({ tenant: 'bolt' }, [chat(6)]);
      await store.apply(acme, [chat(7)]);
      expect((await limited.next()).data.trace_ids).toEqual([id(7)]);
      expect((await (await reopen('0')).next()).data.trace_ids?.sort()).toEqual([id(2), id(3), id(7)]);
    });

    test('ends its query when the client disconnects', async () => {
      const { store, limited } = await followBoth();
      const list = vi.spyOn(store, 'list');
      await store.apply(acme, [chat(1)]);
      await limited.next();
      const signal = list.mock.calls[0]?.[0].signal;
      expect(signal?.aborted).toBe(false);
      limited.request.destroy();
      await vi.waitFor(() => expect(signal?.aborted).toBe(true));
    });

    test('gets a comment every 15 seconds while other projects are busy', async () => {
      const { store, limited } = await followBoth();
      const now = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 15_000);
      onTestFinished(() => now.mockRestore());
      await store.apply(acme, [secret(1)]);
      expect(await limited.next()).toEqual({ '': 'no change', data: null });
      // Ends before the comment of a stream without any changes.
    }, 10_000);

    test('names no trace if one has no runs of the last hour, so that the client reloads', async () => {
      const { store, limited } = await followBoth();
      await store.apply(acme, [chat(1, 58)]);
      expect((await limited.next()).data.trace_ids).toEqual([id(1)]);
      await store.apply(acme, [chat(1, 58), chat(2, 62)]);
      expect(Object.keys((await limited.next()).data)).toEqual(['seq']);
    });

    test('names no trace after a deletion, so that the client reloads', async () => {
      const { store, limited, all } = await followBoth();
      await store.apply(acme, [secret(1), chat(2)]);
      expect((await limited.next()).data.trace_ids).toEqual([id(2)]);
      await all.next();
      await store.remove(acme, { kind: 'trace', id: id(1) });
      expect((await all.next()).data.trace_ids).toEqual([id(1)]);
      const { event, data } = await limited.next();
      expect([event, Object.keys(data)]).toEqual(['change', ['seq']]);
    });
  });
});
