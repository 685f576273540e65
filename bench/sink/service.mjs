/**
 * The service that the drivers send to. It accepts every request immediately, and counts a body's runs after the
 * response. It runs in its own process, sends its port to the orchestrator, and replies to the messages `reset`,
 * `count` and `behave`.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import zlib from 'node:zlib';
import { Arrivals } from './arrivals.mjs';
import { answerTo, intakeOf } from './routes.mjs';

/** The encoding of bodies that `/info` allows, and whether nothing listens on the port. */
const USUAL = { encoding: undefined, isDown: false };

let arrivals = new Arrivals();
let behaviour = USUAL;

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
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    response.writeHead(status, { 'content-length': 2 }).end('{}');
    count(request, Buffer.concat(chunks), read);
  });
}

function count({ headers }, body, read) {
  arrivals.requests++;
  arrivals.bytes += body.length;
  try {
    const plain = decoded(headers['content-encoding'], body);
    arrivals.bodyBytes += plain.length;
    read(plain, arrivals);
  } catch {
    arrivals.malformed++;
  }
}

function decoded(encoding, body) {
  if (encoding === 'gzip') return zlib.gunzipSync(body);
  return encoding === 'zstd' ? zlib.zstdDecompressSync(body) : body;
}
