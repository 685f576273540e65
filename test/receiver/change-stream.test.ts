import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { changeStream } from '#src/receiver/http/change-stream.ts';
import { DEFAULT_SCOPE, MemoryStore, type Receiver } from '#src/receiver.ts';
import { id, post } from './conformance/support.ts';
import { startService } from './service.ts';
import { makeRun, part, ROOT, sendParts, start } from './wire.ts';

interface ServerEvent {
  event: string;
  data: { trace_ids?: string[] };
}

/** Opens a change stream. `next` returns its next event. */
async function follow({ url }: Pick<Receiver, 'url'>, headers: Record<string, string> = {}) {
  const request = get(`${url}/query/changes`, { headers });
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
  test('starts with `ready` and then reports changed traces, several changes in one event', async () => {
    const store = new MemoryStore();
    const receiver = await start({ store });
    const { response, next } = await follow(receiver);
    expect(response.headers['content-type']).toBe('text/event-stream');
    expect(await next()).toEqual({ event: 'ready', data: {} });
    await send(receiver);
    expect(await next()).toEqual({ event: 'change', data: { trace_ids: [ROOT] } });
    for (const number of [1, 2, 1]) void store.apply(DEFAULT_SCOPE, [post(number)]);
    expect(await next()).toEqual({ event: 'change', data: { trace_ids: [id(1), id(2)] } });
  });

  test('names at most 1000 traces', async () => {
    const store = new MemoryStore();
    const posts = Array.from({ length: 1_001 }, (_, at) => post(at));
    const { next } = await follow(await start({ store }));
    await next();
    await store.apply(DEFAULT_SCOPE, posts.slice(1));
    expect((await next()).data.trace_ids).toHaveLength(1_000);
    await store.apply(DEFAULT_SCOPE, posts);
    expect(await next()).toEqual({ event: 'change', data: {} });
  });

  test('gets 503 while 100 streams are open', async () => {
    const store = new MemoryStore();
    const receiver = await start({ store });
    const streams = await Promise.all(Array.from({ length: 100 }, () => follow(receiver)));
    const { response: refused } = await follow(receiver);
    expect(refused.statusCode).toBe(503);
    expect(refused.headers['retry-after']).toBe('5');
    expect((await send(receiver)).status).toBe(202);
    streams[0]?.request.destroy();
    await expect.poll(async () => (await follow(receiver)).response.statusCode).toBe(200);
  });

  test('of a second tenant takes the place of the oldest one of a tenant that has more', async () => {
    const { url, addKey } = await startService({}, undefined, ['acme', 'bolt', 'cobalt']);
    const open = (tenant: string) => {
      const { text } = addKey({ tenant, permission: 'read' });
      return () => follow({ url }, { 'x-api-key': text });
    };
    const [ofAcme, ofBolt, ofCobalt] = [open('acme'), open('bolt'), open('cobalt')];
    const streams: Awaited<ReturnType<typeof follow>>[] = [];
    for (let at = 0; at < 100; at += 1) streams.push(await ofAcme());
    const isOpen = () => streams.map(({ response }) => !response.destroyed);
    expect((await ofBolt()).response.statusCode).toBe(200);
    await expect.poll(isOpen).toEqual([false, ...Array(99).fill(true)]);
    expect((await ofAcme()).response.statusCode).toBe(503);
    for (let at = 1; at < 50; at += 1) expect((await ofBolt()).response.statusCode).toBe(200);
    await expect.poll(isOpen).toEqual([...Array(50).fill(false), ...Array(50).fill(true)]);
    expect((await ofBolt()).response.statusCode).toBe(503);
    expect((await ofCobalt()).response.statusCode).toBe(200);
    // 49 beside 50: otherwise both would take turns.
    expect((await ofAcme()).response.statusCode).toBe(503);
  });

  test('of a key that is limited to a project reports only the traces of its project', async () => {
    const { url, store, addKey } = await startService();
    const { text } = addKey({ tenant: 'acme', permission: 'read', project: 'chat' });
    const { next } = await follow({ url }, { 'x-api-key': text });
    expect(await next()).toEqual({ event: 'ready', data: {} });
    const chat = { session_name: 'chat' };
    await store.apply({ tenant: 'acme' }, [post(1), post(2, chat)]);
    await store.apply({ tenant: 'bolt' }, [post(3, chat)]);
    expect(await next()).toEqual({ event: 'change', data: { trace_ids: [id(2)] } });
  });

  test('of a project gets a comment every 15 seconds, whatever happens in other projects', async () => {
    vi.useFakeTimers();
    const [store, ended] = [new MemoryStore(), new AbortController()];
    const stream = changeStream(store, { ...DEFAULT_SCOPE, project: 'chat' }, ended.signal, async () => true);
    await stream.next();
    const received = vi.fn();
    void stream.next().then(({ value }) => received(value));
    await vi.advanceTimersByTimeAsync(10_000);
    await store.apply(DEFAULT_SCOPE, [post(1)]);
    await vi.advanceTimersByTimeAsync(4_999);
    expect(received).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(received).toHaveBeenCalledWith(': no change\n\n');
    const last = stream.next();
    ended.abort();
    expect(await last).toEqual({ done: true, value: undefined });
  });
});
