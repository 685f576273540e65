// Answers the HTTP protocol of ClickHouse with an embedded ClickHouse, so that tests run the unmodified
// @clickhouse/client without a server. Usage: node shim.mjs <directory>. Prints the URL of a new database, and ends when
// standard input ends. `POST /fault` sets the failure of later queries, see `faults`.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
// The functions of the addon accept parameters as the HTTP protocol encodes them. Those of the package encode them again.
import { loadNative } from './node_modules/chdb/dist/loader.js';

const [directory] = process.argv.slice(2);
const native = loadNative();

/** URL parameters that are not settings of a query. */
const NOT_SETTINGS =
  /^(query|query_id|database|default_format|session_id|role|compress|decompress|wait_end_of_query|(param|http|send_progress|enable_http)_.*)$/;

/**
 * Opens a connection to a database. Settings apply to the whole connection, because CREATE TABLE would store settings
 * that follow it.
 */
async function connect(database, settings) {
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

/** Returns the query, its parameters, and the data of an INSERT. */
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
  if (data !== undefined) return await native.InsertRawAsyncConnection(connection, query, data, false);
  if (Object.keys(params).length === 0) return await native.QueryAsyncConnection(connection, query, 'TabSeparated');
  // Connections share the parameters, so only one query with parameters runs at a time.
  const result = lastBound.then(() => native.QueryAsyncConnection(connection, query, 'TabSeparated', params));
  lastBound = result.catch(() => {});
  return await result;
}

/**
 * Failures of queries. Each applies to queries that contain the text `match`, and the text `value` in their parameters or
 * data, and only `times` times if given.
 *
 * - `away`: ends the connection without running the query.
 * - `code`: responds with this error code without running the query. `type` is the name of the error.
 * - `held`: runs the query after the next `POST /fault`.
 * - `cut`: runs the query, and ends the connection in the middle of the response.
 */
let faults = [];
let release = () => {};
let released;

function setFaults(next) {
  faults = [next].flat();
  release();
  released = new Promise((resolve) => {
    release = resolve;
  });
}

function faultOf({ query, params, data = '' }) {
  const values = faults.some(({ value }) => value) ? `${JSON.stringify(params)} ${data}` : '';
  const fault = faults.find(
    ({ match = '', value = '', times = 1 }) => times > 0 && query.includes(match) && values.includes(value),
  );
  if (fault?.times !== undefined) fault.times -= 1;
  return fault ?? {};
}

async function answer(request, response) {
  const url = new URL(request.url, 'http://localhost');
  if (url.pathname.endsWith('/ping')) return response.end('Ok.\n');
  if (url.pathname === '/fault') {
    setFaults(JSON.parse((await buffer(request)).toString()));
    return response.end();
  }
  const call = await parse(request, url);
  const fault = faultOf(call);
  if (fault.held) await released;
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

await native.QueryAsyncConnection(native.CreateConnection(directory, []), 'CREATE DATABASE runspan', 'Null');
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
