// An Express server with streamed answers. It sends itself four questions at once, and cancels one after the first
// word.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import express from 'express';
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

const app = express();
// If the caller sends a trace, the runs for its request join it.
app.use((request, _response, next) => withRun(fromHeaders(request.headers), next));
app.get('/answer', async (request, response) => {
  const left = new AbortController();
  response.on('close', () => left.abort());
  try {
    for await (const word of answer(request.query.question, left.signal)) response.write(`${word} `);
    response.end();
  } catch (error) {
    // The client has disconnected.
    if (!left.signal.aborted) throw error;
    app.emit('left');
  }
});

const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
const ask = (question, signal) =>
  fetch(`http://127.0.0.1:${server.address().port}/answer?question=${question}`, { signal });

const giveUp = async () => {
  const controller = new AbortController();
  const gone = once(app, 'left');
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
