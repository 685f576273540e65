import { beforeAll, describe, expect, it } from 'vitest';
import type { RunRecord } from '#src/index.ts';
import { type DrawnRun, drawn, inOrder, printedBy } from './otel-runs.ts';

// What is expected is written by hand, from what the program does, by
// https://opentelemetry.io/docs/specs/semconv/http/http-spans/ and https://opentelemetry.io/docs/specs/semconv/db/database-spans/

let roots: readonly DrawnRun[];
beforeAll(async () => {
  const runs = await printedBy<RunRecord[]>('otel-protocols-program.mjs', []);
  const port = runs.find(({ name }) => name.endsWith('/users/7'))?.name.match(/:(\d+)/)?.[1];
  roots = drawn(JSON.parse(JSON.stringify(runs).replaceAll(`:${port}`, ':8080')));
});
const below = (name: string) => roots.find((run) => run.name === name)?.below;

const client = {
  'server.address': '127.0.0.1',
  'server.port': 8080,
  'network.peer.address': '127.0.0.1',
  'network.peer.port': 8080,
  'network.protocol.version': '1.1',
};
const server = {
  ...client,
  'network.peer.port': expect.any(Number),
  'client.address': '127.0.0.1',
  'url.scheme': 'http',
};
const agent = { 'user_agent.original': 'node' };
const fetched = { ...client, ...agent, 'url.scheme': 'http' };

const oldDatabase = {
  'db.system': 'postgresql',
  'db.name': 'shop',
  'db.connection_string': '[Redacted]',
  'net.peer.name': 'db.example',
  'net.peer.port': 5432,
  'db.user': 'ann',
};
const database = {
  'db.system.name': 'postgresql',
  'db.namespace': 'shop',
  'server.address': 'db.example',
  'server.port': 5432,
};
const select = { name: 'pg.query:SELECT shop', type: 'chain' };
const query = 'SELECT name FROM users WHERE id = $1';
const queries = [
  { ...select, inputs: { query, parameters: ['7'] }, metadata: oldDatabase },
  { ...select, inputs: { query }, metadata: database },
];

describe('requests', () => {
  it('of node:http have both of their ends, and what the server asks of its database', () => {
    expect(below('by node:http')).toEqual([
      {
        name: 'GET 127.0.0.1:8080/users/7',
        type: 'chain',
        inputs: { method: 'GET', url: 'http://127.0.0.1:8080/users/7?api_key=[Redacted]&page=2' },
        outputs: { status_code: 200 },
        metadata: client,
        below: [
          {
            name: 'GET /users/7',
            type: 'chain',
            inputs: { method: 'GET', path: '/users/7', query: 'api_key=REDACTED&page=2' },
            outputs: { status_code: 200 },
            metadata: server,
            below: inOrder(queries),
          },
        ],
      },
    ]);
  });

  // Of a request that is not found the client has failed, and the server has not.
  it('of fetch have failed where the conventions say so', () => {
    expect(below('by fetch')).toEqual(
      inOrder([
        {
          name: 'POST 127.0.0.1:8080/missing',
          type: 'chain',
          inputs: { method: 'POST', url: 'http://127.0.0.1:8080/missing?token=[Redacted]' },
          outputs: { status_code: 404 },
          error: 'HTTP 404',
          metadata: { ...fetched, 'error.type': '404' },
          below: [
            {
              name: 'POST /missing',
              type: 'chain',
              inputs: { method: 'POST', path: '/missing', query: 'token=REDACTED' },
              outputs: { status_code: 404 },
              metadata: { ...server, ...agent },
              below: queries,
            },
          ],
        },
        {
          name: 'GET 127.0.0.1:8080/broken',
          type: 'chain',
          inputs: { method: 'GET', url: 'http://127.0.0.1:8080/broken' },
          outputs: { status_code: 500 },
          error: 'HTTP 500',
          metadata: { ...fetched, 'error.type': '500' },
          below: [
            {
              name: 'GET /broken',
              type: 'chain',
              inputs: { method: 'GET', path: '/broken' },
              outputs: { status_code: 500 },
              error: 'HTTP 500',
              metadata: { ...server, ...agent },
              below: queries,
            },
          ],
        },
      ]),
    );
  });

  it('that nobody answers have no outputs, and the error', () => {
    expect(below('by fetch, to nobody')).toMatchObject([
      {
        name: 'GET 127.0.0.1:8080/',
        inputs: { method: 'GET', url: 'http://127.0.0.1:8080/' },
        error: 'ECONNREFUSED: connect ECONNREFUSED 127.0.0.1:8080',
      },
    ]);
    expect(below('by fetch, to nobody')?.[0]).not.toHaveProperty('outputs');
  });
});

describe('queries', () => {
  it('that fail have the code of the database beside the error', () => {
    const failed = { ...select, outputs: { status_code: '42601' }, error: 'syntax error at end of input' };
    expect(roots.filter(({ name }) => name === select.name)).toEqual(
      inOrder([
        { ...failed, inputs: { query: 'SELECT', parameters: [] }, metadata: oldDatabase },
        { ...failed, inputs: { query: 'SELECT' }, metadata: database },
      ]),
    );
  });
});
