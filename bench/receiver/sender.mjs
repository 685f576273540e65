// Sends runs of the conversations to a receiver from its own process: sender.mjs <url> <runs> <first> <total>. Builds some
// bodies before the clock starts. Prints how many seconds the sending took.
import { request } from 'undici';
import { operationsOf } from './conversations.mjs';

const [, , url, count, start, total] = process.argv;
const RUNS_PER_REQUEST = 100;
const REQUESTS_AT_ONCE = 32;
const BOUNDARY = 'runspan-bench';
/** Bodies built ahead. The others are built while requests are in flight. */
const BODIES_AHEAD = 500;
const BUSY = [429, 503];

const first = Number(start);
const end = first + Number(count);
// The last request has the patches of the last runs.
const requests = Math.ceil(Number(count) / RUNS_PER_REQUEST) + 1;
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
    for (let isAccepted = false; !isAccepted; ) {
      const answer = await request(`${url}/runs/multipart`, { method: 'POST', headers, body });
      await answer.body.dump();
      isAccepted = answer.statusCode === 202;
      if (isAccepted) continue;
      if (!BUSY.includes(answer.statusCode)) throw new Error(`the receiver answered ${answer.statusCode}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

function bodyOf(at) {
  const frames = operationsIn(at).flatMap(({ kind, id, fields }) => {
    const { inputs, outputs, ...small } = fields;
    return [
      frame(`${kind}.${id}`, { id, ...small }),
      ...(inputs === undefined ? [] : [frame(`${kind}.${id}.inputs`, inputs)]),
      ...(outputs === undefined ? [] : [frame(`${kind}.${id}.outputs`, outputs)]),
    ];
  });
  return Buffer.from(`${frames.join('')}--${BOUNDARY}--\r\n`);
}

function operationsIn(at) {
  const blockOf = (number) => ({
    first: Math.max(first, first + number * RUNS_PER_REQUEST),
    end: Math.min(end, first + (number + 1) * RUNS_PER_REQUEST),
  });
  return operationsOf(blockOf(at), blockOf(at - 1), Number(total));
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
