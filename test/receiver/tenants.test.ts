import { request } from 'undici';
import { expect, test } from 'vitest';
import { ROUTES } from '#src/receiver/all-routes.ts';
import { sessionIdOf } from '#src/receiver/api/langsmith-projects.ts';
import type { Route } from '#src/receiver/http/route.ts';
import { PERMISSIONS, type Permission } from '#src/receiver/store/key-store.ts';
import { type Service, startService } from './service.ts';
import { BOUNDARY, multipart, part, START } from './wire.ts';

const RUN = '0193b3a0-1111-7000-8000-000000000001';
const OTHER_RUN = '0193b3a0-2222-7000-8000-000000000002';
const SECRET = 'acme-secret';
const JSON_TYPE = { 'content-type': 'application/json' };

interface Sample {
  /** Path with the id of a run of acme. */
  readonly path: string;
  readonly body?: Buffer | string | object;
  readonly type?: string;
  /** Status for keys of another tenant that allow the route. */
  readonly status: number;
  /** Status for keys of another project of acme. @default the status for another tenant */
  readonly projectStatus?: number;
}

const run = (fields: object = {}) => ({ id: RUN, name: 'attack', run_type: 'chain', start_time: START, ...fields });
const post = run({ inputs: {}, session_name: 'lab' });
const span = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), name: 'n', startTimeUnixNano: '1' };
const spans = { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] };
const exception = { key: 'exception.message', value: { stringValue: 'attack' } };
const log = { traceId: span.traceId, spanId: span.spanId, eventName: 'exception', attributes: [exception] };
const logs = { resourceLogs: [{ scopeLogs: [{ logRecords: [log] }] }] };
const exported = { format: 'runspan-trace', version: 1, runs: [post], feedback: [] };

/** Each signal of OTLP has four paths. */
const OTLP = Object.fromEntries(
  Object.entries({ traces: spans, logs, metrics: {} }).flatMap(([signal, body]) =>
    ['/v1/SIGNAL', '/v1/SIGNAL/', '/otel/v1/SIGNAL', '/otel/v1/SIGNAL/']
      .map((path) => path.replace('SIGNAL', signal))
      .map((path) => [`POST ${path}`, { path, body, status: 200 }]),
  ),
);

