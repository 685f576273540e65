/**
 * The service that the drivers send to: it accepts everything at once, unless it is told to `behave` otherwise, and counts. The parts are walked by the
 * `Content-Length` that each has, so that payloads are not looked at; a body is counted after it has been answered.
 * It runs in a process of its own, tells its port, and answers `reset`, `count` and `behave` of the orchestrator.
 */
import { createServer } from 'node:http';
import { spanIdsOfJson, spanIdsOfProtobuf } from './otlp-reader.mjs';

const INFO = JSON.stringify({
  version: 'bench',
  batch_ingest_config: { use_multipart_endpoint: true, size_limit: 100, size_limit_bytes: 20 * 1024 * 1024 },
  instance_flags: { gzip_body_enabled: false },
});
const PART = /name="(post|patch)\.([0-9a-f-]{36})(?:\.(inputs|outputs|events))?"[\s\S]*Content-Length: (\d+)/;
const HEADER_END = Buffer.from('\r\n\r\n');

let count = newCount();
/** It answers after so many milliseconds, and every so many requests with 503; 0 is never. */
let behaviour = { latencyMs: 0, failEvery: 0 };

const server = createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/runs/multipart') receive(request, response, 202, countParts);
  else if (request.method === 'POST' && request.url === '/v1/traces')
    receive(request, response, 200, countSpans(request));
  else if (request.method === 'GET' && request.url === '/info') {
    response.writeHead(200, { 'content-type': 'application/json' }).end(INFO);
  } else response.writeHead(404).end();
});
server.listen(0, '127.0.0.1', () => process.send({ kind: 'listening', port: server.address().port }));

process.on('message', ({ kind, ...more }) => {
  if (kind === 'behave') behaviour = { latencyMs: 0, failEvery: 0, ...more };
  if (kind === 'reset') count = newCount();
  process.send({ kind, count: summary() });
});
process.on('disconnect', () => process.exit());

function receive(request, response, status, countBody) {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const isRefused = behaviour.failEvery > 0 && ++count.asked % behaviour.failEvery === 0;
    const answer = () => response.writeHead(isRefused ? 503 : status, { 'content-length': 2 }).end('{}');
    if (behaviour.latencyMs > 0) setTimeout(answer, behaviour.latencyMs);
    else answer();
    if (isRefused) {
      count.refused++;
      return;
    }
    const body = Buffer.concat(chunks);
    count.requests++;
    count.bytes += body.length;
    countBody(body);
  });
}

/** A span arrives once it has ended, as a whole. */
function countSpans({ headers }) {
  const idsOf = headers['content-type'] === 'application/json' ? spanIdsOfJson : spanIdsOfProtobuf;
  return (body) => {
    for (const id of idsOf(body)) {
      count.posted.add(id);
      count.ended.add(id);
      count.endRecords++;
    }
  };
}

function countParts(body) {
  let at = 0;
  for (;;) {
    const headerEnd = body.indexOf(HEADER_END, at);
    if (headerEnd < 0) return;
    const part = PART.exec(body.latin1Slice(at, headerEnd));
    if (part === null) {
      count.malformed++;
      return;
    }
    const [, operation, id, field, length] = part;
    const start = headerEnd + HEADER_END.length;
    at = start + Number(length);
    if (field !== undefined) {
      count.payloadBytes += Number(length);
      continue;
    }
    if (operation === 'post') count.posted.add(id);
    if (body.latin1Slice(start, at).includes('"end_time":"')) {
      count.endRecords++;
      count.ended.add(id);
    }
  }
}

function newCount() {
  return {
    asked: 0,
    refused: 0,
    requests: 0,
    bytes: 0,
    payloadBytes: 0,
    malformed: 0,
    endRecords: 0,
    posted: new Set(),
    ended: new Set(),
  };
}

/** Runs are distinct ids; a complete one has been posted and has its end. */
function summary() {
  const { posted, ended, ...numbers } = count;
  let complete = 0;
  for (const id of ended) if (posted.has(id)) complete++;
  return { ...numbers, posted: posted.size, complete };
}
