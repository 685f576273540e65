/**
 * The hand-made limit: the least that a program can do that sends the same runs over the same wire. Each payload is made
 * into JSON once, complete runs are laid into one buffer per batch of 100, and undici sends it. There is no context (a
 * variable stands for it, which only a program of one turn at a time can afford), nothing is guarded, bounded, coalesced
 * or sent again.
 */
import { Pool } from 'undici';
import { measure } from '../measure.mjs';
import { compactTime, isoTime, newId, nowUs } from './limit-stamps.mjs';
import { layBatch, multipartType } from './limit-wire.mjs';

const BATCH_RUNS = 100;

const pool = new Pool(process.env.RUNSPAN_ENDPOINT, { connections: 4 });
const requests = new Set();
let waiting = [];
/** The chain of the turn at hand, parent of the other two. */
let root;

await measure({ wrap: record, flush });

function record(fn, name, runType) {
  return async (input) => {
    const run = begin(name, runType, input);
    const output = await fn(input);
    run.outputs = JSON.stringify(output);
    run.endTime = isoTime(nowUs());
    if (run === root) root = undefined;
    if (waiting.push(run) === BATCH_RUNS) {
      // Like the library, outside of the call.
      setImmediate(send, waiting);
      waiting = [];
    }
    return output;
  };
}

function begin(name, runType, input) {
  const startUs = nowUs();
  const id = newId(startUs);
  const segment = compactTime(startUs) + id;
  const run = {
    id,
    traceId: root === undefined ? id : root.id,
    parentId: root?.id,
    dottedOrder: root === undefined ? segment : `${root.dottedOrder}.${segment}`,
    name,
    runType,
    startTime: isoTime(startUs),
    endTime: undefined,
    inputs: JSON.stringify(input),
    outputs: undefined,
  };
  root ??= run;
  return run;
}

function send(runs) {
  const request = post(runs).finally(() => requests.delete(request));
  requests.add(request);
}

async function post(runs) {
  const { statusCode, body } = await pool.request({
    path: '/runs/multipart',
    method: 'POST',
    headers: { 'content-type': multipartType },
    body: layBatch(runs),
  });
  await body.dump();
  if (statusCode !== 202) throw new Error(`the sink answered ${statusCode}`);
}

async function flush() {
  if (waiting.length > 0) send(waiting);
  waiting = [];
  // One that is about to be laid is not among the requests yet.
  await new Promise(setImmediate);
  await Promise.all(requests);
}
