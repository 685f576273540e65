// The built command `runspan mcp`, checked by the conformance tests of the Model Context Protocol.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openLocalStore, storePath } from '../receiver/local-store.ts';
import { root } from '../support/folders.ts';
import { listen } from '../support/listen.ts';
import { bareEnvironment, startProgram } from '../support/program.ts';
import { laterNode } from './later-node.ts';

const packages = createRequire(new URL('./today/package.json', import.meta.url));
const script = join(root, 'test/peers/today/node_modules/@modelcontextprotocol/conformance/dist/index.js');

const SCENARIOS = ['ping', 'server-initialize', 'server-sse-multiple-streams', 'tools-list'];

/** Why other scenarios do not apply to the command. */
const LEFT_OUT: Readonly<Record<string, RegExp>> = {
  'the command has only tools': /^(resources-|prompts-|logging-set-level|completion-complete)/,
  'calls a tool of a server that is made for these tests':
    /^(tools-call-|elicitation-|json-schema-2020-12|server-sse-polling)/,
  'tests the HTTP server, which is part of this test': /^dns-rebinding-protection/,
};

interface Transport {
  onmessage?: (message: unknown) => void;
  start(): Promise<void>;
  send(message: unknown): Promise<void>;
  close(): Promise<void>;
}

interface HttpTransport extends Transport {
  handleRequest(...exchange: unknown[]): Promise<void>;
}

/** Serves the command over HTTP, with a process for each session. Returns the URL. */
async function serve(...args: string[]): Promise<string> {
  const sessions = new Map<unknown, HttpTransport>();
  const server = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id'] ?? randomUUID();
    const session = sessions.get(id) ?? (await startSession(id, args));
    sessions.set(id, session);
    await session.handleRequest(request, response);
  });
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `${await listen(server)}/mcp`;
}

/** Starts the command, and passes on every message between its pipes and an HTTP transport. */
async function startSession(id: unknown, args: readonly string[]): Promise<HttpTransport> {
  const { StdioClientTransport } = packages('@modelcontextprotocol/client/stdio');
  const { NodeStreamableHTTPServerTransport } = packages('@modelcontextprotocol/node');
  const http: HttpTransport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: () => id });
  const pipes: Transport = new StdioClientTransport({ command: process.execPath, args, env: bareEnvironment() });
  http.onmessage = (message) => pipes.send(message);
  pipes.onmessage = (message) => http.send(message);
  onTestFinished(() => pipes.close());
  await Promise.all([pipes.start(), http.start()]);
  return http;
}

const conformance = (...args: string[]) => startProgram([laterNode(), script, ...args]).ended;

it.each(SCENARIOS)('%s', async (scenario) => {
  const file = storePath();
  await (await openLocalStore(file)).close();
  const url = await serve(join(root, 'dist/cli/main.js'), 'mcp', '--store', file);
  const { code, stdout } = await conformance('server', '--url', url, '--scenario', scenario);
  expect(stdout).toMatch(/^Passed: ([1-9]\d*)\/\1, 0 failed, 0 warnings$/m);
  expect(code).toBe(0);
});

it('every other scenario is left out for a reason', async () => {
  const { stdout } = await conformance('list', '--server');
  const names = [...stdout.matchAll(/^ {2}- (\S+)/gm)].map(([, name = '']) => name);
  const isLeftOut = (name: string) => Object.values(LEFT_OUT).some((names) => names.test(name));
  expect(names.filter((name) => !isLeftOut(name)).sort()).toEqual(SCENARIOS);
});