/** A request for each route. A new route needs a new sample. */
const SAMPLES: Readonly<Record<string, Sample>> = {
  'GET /info': { path: '/info', status: 200 },
  'POST /runs': { path: '/runs', body: post, status: 202, projectStatus: 403 },
  'PATCH /runs/:run_id': { path: `/runs/${RUN}`, body: { session_name: 'lab' }, status: 202, projectStatus: 403 },
  'POST /runs/multipart': {
    path: '/runs/multipart',
    body: multipart(
      part(`post.${RUN}`, {
        ...run({ session_name: 'lab' }),
        trace_id: RUN,
        dotted_order: `20261120T072240123456Z${RUN}`,
      }),
    ),
    type: `multipart/form-data; boundary=${BOUNDARY}`,
    status: 202,
    projectStatus: 403,
  },
  'POST /runs/batch': { path: '/runs/batch', body: { post: [post] }, status: 202, projectStatus: 403 },
  'GET /runs/:run_id': { path: `/runs/${RUN}`, status: 404 },
  'GET /sessions': { path: '/sessions?name=shop', status: 200 },
  'GET /sessions/:id': { path: `/sessions/${sessionIdOf('shop')}`, status: 404 },
  'POST /runs/query': { path: '/runs/query', body: { trace: RUN }, status: 200 },
  'POST /feedback': { path: '/feedback', body: { run_id: RUN, key: 'k', score: 0 }, status: 404, projectStatus: 403 },
  'GET /feedback': { path: `/feedback?run=${RUN}`, status: 200 },
  'GET /feedback/:id': { path: `/feedback/${OTHER_RUN}`, status: 404 },
  'PATCH /feedback/:id': { path: `/feedback/${OTHER_RUN}`, body: { score: 0 }, status: 404 },
  'DELETE /feedback/:id': { path: `/feedback/${OTHER_RUN}`, status: 404 },
  'POST /feedback/tokens': {
    path: '/feedback/tokens',
    body: { run_id: RUN, feedback_key: 'k' },
    status: 200,
    projectStatus: 403,
  },
  'DELETE /feedback/tokens': { path: `/feedback/tokens?run_id=${RUN}`, status: 200, projectStatus: 403 },
  'DELETE /feedback/tokens/:id': { path: '/feedback/tokens/TOKEN', status: 404, projectStatus: 403 },
  'POST /feedback/tokens/:id': { path: `/feedback/tokens/${RUN}`, body: { score: 0 }, status: 404 },
  'GET /feedback/tokens/:id': { path: `/feedback/tokens/${RUN}?score=0`, status: 404 },
  'OPTIONS /feedback/tokens/:id': { path: `/feedback/tokens/${RUN}`, status: 200 },
  ...OTLP,
  'GET /query/projects': { path: '/query/projects', status: 200 },
  'GET /query/traces': { path: `/query/traces?filter=${SECRET}`, status: 200 },
  'GET /query/threads': { path: `/query/threads?filter=${SECRET}`, status: 200 },
  'GET /query/threads/:id': { path: '/query/threads/t', status: 404 },
  'GET /query/runs': { path: '/query/runs?project=shop', status: 200 },
  'GET /query/traces/:id': { path: `/query/traces/${RUN}`, status: 404 },
  'GET /query/traces/:id/export': { path: `/query/traces/${RUN}/export`, status: 404 },
  'GET /query/export': { path: '/query/export', status: 200 },
  'DELETE /query/traces/:id': { path: `/query/traces/${RUN}?confirm=${RUN}`, status: 200 },
  'DELETE /query/threads/:id': { path: '/query/threads/t?confirm=t', status: 200 },
  'DELETE /query/users/:id': { path: '/query/users/ada?confirm=ada', status: 200 },
  'DELETE /query/projects/:id': { path: '/query/projects/shop?confirm=shop', status: 200 },
  'POST /query/import': { path: '/query/import', body: exported, status: 200, projectStatus: 403 },
  'GET /query/runs/:id': { path: `/query/runs/${RUN}`, status: 404 },
  'GET /query/runs/:id/cache': { path: `/query/runs/${RUN}/cache`, status: 404 },
  'GET /query/runs/:id/:field': { path: `/query/runs/${RUN}/inputs`, status: 404 },
  'POST /query/feedback': {
    path: '/query/feedback',
    body: { run_id: RUN, key: 'k', score: 0 },
    status: 404,
    projectStatus: 403,
  },
  'GET /query/statistics': { path: '/query/statistics?group_by=name', status: 200 },
  'GET /query/suggestions': { path: '/query/suggestions?field=meta.SECRET', status: 200 },
  'GET /query/changes': { path: '/query/changes', status: 200 },
  'GET /query/runs/:id/attachments/:name': { path: `/query/runs/${RUN}/attachments/${SECRET}`, status: 404 },
  'GET /healthz': { path: '/healthz', status: 200 },
  'GET /readyz': { path: '/readyz', status: 200 },
  'GET /metrics': { path: '/metrics', status: 200 },
  'GET /': { path: '/', status: 200 },
  'GET /assets/:name': { path: '/assets/none.js', status: 404 },
  'POST /login': { path: '/login', body: { key: 'wrong' }, status: 401 },
  'GET /query/session': { path: '/query/session', status: 200 },
  'POST /logout': { path: '/logout', status: 200 },
};

/** Sends a request and returns its status and body. Ends a stream after its first event. */
async function send(url: string, method: string, { path, body, type }: Sample, key?: string) {
  const headers = { ...(body && (type ? { 'content-type': type } : JSON_TYPE)), ...(key && { 'x-api-key': key }) };
  const content = body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const reply = await request(url + path, { method: method as 'GET', headers, body: content ?? null });
  let text = '';
  for await (const chunk of reply.body) {
    text += chunk;
    if (reply.headers['content-type'] === 'text/event-stream') break;
  }
  return { status: reply.statusCode, text };
}

