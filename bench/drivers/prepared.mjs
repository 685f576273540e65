/** The requests of `traceable`, built before the clock starts. Measures the service without an application. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { Pool } from 'undici';
import { runLoop } from '../loop.mjs';
import { measureWork } from '../measure.mjs';
import { givenPlan } from '../plan.mjs';
import { answerTo } from '../sink/routes.mjs';
import { workloadOf } from '../workloads/workload.mjs';
import { importBuild, QUEUE_ROOM } from './build.mjs';

const REQUESTS_IN_FLIGHT = 4;

const plan = givenPlan();
const pool = new Pool(process.env.RUNSPAN_ENDPOINT, { connections: REQUESTS_IN_FLIGHT });
const [warmupRequests, requests] = await prepare([plan.warmupTurns, plan.turns]);
await post(warmupRequests);
await measureWork(plan, () => post(requests));

/** Returns the requests for each number of turns. */
async function prepare(counts) {
  let recorded = [];
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    if (request.method === 'POST') recorded.push({ type: request.headers['content-type'], body });
    const answer = answerTo(request, plan) ?? {};
    response.writeHead(request.method === 'POST' ? 202 : 200).end(JSON.stringify(answer));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { configure, shutdown, flush, traceable } = await importBuild('index');
  configure({ endpoint: `http://127.0.0.1:${server.address().port}`, limits: QUEUE_ROOM });
  const { make, runsPerTurn } = workloadOf(plan.workload);
  const work = { turn: make((fn, name, runType) => traceable(fn, { name, runType })), runsPerTurn };
  const prepared = [];
  let first = 1;
  for (const count of counts) {
    await runLoop(work, {}, first, count);
    await flush();
    prepared.push(recorded);
    recorded = [];
    first += count;
  }
  await shutdown();
  server.close();
  return prepared;
}

async function post(all) {
  const rest = all.values();
  await Promise.all(Array.from({ length: REQUESTS_IN_FLIGHT }, () => postEach(rest)));
}

async function postEach(rest) {
  for (const { type, body: bytes } of rest) {
    const { statusCode, body } = await pool.request({
      path: '/runs/multipart',
      method: 'POST',
      headers: { 'content-type': type },
      body: bytes,
    });
    await body.dump();
    if (statusCode !== 202) throw new Error(`the receiver answered ${statusCode}`);
  }
}
