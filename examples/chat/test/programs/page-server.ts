/**
 * Starts chats for the page's tests, each on a separate port:
 *
 * - `POST /chats {traced?, asks?, eventsMax?}` returns `{ id, url, viewer_url }`. With `asks`, the agent interrupts with a question, or with two actions if the message is `act`
 * - `POST /chats/:id/model` changes the script of the model
 * - `POST /chats/:id/release` continues the answers that are on hold
 * - `POST /chats/:id/cut` breaks all connections
 * - `POST /chats/:id/flush` delivers the traces
 */
import { fileURLToPath } from 'node:url';
import { serve } from '@hono/node-server';
import { AIMessage } from '@langchain/core/messages';
import { interrupt, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { Hono } from 'hono';
import { configure, flush, shutdown } from 'runspan';
import { RunspanCallbackHandler } from 'runspan/langchain';
import { createReceiver, type Receiver } from 'runspan/receiver';
import type { Agent } from '../../server/runs/run.ts';
import { openStorage, type Storage } from '../../server/storage/storage.ts';
import { TraceService } from '../../server/traces.ts';
import { type ChatServer, startChatServer } from '../support/chat-server.ts';

interface ChatRequest {
  readonly traced?: boolean;
  readonly asks?: boolean;
  /** Maximum number of events in a thread's log. */
  readonly eventsMax?: number;
}

const PAGE = fileURLToPath(new URL('../../page/', import.meta.url));
const chats: ChatServer[] = [];
let receiver: Promise<Receiver> | undefined;

const control = new Hono();
control.post('/chats', async (context) => {
  const { traced, asks, ...limits } = (await context.req.json()) as ChatRequest;
  if (traced) receiver ??= openReceiver();
  const url = traced ? (await receiver)?.url : undefined;
  const traces = url === undefined ? {} : { traces: new TraceService({ endpoint: url, viewerUrl: url }) };
  const callbacks = traced ? [new RunspanCallbackHandler()] : [];
  const storage = await openStorage({}, limits);
  const chat = await startChatServer({
    page: PAGE,
    storage,
    model: { name: 'rules', is_local: true },
    callbacks,
    ...traces,
    ...(asks ? { agent: askingAgent(storage) } : {}),
  });
  chats.push(chat);
  return context.json({ id: chats.length - 1, url: chat.url, viewer_url: url ?? null });
});
control.post('/chats/:id/:action', async (context) => {
  const chat = chats[Number(context.req.param('id'))];
  const action = context.req.param('action');
  if (action === 'model') chat?.script.set(await context.req.json());
  else if (action === 'release') chat?.script.release();
  else if (action === 'cut') chat?.cut();
  else await flush();
  return context.json({});
});
const server = serve({ fetch: control.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`http://127.0.0.1:${port}`);
});
// The program ends when its parent ends.
process.stdin.resume().on('end', () => {
  server.close();
  void shutdown({ timeoutMs: 2_000 }).finally(() => process.exit());
});

function askingAgent({ checkpointer }: Storage): Agent {
  return new StateGraph(MessagesAnnotation)
    .addNode('ask', ({ messages }) => {
      const question = { question: 'Which bird?', birds: ['heron', 'stork'] };
      const actionRequests = ['heron', 'stork'].map((bird) => ({ name: 'feed', args: { bird } }));
      const answer = interrupt(messages.at(-1)?.text === 'act' ? { actionRequests, reviewConfigs: [] } : question);
      return { messages: [new AIMessage(`The answer is ${JSON.stringify(answer)}.`)] };
    })
    .addEdge(START, 'ask')
    .compile({ checkpointer });
}

async function openReceiver(): Promise<Receiver> {
  const opened = await createReceiver();
  configure({ endpoint: opened.url, tracing: true });
  return opened;
}