/** Stores a trace of acme that contains the secret in each field that a response can contain. */
async function fill({ store }: Service): Promise<void> {
  const scope = { tenant: 'acme' };
  const fields = { name: SECRET, run_type: 'llm', start_time: START, session_name: 'shop', inputs: { SECRET } };
  const secrets = {
    outputs: { SECRET },
    tags: [SECRET],
    error: SECRET,
    extra: { metadata: { SECRET, thread_id: 't', user_id: 'ada' } },
  };
  const attachments = [{ name: SECRET, mimeType: 'text/plain', bytes: Buffer.from(SECRET) }];
  await store.apply(scope, [{ kind: 'post', id: RUN, fields: { ...fields, ...secrets }, attachments } as never]);
  const time = { created_at: START, modified_at: START };
  await store.addFeedback(scope, { id: OTHER_RUN, run_id: RUN, key: SECRET, comment: SECRET, ...time });
}

/** Returns the responses that contain all data of acme. */
async function readAll(service: Service, key: string): Promise<string[]> {
  const paths = [
    ...[`/query/traces/${RUN}/export`, '/query/projects', `/query/runs/${RUN}`, '/query/traces', '/query/threads'],
    ...['/query/threads/t', '/query/statistics?group_by=name', '/query/suggestions?field=tag'],
  ];
  const replies = paths.map(async (path) => (await send(service.url, 'GET', { path, status: 200 }, key)).text);
  return Promise.all(replies);
}

const ATTACKERS = [
  { tenant: 'bolt' },
  { tenant: 'bolt', project: 'shop' },
  { tenant: 'acme', project: 'lab' },
] as const;

const isAllowed = (admission: string, permission: Permission | undefined): boolean =>
  admission === 'anyone' ||
  admission === 'open' ||
  permission === admission ||
  (permission === 'admin' && admission !== 'metrics');

/** Routes that store a run come last, because the run of an attacker may have the same id. */
const storesRuns = ({ method, path }: Route): boolean => {
  const { status, body } = sampleOf(method, path);
  return status === 202 || body === spans || body === exported;
};

function sampleOf(method: string, path: string): Sample {
  const sample = SAMPLES[`${method} ${path}`];
  if (sample === undefined) throw new Error(`add a sample for ${method} ${path}`);
  return sample;
}

