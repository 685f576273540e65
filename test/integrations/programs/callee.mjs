// A server whose runs continue the trace of the request.
import { createServer } from 'node:http';
import { flush, fromHeaders, traceable, withRun } from 'runspan';

const server = createServer(async (request, response) => {
  const { headers, url } = request;
  withRun(fromHeaders(headers), () => traceable(() => url, { name: `work ${url}` })());
  // The responses come in another order than the requests.
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 5));
  response.end('done');
});

server.listen(0, () => process.send(server.address().port));
process.once('disconnect', () => void flush().then(() => process.exit()));
