/**
 * Chats for the tests of the page, as many as are asked for, each on a port of its own. What cannot be left to chance is done by request:
 *
 * - `POST /chats {traced?}` gives `{ id, url, viewer_url }`
 * - `POST /chats/:id/model {hold?, holdPieces?, fail?, say?, pieceChars?}` says how its model answers from now on: an agent that waits in the middle, failures, a text
 * - `POST /chats/:id/release` lets the answers go on that are held
 * - `POST /chats/:id/cut` breaks every connection to the chat
 * - `POST /chats/:id/flush` has the traces arrive
 */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { configure, flush, shutdown } from 'runspan';
import { RunspanCallbackHandler } from 'runspan/langchain';
import { createReceiver, type Receiver } from 'runspan/receiver';
import { createAgent } from '../../server/agent/agent.ts';
import { createChat } from '../../server/chat.ts';
import { Retriever } from '../../server/documents/retriever.ts';
import { memoryStorage } from '../../server/storage/storage.ts';
import { TraceService } from '../../server/tracing/trace-service.ts';
import { Script, type ScriptChanges, ScriptedModel } from '../support/scripted-model.ts';

const PAGE = fileURLToPath(new URL('../../page/', import.meta.url));

/** What the documents say, so that answers are the same each time. */
const PARAGRAPHS = [
  'The heron is a tall bird. It stands still in shallow water and waits for fish.',
  'The otter is a swimmer. It hunts at night, along rivers that are clean.',
].map((text, id) => ({ id, text, heading: text.split(' ')[1] ?? '', source: 'river.md' }));

class PageServer {
  readonly script: Script = new Script();
  readonly #sockets = new Set<Socket>();

  async start(receiver: Receiver | undefined): Promise<string> {
    const storage = memoryStorage();
    const agent = createAgent({
      model: new ScriptedModel(this.script),
      documents: new Retriever(PARAGRAPHS),
      saveNote: async (text) => `Saved: ${text}`,
      checkpointer: storage.checkpointer,
    });
    const traces =
      receiver === undefined ? undefined : new TraceService({ endpoint: receiver.url, viewerUrl: receiver.url });
    const chat = await createChat({
      agent,
      storage,
      page: PAGE,
      model: { name: 'rules', is_local: true },
      log: () => undefined,
      ...(traces === undefined ? {} : { traces, callbacks: [new RunspanCallbackHandler()] }),
    });
    const server = serve({ fetch: chat.app.fetch, port: 0, hostname: '127.0.0.1' });
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

const chats: PageServer[] = [];
let receiver: Promise<Receiver> | undefined;

async function openReceiver(): Promise<Receiver> {
  const opened = await createReceiver();
  configure({ endpoint: opened.url, tracing: true });
  return opened;
}

const control = new Hono();
control.post('/chats', async (context) => {
  const { traced = false } = (await context.req.json()) as { traced?: boolean };
  if (traced) receiver ??= openReceiver();
  const traces = traced ? await receiver : undefined;
  const chat = new PageServer();
  chats.push(chat);
  return context.json({ id: chats.length - 1, url: await chat.start(traces), viewer_url: traces?.url ?? null });
});
control.post('/chats/:id/:what', async (context) => {
  const chat = chats[Number(context.req.param('id'))];
  if (chat === undefined) return context.json({}, 404);
  switch (context.req.param('what')) {
    case 'model':
      chat.script.set((await context.req.json()) as ScriptChanges);
      break;
    case 'release':
      chat.script.release();
      break;
    case 'cut':
      chat.cut();
      break;
    case 'flush':
      await flush();
      break;
    default:
      return context.json({}, 404);
  }
  return context.json({});
});
const server = serve({ fetch: control.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`http://127.0.0.1:${port}`);
});
// It ends with whoever has started it.
process.stdin.resume().on('end', () => {
  server.close();
  void shutdown({ timeoutMs: 2_000 }).finally(() => process.exit());
});
