// A server that does not read the headers of its requests.
import { createServer } from 'node:http';
import { flush, traceable } from 'runspan';

let requests = 0;
const server = createServer(async ({ url }, response) => {
  traceable(() => url, { name: `work ${url}` })();
  // The responses come in another order than the requests.
  await new Promise((resolve) => setTimeout(resolve, url.startsWith('/slow') ? 2_500 : 5 - (requests++ % 6)));
  if (url.startsWith('/broken')) response.statusCode = 500;
  response.end('done');
});

server.listen(0, () => process.send(server.address().port));
process.once('disconnect', () => void flush().then(() => process.exit()));
