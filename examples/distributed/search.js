// The other process. Its runs join the trace in the request headers.
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
// Queued runs are delivered when the process ends normally.
process.once('disconnect', () => server.close());
