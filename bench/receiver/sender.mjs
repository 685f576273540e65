// Sends runs to a receiver like an exporter, from its own process: sender.mjs <url> <runs> <payload bytes>. Builds some
// bodies before the clock starts. Prints how many seconds the sending took.
import { request } from 'undici';
import { runOf } from './runs.mjs';

const [, , url, count, payloadBytes] = process.argv;
const RUNS_PER_REQUEST = 100;
const REQUESTS_AT_ONCE = 4;
const BOUNDARY = 'runspan-bench';
/** Bodies built ahead. The others are built while requests are in flight. */
const BODIES_AHEAD = 500;

const requests = Math.ceil(Number(count) / RUNS_PER_REQUEST);
const ahead = Array.from({ length: Math.min(requests, BODIES_AHEAD) }, (_, at) => bodyOf(at));
let next = 0;
const startedMs = performance.now();
await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, send));
console.log((performance.now() - startedMs) / 1_000);

async function send() {
  while (next < requests) {
    const at = next;
    next += 1;
    const body = ahead[at] ?? bodyOf(at);
    const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
    const answer = await request(`${url}/runs/multipart`, { method: 'POST', headers, body });
    await answer.body.dump();
    if (answer.statusCode === 503) next = Math.min(next, at);
    else if (answer.statusCode !== 202) throw new Error(`the receiver answered ${answer.statusCode}`);
  }
}

function bodyOf(at) {
  const frames = [];
  for (let number = at * RUNS_PER_REQUEST; number < Math.min(Number(count), (at + 1) * RUNS_PER_REQUEST); number += 1) {
    const { id, fields } = runOf(number, Number(payloadBytes));
    const { inputs, outputs, ...small } = fields;
    frames.push(
      frame(`post.${id}`, { id, ...small }),
      frame(`post.${id}.inputs`, inputs),
      frame(`post.${id}.outputs`, outputs),
    );
  }
  return Buffer.from(`${frames.join('')}--${BOUNDARY}--\r\n`);
}

function frame(name, value) {
  const text = JSON.stringify(value);
  const head = [
    `--${BOUNDARY}`,
    `Content-Disposition: form-data; name="${name}"`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(text)}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${text}\r\n`;
}
