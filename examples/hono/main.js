// A Hono server with streamed answers. It sends itself four questions at once, and cancels one after the first word.
import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { streamText } from 'hono/streaming';
import { flush, fromHeaders, traceable, withRun } from 'runspan';

const retrieve = traceable(
  async (question) => {
    await delay(2);
    return [`page about ${question}`];
  },
  { name: 'retrieve', runType: 'retriever' },
);

const answer = traceable(
  async function* (question, signal) {
    const [page] = await retrieve(question);
    for (const word of `I read a ${page} to the end.`.split(' ')) {
      await delay(2, undefined, { signal });
      yield word;
    }
  },
  { name: 'answer', inputs: ([question]) => ({ question }), aggregate: (words) => ({ text: words.join(' ') }) },
);

const left = new EventEmitter();
const app = new Hono();
// If the caller sends a trace, the runs for its request join it.
app.use((context, next) => withRun(fromHeaders(context.req.raw.headers), next));
app.get('/answer', (context) =>
  streamText(context, async (stream) => {
    const aborted = new AbortController();
    stream.onAbort(() => aborted.abort());
    try {
      for await (const word of answer(context.req.query('question'), aborted.signal)) await stream.write(`${word} `);
    } catch (error) {
      // The client has disconnected.
      if (!aborted.signal.aborted) throw error;
      left.emit('left');
    }
  }),
);

const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
await once(server, 'listening');
const ask = (question, signal) =>
  fetch(`http://127.0.0.1:${server.address().port}/answer?question=${question}`, { signal });

const giveUp = async () => {
  const controller = new AbortController();
  const gone = once(left, 'left');
  const { body } = await ask('milk', controller.signal);
  await body.getReader().read();
  controller.abort();
  await gone;
  return 'I gave up on milk.';
};
const answers = await Promise.all([...['tea', 'coffee', 'water'].map(async (q) => (await ask(q)).text()), giveUp()]);
for (const text of answers) console.log(text.trim());

server.close();
server.closeAllConnections();
await flush();
