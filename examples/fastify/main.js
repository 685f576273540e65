// A Fastify server with streamed answers. It sends itself four questions at once, and cancels one after the first word.
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import fastify from 'fastify';
import { flush, fromHeaders, traceable, withRun } from 'runspan';

const retrieve = traceable(
  async (question) => {
    await delay(2);
    return [`page about ${question}`];
  },
  { name: 'retrieve', runType: 'retriever' },
);

const answer = traceable(
  async function* (question) {
    const [page] = await retrieve(question);
    for (const word of `I read a ${page} to the end.`.split(' ')) {
      await delay(2);
      yield `${word} `;
    }
  },
  { name: 'answer', inputs: ([question]) => ({ question }), aggregate: (words) => ({ text: words.join('') }) },
);

const app = fastify({ forceCloseConnections: true });
// If the caller sends a trace, the runs for its request join it.
app.addHook('onRequest', (request, _reply, done) => withRun(fromHeaders(request.headers), done));
app.get('/answer', (request, reply) => {
  // When the client disconnects, Fastify destroys the stream, which ends the generator.
  const stream = Readable.from(answer(request.query.question));
  stream.on('close', () => app.server.emit('closed', request.query.question));
  return reply.type('text/plain').send(stream);
});

const address = await app.listen({ port: 0, host: '127.0.0.1' });
const ask = (question, signal) => fetch(`${address}/answer?question=${question}`, { signal });

const giveUp = async () => {
  const controller = new AbortController();
  const gone = new Promise((resolve) => app.server.on('closed', (question) => question === 'milk' && resolve()));
  const { body } = await ask('milk', controller.signal);
  await body.getReader().read();
  controller.abort();
  await gone;
  return 'I gave up on milk.';
};
const answers = await Promise.all([...['tea', 'coffee', 'water'].map(async (q) => (await ask(q)).text()), giveUp()]);
for (const text of answers) console.log(text.trim());

await app.close();
await flush();
