/**
 * The service that the drivers send to: it accepts everything at once, unless it is told to `behave` otherwise, and counts. A
 * body is counted after it has been answered. It runs in a process of its own, tells its port, and answers `reset`,
 * `count` and `behave` of the orchestrator.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { Arrivals } from './arrivals.mjs';
import { answerTo, intakeOf } from './routes.mjs';

/** How long it takes to answer, every how many requests it refuses (0 is never), whether it takes gzip, and whether it is away. */
const USUAL = { latencyMs: 0, failEvery: 0, takesGzip: false, isDown: false };

let arrivals = new Arrivals();
let behaviour = USUAL;
let asked = 0;
let underWay = 0;

const server = createServer((request, response) => {
  const intake = intakeOf(request);
  const answer = answerTo(request, behaviour);
  if (intake !== undefined) receive(request, response, intake);
  else if (answer === undefined) response.writeHead(404).end();
  else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
});
const port = await listen(0);
process.send({ kind: 'listening', port });

process.on('message', async ({ kind, ...more }) => {
  if (kind === 'behave') await behave({ ...USUAL, ...more });
  if (kind === 'reset') arrivals = new Arrivals();
  process.send({ kind, count: arrivals.summary });
});
process.on('disconnect', () => process.exit());

async function behave(next) {
  const { isDown } = behaviour;
  behaviour = next;
  if (next.isDown === isDown) return;
  if (!next.isDown) {
    await listen(port);
    return;
  }
  server.close();
  server.closeAllConnections();
}

async function listen(wanted) {
  server.listen(wanted, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}

function receive(request, response, { status, read }) {
  arrivals.requestsAtOnce = Math.max(arrivals.requestsAtOnce, ++underWay);
  response.on('close', () => underWay--);
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const isRefused = behaviour.failEvery > 0 && ++asked % behaviour.failEvery === 0;
    const answer = () => response.writeHead(isRefused ? 503 : status, { 'content-length': 2 }).end('{}');
    if (behaviour.latencyMs > 0) setTimeout(answer, behaviour.latencyMs);
    else answer();
    if (isRefused) arrivals.refused++;
    else count(request, Buffer.concat(chunks), read);
  });
}

function count({ headers }, body, read) {
  arrivals.requests++;
  arrivals.bytes += body.length;
  try {
    const plain = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
    arrivals.bodyBytes += plain.length;
    read(plain, arrivals);
  } catch {
    arrivals.malformed++;
  }
}
