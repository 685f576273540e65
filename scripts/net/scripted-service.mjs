import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';

/**
 * A service on a free port that follows a script. Faults are used up by the first requests, one each; rules hold for
 * every request.
 *
 * @typedef {object} Script
 * @property {object[]} [faults]  `{ status, headers }`, `{ reset: true }`, `{ hang: true }`, with `stores: true` to keep the runs all the same
 * @property {object} [always]  the fault of every request
 * @property {(records: object[], request: object) => number | undefined} [rule]  a status that refuses the request
 * @property {object} [info]  `{ status, body, delayMs }`, without it 404
 * @property {number} [delayMs]  before each response
 */

/** @param {Script} script */
export async function scriptedService(script) {
  const service = {
    script,
    url: '',
    requests: [],
    known: new Map(),
    infoRequests: 0,
    accepted: new Set(),
    irregular: [],
    close,
  };
  const server = createServer(async (message, response) => {
    try {
      await answer(service, message, response);
    } catch (error) {
      // A client that breaks a request off is part of some scripts.
      if (message.socket.destroyed) return;
      service.irregular.push(`malformed: ${error.message}`);
      response.writeHead(500).end();
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  service.url = `http://127.0.0.1:${server.address().port}`;
  return service;

  async function close() {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }
}

async function answer(service, message, response) {
  const { script } = service;
  const raw = await buffer(message);
  if (message.url === '/info') {
    const { status = 404, body = '{}', delayMs = 0 } = script.info ?? {};
    await delay(delayMs);
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    return void service.infoRequests++;
  }
  const body = message.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw;
  const { method, url: path, headers } = message;
  const parts = path === '/runs/multipart' ? partsOf(headers['content-type'], body) : undefined;
  const records = parts === undefined ? [simpleRecord(message, body)] : recordsOf(parts);
  const request = { method, path, headers, length: raw.length, parts };
  service.requests.push(request);
  const fault = script.always ?? script.faults?.shift();
  const status = fault?.status ?? script.rule?.(records, request, service) ?? 202;
  if (script.delayMs !== undefined) await delay(script.delayMs);
  const isStored = fault === undefined ? status < 300 : fault.stores === true;
  if (isStored && fault === undefined) for (const record of records) accept(service, record);
  if (isStored) for (const record of records) store(service.known, record);
  if (fault?.reset === true) return void message.socket.resetAndDestroy();
  if (fault?.hang === true) return;
  response.writeHead(status, { 'content-type': 'application/json', ...fault?.headers }).end('{}');
}

/** Notes a record that the client knows to be accepted already, and an end that comes before its start. */
function accept({ accepted, known, irregular }, { kind, fields: { id, name } }) {
  const key = `${kind}.${id}`;
  if (accepted.has(key)) irregular.push(`accepted again: ${kind} of ${name}`);
  if (kind === 'patch' && !known.has(id)) irregular.push(`patch before post: ${name}`);
  accepted.add(key);
}

/** The parts of a multipart body; each has to be as long as its Content-Length. */
function partsOf(contentType, body) {
  const boundary = /^multipart\/form-data; boundary=(\S+)$/.exec(contentType)[1];
  const parts = [];
  for (let at = 0; ; ) {
    const end = body.indexOf('\r\n\r\n', at);
    if (end < 0 && body.subarray(at).toString('latin1') === `--${boundary}--\r\n`) return parts;
    const [delimiter, ...headers] = body.subarray(at, end).toString('latin1').split('\r\n');
    if (delimiter !== `--${boundary}` || end < 0) throw new Error(`no delimiter at byte ${at}`);
    const length = Number(/content-length: (\d+)/i.exec(headers.join('\n'))[1]);
    const name = /name="([^"]*)"/.exec(headers.join('\n'))[1];
    const content = body.subarray(end + 4, end + 4 + length);
    parts.push({ name, headers, content });
    at = end + 4 + length + 2;
    if (body.subarray(at - 2, at).toString('latin1') !== '\r\n')
      throw new Error(`part ${name} does not end at byte ${at}`);
  }
}

/** The records of a multipart body, one for each operation on a run. */
function recordsOf(parts) {
  const records = new Map();
  for (const { name, headers, content } of parts) {
    const [kind, id, ...rest] = name.split('.');
    const field = rest.join('.');
    if (kind === 'attachment') {
      const record = [...records.values()].find((each) => each.fields.id === id);
      const type = headers.find((line) => /^content-type/i.test(line));
      record.attachments[field] = [type, content.length, createHash('sha1').update(content).digest('base64')];
    } else if (field === '') records.set(`${kind}.${id}`, newRecord(kind, JSON.parse(content)));
    else records.get(`${kind}.${id}`).fields[field] = JSON.parse(content);
  }
  const sizes = new Map();
  for (const { name, content } of parts) {
    const id = name.split('.')[1];
    sizes.set(id, (sizes.get(id) ?? 0) + content.length);
  }
  for (const record of records.values()) record.bytes = sizes.get(record.fields.id);
  return [...records.values()];
}

function simpleRecord({ method, url }, body) {
  const fields = JSON.parse(body);
  if (method === 'PATCH' && fields.id === undefined) fields.id = url.split('/').at(-1);
  return { ...newRecord(method === 'PATCH' ? 'patch' : 'post', fields), bytes: body.length };
}

function newRecord(kind, fields) {
  return { kind, fields, attachments: {}, bytes: 0 };
}

/** Merges a record into what is known of its run: a later field takes the place of an earlier one. */
function store(known, { fields, attachments }) {
  const run = known.get(fields.id) ?? { attachments: {} };
  Object.assign(run.attachments, attachments);
  known.set(fields.id, { ...run, ...fields });
}