test.each(ATTACKERS)('with keys of %j, no route returns or changes data outside that scope', async (attacker) => {
  const service = await startService();
  await fill(service);
  const owner = service.addKey({ tenant: 'acme', permission: 'admin' }).text;
  const given = { path: '/feedback/tokens', body: { run_id: RUN, feedback_key: 'k' }, status: 200 };
  const token = JSON.parse((await send(service.url, 'POST', given, owner)).text).url.replace(/.*\//, '');
  const before = await readAll(service, owner);
  for (const text of before) expect(text).toContain(before.indexOf(text) === 1 ? 'shop' : SECRET);
  const credentials = [undefined, ...PERMISSIONS].map((permission) => ({
    permission,
    key: permission && service.addKey({ ...attacker, permission }).text,
  }));
  for (const route of [...ROUTES].sort((a, b) => +storesRuns(a) - +storesRuns(b))) {
    const { method, admission = 'read' } = route;
    for (const { permission, key } of credentials) {
      const sample = sampleOf(method, route.path);
      const path = sample.path.replace('TOKEN', token);
      const { status, text } = await send(service.url, method, { ...sample, path }, key);
      const place = `${method} ${route.path} with ${permission}`;
      const inner = attacker.tenant === 'acme' ? (sample.projectStatus ?? sample.status) : sample.status;
      const expected = isAllowed(admission, permission) ? inner : permission === undefined ? 401 : 403;
      expect([place, status, text.includes(SECRET)]).toEqual([place, expected, false]);
    }
  }
  const after = await readAll(service, owner);
  // Spans of another project of acme are in acme's own lists.
  const compared = attacker.tenant === 'acme' ? [0, 2] : before.keys();
  for (const at of compared) expect(after[at]).toEqual(before[at]);
  const feedback = { path: `/feedback/tokens/${token}?score=1`, status: 200 };
  expect((await send(service.url, 'GET', feedback)).status).toBe(200);
});

test.each(ATTACKERS)(
  'with a key of %j, no query of LangSmith clients returns runs outside that scope',
  async (attacker) => {
    const service = await startService();
    await fill(service);
    const session = [sessionIdOf('shop')];
    const lab = [sessionIdOf('lab')];
    const queries: readonly object[] = [
      { session },
      { id: [RUN] },
      { trace: RUN, select: ['outputs'] },
      { session, is_root: true, order: 'asc' },
      { session, filter: `has(tags, "${SECRET}")` },
      { session: lab, trace_filter: 'eq(is_root, true)' },
      { session: lab, tree_filter: `has(tags, "${SECRET}")` },
      { parent_run: RUN },
      { id: [RUN], filter: `or(has(tags, "${SECRET}"), not(has(tags, "${SECRET}")))` },
    ];
    const runsOf = async (body: object, key: string): Promise<unknown[]> => {
      const { status, text } = await send(service.url, 'POST', { path: '/runs/query', body, status: 200 }, key);
      expect(status).toBe(200);
      return JSON.parse(text).runs;
    };
    const owner = service.addKey({ tenant: 'acme', permission: 'read' }).text;
    const { text: stranger } = service.addKey({ ...attacker, permission: 'read' });
    expect(
      (await Promise.all(queries.slice(0, 5).map((query) => runsOf(query, owner)))).map(({ length }) => length),
    ).toEqual([1, 1, 1, 1, 1]);
    for (const query of queries) expect(await runsOf(query, stranger), JSON.stringify(query)).toEqual([]);
  },
);

test('a route that needs no key, admin, or a key to read is listed here', () => {
  const listed = (permission: string, methods: RegExp) =>
    ROUTES.filter(({ method, admission = 'read' }) => admission === permission && methods.test(method)).map(
      ({ method, path }) => `${method} ${path}`,
    );
  expect(listed('anyone', /./)).toEqual([
    'POST /feedback/tokens/:id',
    'GET /feedback/tokens/:id',
    'OPTIONS /feedback/tokens/:id',
  ]);
  const pages = ['/info', '/healthz', '/readyz', '/', '/assets/:name'].map((path) => `GET ${path}`);
  const open = [...pages, 'POST /login', 'POST /logout'];
  expect(listed('open', /./)).toEqual(open);
  expect(listed('admin', /./)).toEqual([
    'DELETE /feedback/:id',
    'POST /query/import',
    ...['traces', 'threads', 'users', 'projects'].map((data) => `DELETE /query/${data}/:id`),
  ]);
  expect(listed('read', /POST|PUT|PATCH|DELETE/)).toEqual(['POST /runs/query']);
  expect(listed('write', /GET/)).toEqual([]);
});

test('a key of a project stores runs in its project, also those that name another one', async () => {
  const service = await startService();
  const { text } = service.addKey({ tenant: 'acme', project: 'chat', permission: 'admin' });
  for (const place of [{ session_name: 'shop' }, { session_id: OTHER_RUN }, {}]) {
    const body = { ...run({ inputs: {} }), ...place };
    expect((await send(service.url, 'POST', { path: '/runs', body, status: 202 }, text)).status).toBe(202);
  }
  await send(service.url, 'PATCH', { path: `/runs/${RUN}`, body: { session_name: 'shop' }, status: 202 }, text);
  const projects = await service.store.projects({ tenant: 'acme' }, { fromUs: -Infinity, beforeUs: Infinity });
  expect(projects.map(({ name }) => name)).toEqual(['chat']);
});

test('a run that a key of another project has patched first stays in that project', async () => {
  const service = await startService();
  const [own = '', other = ''] = ['chat', 'lab'].map(
    (project) => service.addKey({ tenant: 'acme', project, permission: 'write' }).text,
  );
  const patch = { path: `/runs/${RUN}`, body: { outputs: { secret: SECRET } }, status: 202 };
  const post = { path: '/runs', body: run({ inputs: {} }), status: 202 };
  const sent = [await send(service.url, 'PATCH', patch, other), await send(service.url, 'POST', post, own)];
  expect(sent.map(({ status }) => status)).toEqual([202, 403]);
  expect((await send(service.url, 'POST', post, other)).status).toBe(202);
  const projects = await service.store.projects({ tenant: 'acme' }, { fromUs: -Infinity, beforeUs: Infinity });
  expect(projects.map(({ name }) => name)).toEqual(['lab']);
});
