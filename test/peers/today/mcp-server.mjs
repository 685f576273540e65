// A server of the Model Context Protocol: `mcp-server.mjs <1 or 2> <stdio or http>`. Its tools, its resource and its prompt
// ask the model at `MODEL`. Writes each message that it receives to the file `MESSAGES`. With `http`, prints its port.
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';

const [version, kind] = process.argv.slice(2);
const sdk = version === '1' ? await first() : await second();

async function first() {
  const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
  const { StreamableHTTPServerTransport: Http } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
  return { McpServer, StdioServerTransport, Http, schema: (shape) => shape };
}

async function second() {
  const { McpServer } = await import('@modelcontextprotocol/server');
  const { StdioServerTransport } = await import('@modelcontextprotocol/server/stdio');
  const { NodeStreamableHTTPServerTransport: Http } = await import('@modelcontextprotocol/node');
  return { McpServer, StdioServerTransport, Http, schema: z.object };
}

async function ask(input) {
  const body = JSON.stringify({ model: 'small', input });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${process.env.MODEL}/v1/responses`, { method: 'POST', headers, body });
  return (await response.json()).output[0].content[0].text;
}

function newServer() {
  const { McpServer, schema } = sdk;
  const server = new McpServer({ name: 'kitchen', version: '1.0.0' });
  const inputSchema = schema({ question: z.string() });
  server.registerTool('ask', { inputSchema }, async ({ question }, { mcpReq, sendNotification, ...extra }) => {
    const { progressToken } = mcpReq?._meta ?? extra._meta ?? {};
    const notify = mcpReq?.notify ?? sendNotification;
    const params = { progressToken, progress: 1, total: 2 };
    if (progressToken !== undefined) {
      await notify({ method: 'notifications/progress', params });
      // A client drops a notification that it reads from the pipe together with the response.
      if (kind === 'stdio') await server.server.ping();
    }
    return { content: [{ type: 'text', text: await ask(question) }] };
  });
  server.registerTool('fail', { inputSchema }, async ({ question }) => {
    await ask(question);
    throw new Error('the kettle is broken');
  });
  server.registerTool('wait', {}, async ({ mcpReq, signal = mcpReq.signal }) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return { content: [] };
  });
  const picture = { type: 'image', mimeType: 'image/png', data: Buffer.alloc(3_000).toString('base64') };
  server.registerTool('draw', {}, async () => ({ content: [picture] }));
  server.registerResource('note', 'note://tea', {}, async ({ href }) => {
    return { contents: [{ uri: href, text: await ask('note') }] };
  });
  server.registerPrompt('greet', { argsSchema: schema({ name: z.string() }) }, async ({ name }) => {
    return { messages: [{ role: 'user', content: { type: 'text', text: await ask(name) } }] };
  });
  return server;
}

const write = (message) => appendFileSync(process.env.MESSAGES, message);

if (kind === 'stdio') {
  process.stdin.on('data', write);
  await newServer().connect(new sdk.StdioServerTransport());
} else {
  const sessions = new Map();
  const open = async () => {
    const transport = new sdk.Http({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await newServer().connect(transport);
    return transport;
  };
  const server = createServer(async (request, response) => {
    const body = await text(request);
    if (body !== '') write(`${body}\n`);
    const transport = sessions.get(request.headers['mcp-session-id']) ?? (await open());
    await transport.handleRequest(request, response, body === '' ? undefined : JSON.parse(body));
  });
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
  process.stdin.resume().on('end', () => {
    server.close();
    server.closeAllConnections();
  });
}
