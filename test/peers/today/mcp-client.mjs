// A client of the Model Context Protocol: `mcp-client.mjs <1 or 2> <stdio or http> <each or many>`. Starts
// mcp-server.mjs, calls it, and prints what it gets. `SERVER_IMPORT` is a module that only the server loads. With `http`,
// the client takes the address of the server for `ORIGIN`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const [version, kind, what] = process.argv.slice(2);
const sdk = version === '1' ? await first() : await second();

async function first() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const { StreamableHTTPClientTransport: Http } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { CallToolResultSchema } = await import('@modelcontextprotocol/sdk/types.js');
  return { Client, StdioClientTransport, Http, schemas: [CallToolResultSchema] };
}

async function second() {
  const { Client, StreamableHTTPClientTransport: Http } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  return { Client, StdioClientTransport, Http, schemas: [] };
}

const { SERVER_IMPORT, ORIGIN } = process.env;
const options = SERVER_IMPORT === undefined ? [] : ['--import', SERVER_IMPORT];
const args = [...options, fileURLToPath(new URL('mcp-server.mjs', import.meta.url)), version, kind];

async function serverTransport() {
  if (kind === 'stdio') {
    const transport = new sdk.StdioClientTransport({ command: process.execPath, args, env: process.env });
    return { transport, close: async () => {} };
  }
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const [port] = await once(child.stdout, 'data');
  const local = `http://127.0.0.1:${Number(port)}`;
  const origin = ORIGIN ?? local;
  const send = (url, init) => fetch(String(url).replace(origin, local), init);
  const close = async () => {
    child.stdin.end();
    await once(child, 'close');
  };
  return { transport: new sdk.Http(new URL(`${origin}/mcp`), { fetch: send }), close };
}

const print = (value) => console.log(JSON.stringify(value));
const printError = ({ name, code, message }) => print({ name, code, message });

const OWN = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, 'own/list': [1] };

async function each(client) {
  const { schemas } = sdk;
  print(await client.callTool({ name: 'ask', arguments: { question: 'Tea?' }, _meta: OWN }));
  const onprogress = (progress) => print({ progress });
  print(await client.callTool({ name: 'ask', arguments: { question: 'More?' } }, ...schemas, { onprogress }));
  print(await client.callTool({ name: 'fail', arguments: { question: 'Milk?' } }));
  print(await client.callTool({ name: 'draw' }));
  print(await client.readResource({ uri: 'note://tea' }));
  print(await client.getPrompt({ name: 'greet', arguments: { name: 'Ann' } }));
  const request = { method: 'tools/call', params: { name: 'ask', arguments: { question: 'Raw?' } } };
  print(await client.request(request, ...schemas));
  await client.getPrompt({ name: 'absent' }).catch(printError);
  const controller = new AbortController();
  const waiting = client.callTool({ name: 'wait' }, ...schemas, { signal: controller.signal });
  // When the ping is answered, the call has been sent.
  await client.ping();
  controller.abort('enough');
  await waiting.catch(printError);
  await client.callTool({ name: 'wait' }, ...schemas, { timeout: 50 }).catch(printError);
  print((await client.listTools()).tools.map(({ name }) => name));
}

async function many(client) {
  const calls = Array.from({ length: 200 }, (_, at) => {
    return client.callTool({ name: 'ask', arguments: { question: `question ${at}` } });
  });
  print((await Promise.all(calls)).map(({ content }) => content[0].text));
}

const { transport, close } = await serverTransport();
const client = new sdk.Client({ name: 'cook', version: '1.0.0' });
await client.connect(transport);
await { each, many }[what](client);
await client.close();
await close();
