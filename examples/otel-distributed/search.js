// The other process. Its spans join the trace in the request headers.
import { createServer } from 'node:http';
import { context, propagation, SpanKind } from '@opentelemetry/api';
import { traceable } from 'runspan';
import { inSpan } from './tracing.js';

const search = traceable(async (question) => [`the page on ${question}`, 'another one'], {
  name: 'search',
  runType: 'retriever',
});

const server = createServer((request, response) => {
  const from = propagation.extract(context.active(), request.headers);
  void inSpan(
    'GET /',
    SpanKind.SERVER,
    async () => {
      const question = new URL(request.url, 'http://localhost').searchParams.get('question');
      response.end(JSON.stringify(await search(question)));
    },
    from,
  );
});
server.listen(0, '127.0.0.1', () => process.send(`http://127.0.0.1:${server.address().port}/`));
// Queued runs are delivered when the process ends normally.
process.once('disconnect', () => server.close());
