// Answers the HTTP protocol of ClickHouse with an embedded ClickHouse, so that tests run the unmodified
// @clickhouse/client without a server. Usage: node shim.mjs <directory>. Prints the URL of a new database, and ends when
// standard input ends. `POST /fault` sets the failures of later queries of a database, see `setFaults`.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';

const [directory] = process.argv.slice(2);
let loading;

/** Loads ClickHouse for the first query. A shim that gets no query needs little memory and no ClickHouse. */
function load() {
  loading ??= loadOnce();
  return loading;
}

async function loadOnce() {
  // The functions of the addon accept parameters as the HTTP protocol encodes them. Those of the package encode them again.
  const { loadNative } = await import('./node_modules/chdb/dist/loader.js');
  const native = loadNative();
  await native.QueryAsyncConnection(native.CreateConnection(directory, []), 'CREATE DATABASE runspan', 'Null');
  return native;
}

/** URL parameters that are not settings of a query. */
const NOT_SETTINGS =
  /^(query|query_id|database|default_format|session_id|role|compress|decompress|wait_end_of_query|(param|http|send_progress|enable_http)_.*)$/;

/**
 * Opens a connection to a database. Settings apply to the whole connection, because CREATE TABLE would store settings
 * that follow it.
 */
async function connect(database, settings) {
  const native = await load();
  const connection = native.CreateConnection(directory, []);
  const assignments = settings.map(([name, value]) => `SET ${name} = '${value.replaceAll(/['\\]/g, '\\$&')}'`);
  await native.QueryAsyncConnection(connection, [`USE \`${database}\``, ...assignments].join(';'), 'Null');
  return connection;
}

const connections = new Map();

async function connectionFor(url) {
  const database = url.searchParams.get('database') ?? 'default';
  const settings = [...url.searchParams].filter(([name]) => !NOT_SETTINGS.test(name)).sort();
  const key = JSON.stringify([database, settings]);
  if (!connections.has(key)) connections.set(key, connect(database, settings));
  try {
    return await connections.get(key);
  } catch (error) {
    connections.delete(key);
    throw error;
  }
}

async function parse(request, url) {
  const received = await buffer(request);
  const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(received) : received;
  const type = request.headers['content-type'] ?? '';
  const isForm = type.startsWith('multipart/form-data');
  const form = isForm ? await new Response(body, { headers: { 'content-type': type } }).formData() : [];
  const fields = new Map([...url.searchParams, ...form]);
  const parameters = [...fields].filter(([name]) => name.startsWith('param_'));
  const params = Object.fromEntries(parameters.map(([name, value]) => [name.slice('param_'.length), value]));
  const query = fields.get('query');
  if (query === undefined) return { query: body.toString(), params };
  return isForm || body.length === 0 ? { query, params } : { query, params, data: body };
}

let lastBound = Promise.resolve();

async function run(connection, { query, params, data }) {
  const native = await load();
  if (data !== undefined) return await native.InsertRawAsyncConnection(connection, query, data, false);
  if (Object.keys(params).length === 0) return await native.QueryAsyncConnection(connection, query, 'TabSeparated');
  // Connections share the parameters, so only one query with parameters runs at a time.
  const result = lastBound.then(() => native.QueryAsyncConnection(connection, query, 'TabSeparated', params));
  lastBound = result.catch(() => {});
  return await result;
}

/** The failures of each database. `released` resolves with the next failures. */
const faults = new Map();

/**
 * Sets the failures of a database. Each applies to queries that contain the text `match`, and the text `value` in their
 * parameters or data, and only `times` times if given.
 *
 * - `away`: ends the connection without running the query.
 * - `code`: responds with this error code without running the query. `type` is the name of the error.
 * - `held`: runs the query after the next `POST /fault`.
 * - `cut`: runs the query, and ends the connection in the middle of the response.
 */
function setFaults(database, next) {
  faults.get(database)?.release();
  let release;
  const released = new Promise((resolve) => {
    release = resolve;
  });
  faults.set(database, { list: [next].flat(), release, released });
}

function faultOf(database, { query, params, data = '' }) {
  const { list = [], released } = faults.get(database) ?? {};
  const values = list.some(({ value }) => value) ? `${JSON.stringify(params)} ${data}` : '';
  const fault = list.find(
    ({ match = '', value = '', times = 1 }) => times > 0 && query.includes(match) && values.includes(value),
  );
  if (fault?.times !== undefined) fault.times -= 1;
  return { ...fault, released };
}

async function answer(request, response) {
  const url = new URL(request.url, 'http://localhost');
  if (url.pathname.endsWith('/ping')) return response.end('Ok.\n');
  const database = url.searchParams.get('database');
  if (url.pathname === '/fault') {
    setFaults(database, JSON.parse((await buffer(request)).toString()));
    return response.end();
  }
  const call = await parse(request, url);
  const fault = faultOf(database, call);
  if (fault.held) await fault.released;
  if (fault.away) return response.destroy();
  if (fault.code) throw new Error(`Code: ${fault.code}. DB::Exception: Fault of a test. (${fault.type ?? 'FAULT'})`);
  const { bytes = '' } = await run(await connectionFor(url), call);
  if (!fault.cut) return response.end(bytes);
  if (bytes.length > 1) {
    response.writeHead(200, { 'content-length': bytes.length });
    await new Promise((resolve) => response.write(bytes.subarray(0, bytes.length / 2), resolve));
  }
  return response.destroy();
}

const server = createServer({ maxHeaderSize: 1_000_000, keepAliveTimeout: 60_000 }, (request, response) => {
  answer(request, response).catch((error) => {
    const code = /^Code: (\d+)/.exec(error.message)?.[1] ?? '1';
    response.writeHead(500, { 'x-clickhouse-exception-code': code }).end(error.message);
  });
});
await once(server.listen(0, '127.0.0.1'), 'listening');
console.log(`http://default:@127.0.0.1:${server.address().port}/runspan`);
// process.exit would run the addon's destructors while queries run, and crash.
process.stdin.on('end', () => process.kill(process.pid, 'SIGKILL')).resume();
