// The other process: its runs go on in the trace that the headers of the request tell of.
import { createServer } from 'node:http';
import { fromHeaders, traceable, withRun } from 'runspan';

const search = traceable(async (question) => [`the page on ${question}`, 'another one'], {
  name: 'search',
  runType: 'retriever',
});

const server = createServer(async (request, response) => {
  const question = new URL(request.url, 'http://localhost').searchParams.get('question');
  const pages = await withRun(fromHeaders(request.headers, { accept: ['tags', 'metadata'] }), () => search(question));
  response.end(JSON.stringify(pages));
});
server.listen(0, '127.0.0.1', () => process.send(`http://127.0.0.1:${server.address().port}/`));
// What is queued is delivered when the process ends by itself.
process.once('disconnect', () => server.close());
