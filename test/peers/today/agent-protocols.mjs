// An agent server that speaks MCP and A2A with the SDKs of both protocols, and a client of it: `agent-protocols.mjs <1 or
// 2>`, the version of MCP's SDK. The server is a second process. Its tool and its agent ask the model at `MODEL`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

if (process.argv[2] === 'serve') await serve();
else await call(process.argv[2]);

async function serve() {
  const { DefaultRequestHandler, InMemoryTaskStore } = await import('@a2a-js/sdk/server');
  const { A2AExpressApp } = await import('@a2a-js/sdk/server/express');
  const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
  const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
  const { default: express } = await import('express');
  const { z } = await import('zod');

  const ask = async (input) => {
    const body = JSON.stringify({ model: 'small', input });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${process.env.MODEL}/v1/responses`, { method: 'POST', headers, body });
    return (await response.json()).output[0].content[0].text;
  };

  const app = express();
  app.use((request, response, next) => {
    if (request.headers['x-api-key'] === 'key-of-the-deployment') next();
    else response.status(401).json({ detail: 'Missing or invalid authentication' });
  });

  app.post('/mcp/', express.json(), async (request, response) => {
    const server = new McpServer({ name: 'agents', version: '1.0.0' });
    server.registerTool('agent', { inputSchema: { question: z.string() } }, async ({ question }) => {
      return { content: [{ type: 'text', text: await ask(question) }] };
    });
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    await server.connect(transport);
    await transport.handleRequest(request, response, request.body);
  });
  app.all('/mcp/', (_, response) => void response.status(405).end());

  const card = {
    name: 'agent',
    description: 'Knows the weather',
    url: 'http://localhost/a2a/agent',
    version: '1.0.0',
    protocolVersion: '0.3.0',
    capabilities: { streaming: true },
    defaultInputModes: ['text'],
    defaultOutputModes: ['text'],
    skills: [],
  };
  const executor = {
    async execute({ userMessage, taskId, contextId }, bus) {
      const [{ text }] = userMessage.parts;
      if (text === 'fail') throw new Error('the graph is broken');
      const status = (state) => ({ state, timestamp: new Date().toISOString() });
      bus.publish({ kind: 'task', id: taskId, contextId, status: status('submitted'), history: [userMessage] });
      const artifact = { artifactId: 'answer', parts: [{ kind: 'text', text: await ask(text) }] };
      bus.publish({ kind: 'artifact-update', taskId, contextId, artifact });
      bus.publish({ kind: 'status-update', taskId, contextId, status: status('completed'), final: true });
      bus.finished();
    },
    async cancelTask() {},
  };
  const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  app.get('/.well-known/agent-card.json', (_, response) => response.json(card));
  new A2AExpressApp(handler).setupRoutes(app, '/a2a/agent');
  const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
  process.stdin.resume().on('end', () => {
    server.close();
    server.closeAllConnections();
  });
}

async function call(version) {
  const modules = {
    1: ['@modelcontextprotocol/sdk/client/index.js', '@modelcontextprotocol/sdk/client/streamableHttp.js'],
    2: ['@modelcontextprotocol/client', '@modelcontextprotocol/client'],
  };
  const [{ Client }, { StreamableHTTPClientTransport }] = await Promise.all(modules[version].map((it) => import(it)));
  const { AgentServer } = await import(process.env.CLIENTS);
  const { traceable } = await import(process.env.RUNSPAN);
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), 'serve'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [port] = await once(child.stdout, 'data');
  const server = new AgentServer({ url: `http://127.0.0.1:${`${port}`.trim()}`, apiKey: 'key-of-the-deployment' });
  const ask = (text) => ({ message: { parts: [{ kind: 'text', text }] } });

  await traceable(async function job() {
    const client = new Client({ name: 'app', version: '1.0.0' });
    await client.connect(server.mcp(StreamableHTTPClientTransport));
    const { content } = await client.callTool({ name: 'agent', arguments: { question: 'over MCP' } });
    console.log(content[0].text);
    await client.close();

    console.log((await server.a2a.card('agent')).description);
    console.log((await server.a2a.send('agent', ask('over A2A'))).artifacts[0].parts[0].text);
    for await (const { kind } of await server.a2a.stream('agent', ask('streamed'))) console.log(kind);
    console.log(await server.a2a.send('none', ask('nobody')).catch(({ code }) => code));
  })();

  await server.close();
  child.stdin.end();
  await once(child, 'exit');
}
