/**
 * The endpoints and rules of the platform's interface, copied by hand from its description. They are not derived from
 * the clients' schemas, because the demo checks these schemas.
 */
export type Part = 'control plane' | 'agent server' | 'feedback' | 'ingestion' | 'chat';

/** `METHOD /path` of each endpoint. An id in braces is any id. */
export const ENDPOINTS: Readonly<Record<Part, readonly string[]>> = {
  'control plane': [
    'POST /v2/deployments',
    'GET /v2/deployments/{deployment_id}',
    'PATCH /v2/deployments/{deployment_id}',
    'GET /v2/deployments/{deployment_id}/revisions/{revision_id}',
    'POST /v2/deployments/{deployment_id}/revisions/{revision_id}/redeploy',
    // The interface lists this path without a version, although each path has one.
    'POST /v2/deployments/{deployment_id}/upload-url',
    'GET /v1/integrations/git_host/install',
    'GET /v2/listeners',
  ],
  'agent server': [
    'POST /agents/{deployment_id}/assistants/search',
    'POST /agents/{deployment_id}/threads/{thread_id}/runs/stream',
    'GET /agents/{deployment_id}/docs',
  ],
  feedback: ['POST /api/v1/feedback/tokens/{token_id}', 'GET /api/v1/feedback/tokens/{token_id}'],
  ingestion: ['POST /runs', 'PATCH /runs/{run_id}', 'POST /runs/multipart'],
  chat: [
    'POST /api/threads/{thread_id}/commands',
    'POST /api/threads/{thread_id}/stream',
    'GET /api/threads/{thread_id}/state',
    'POST /api/threads/{thread_id}/state',
    'GET /api/threads',
    'DELETE /api/threads/{thread_id}',
    'POST /api/threads/{thread_id}/history',
  ],
};

/** A request that breaks a rule of the interface, and how the platform refuses it. */
export type Rule = readonly [
  sentence: string,
  /** `METHOD /path`. An id in braces is that of a resource of the demo. */
  request: string,
  /** A value to send as JSON, or the text of a multipart body. */
  body: unknown,
  /** The field in `loc`, or a text in `detail`. */
  names: string,
  /** @default 422 */
  status?: number,
  headers?: Readonly<Record<string, string>>,
];

type Fields = Readonly<Record<string, unknown>>;

export const TEAM_KEY = 'key-of-two-workspaces';
const UNKNOWN = '01890000-0000-7000-8000-000000000000';

const each = (names: string, toRule: (name: string) => Rule): Rule[] => names.split(' ').map(toRule);

/** Returns a function for rules that a valid request breaks after one field has another value, or none. */
function breaking(request: string, valid: Fields, encoded = (body: Fields): unknown => body) {
  return (path: string, sentence: string, value?: unknown, status = 422): Rule => {
    const name = path.split('.').at(-1) ?? '';
    return [`${path} ${sentence}`, request, encoded(withField(valid, path, value)), name, status];
  };
}

/** Sets a field at a path such as `secrets.0.name`. */
function withField(fields: Fields, path: string, value: unknown): Fields {
  const [name = '', ...rest] = path.split('.');
  const copy: Record<string, unknown> = Array.isArray(fields) ? Object.assign([], fields) : { ...fields };
  copy[name] = rest.length === 0 ? value : withField((fields[name] ?? {}) as Fields, rest.join('.'), value);
  return copy;
}

function keyRules(request: string, body?: unknown): Rule[] {
  return [
    ['a request has a key', request, body, 'key', 401, { 'x-api-key': '' }],
    ['the key is valid', request, body, 'key', 401, { 'x-api-key': 'wrong' }],
    ['a key of several workspaces names one', request, body, 'workspace', 403, { 'x-api-key': TEAM_KEY }],
  ];
}

function idRules(id: string, request: string, body?: unknown): Rule[] {
  return [
    [`${id} is a UUID`, request.replace(`{${id}}`, 'mine'), body, id],
    [`the ${id} exists`, request.replace(`{${id}}`, UNKNOWN), body, UNKNOWN, 404],
  ];
}

const CREATE = 'POST /v2/deployments';
const PATCH = 'PATCH /v2/deployments/{deployment_id}';
const REVISION = '/v2/deployments/{deployment_id}/revisions/{revision_id}';
const GRAPH = 'source_revision_config.graph_config_path';
const SHARED: Fields = { name: 'shop', source_config: {}, secrets: [{ name: 'KEY', value: 'value' }] };
const REFERENCES = [{ name: 'OTHER', secret_name: 'shop', secret_key: 'key' }];

/** A valid request to create a deployment of each source. */
export const DEPLOYMENTS: Readonly<Record<string, Fields>> = {
  git_host: { ...SHARED, source: 'git_host', source_revision_config: { graph_config_path: 'graph.json' } },
  internal_source: {
    ...SHARED,
    source: 'internal_source',
    source_revision_config: { graph_config_path: 'graph.json' },
  },
  internal_container: { ...SHARED, source: 'internal_container', source_revision_config: {} },
  internal_template: { ...SHARED, source: 'internal_template', source_revision_config: {} },
  external_container: {
    ...{ ...SHARED, source: 'external_container', source_revision_config: {} },
    secret_references: REFERENCES,
  },
};
const { git_host = {}, internal_source = {}, external_container = {} } = DEPLOYMENTS;
const git = breaking(CREATE, git_host);
const uploaded = breaking(CREATE, internal_source);
const external = breaking(CREATE, external_container);
const patch = breaking(PATCH, {});
const TAG = { source_revision_config: { repo_ref: 'refs/tags/v1' } };
const TARBALL = { source_revision_config: { source_tarball_path: 'other.tar.gz' } };
const spec = (field: string, sentence: string, value: unknown): Rule =>
  external(`source_config.resource_spec.${field}`, sentence, value);

const SEARCH = 'POST /agents/{deployment_id}/assistants/search';
const STREAM = 'POST /agents/{deployment_id}/threads/{thread_id}/runs/stream';
const RUN = { assistant_id: 'agent', input: { messages: [] }, stream_mode: 'updates' };
const search = breaking(SEARCH, {});
const stream = breaking(STREAM, RUN);

const TOKEN = '/api/v1/feedback/tokens/{token_id}';
const feedback = breaking(`POST ${TOKEN}`, {});

const BOUNDARY = 'boundary-of-the-demo';
export const MULTIPART: string = `multipart/form-data; boundary=${BOUNDARY}`;

/** Returns a multipart body with a JSON part for each field. */
function multipart(parts: Fields): string {
  const texts = Object.entries(parts).map(([name, value]) => {
    const json = JSON.stringify(value);
    const head = `Content-Disposition: form-data; name="${name}"\r\nContent-Type: application/json`;
    return `--${BOUNDARY}\r\n${head}\r\nContent-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}\r\n`;
  });
  return `${texts.join('')}--${BOUNDARY}--\r\n`;
}

const ROOT = '019acd00-0000-7000-8000-000000000001';
const CHILD = '019acd00-0000-7000-8000-000000000002';
const STAMP = '20261128T090000000000Z';
const ENDED = { end_time: '2026-11-28T09:00:01.000000Z' };
const RECORD = { id: ROOT, name: 'wire', run_type: 'llm', session_name: 'wire', start_time: '2026-11-28T09:00:00Z' };
const MAIN: Fields = { ...RECORD, trace_id: ROOT, dotted_order: STAMP + ROOT };
const BELOW = { ...MAIN, id: CHILD, parent_run_id: ROOT, dotted_order: `${STAMP}${ROOT}.${STAMP}${CHILD}` };
const NAME = `post.${ROOT}.inputs`;
const INPUTS = { [NAME]: { question: 'Tea?' } };
const OUTPUTS = { [`patch.${ROOT}.outputs`]: { answer: 'Tea.' } };

/** Valid requests, from which the mistakes differ. */
export const SIMPLE_RUN: Fields = { ...RECORD, inputs: {} };
export const BATCH: string = multipart({
  ...{ [`post.${ROOT}`]: MAIN, ...INPUTS, [`post.${CHILD}`]: BELOW },
  ...{ [`patch.${ROOT}`]: { ...MAIN, ...ENDED }, ...OUTPUTS },
});
const SEND = 'POST /runs/multipart';
const simple = breaking('POST /runs', SIMPLE_RUN);
export const SIMPLE_END: Fields = { outputs: { answer: 'Tea.' }, ...ENDED };
const update = breaking(`PATCH /runs/${ROOT}`, SIMPLE_END);
const root = breaking(SEND, MAIN, (main) => multipart({ [`post.${ROOT}`]: main }));
const child = breaking(SEND, BELOW, (main) => multipart({ [`post.${CHILD}`]: main }));
const ended = breaking(SEND, { ...MAIN, ...ENDED }, (main) => multipart({ [`patch.${ROOT}`]: main }));

export const RULES: Readonly<Record<Part, readonly Rule[]>> = {
  'control plane': [
    ...keyRules('GET /v2/listeners'),
    uploaded('source_config.integration_id', 'is only for git_host', UNKNOWN, 400),
    uploaded('source_config.repo_url', 'is only for git_host', 'https://git.example/shop', 400),
    uploaded('source_config.deployment_type', 'is only for git_host', 'dev', 400),
    uploaded('source_config.build_on_push', 'is only for git_host', true, 400),
    uploaded('source_revision_config.repo_ref', 'is only for git_host', 'main', 400),
    git('source_config.custom_url', 'is read-only for git_host', 'https://shop.example', 400),
    git('source_config.resource_spec', 'is only for external_container', { cpu: 1 }, 400),
    git('source_config.listener_id', 'is only for external_container', UNKNOWN, 400),
    git('source_config.listener_config', 'is only for external_container', { k8s_namespace: 'shop' }, 400),
    git('secret_references', 'is only for external_container', REFERENCES, 400),
    git('source_revision_config.image_uri', 'is not for git_host', 'registry.example/shop:1', 400),
    git('source_revision_config.source_tarball_path', 'is only for internal_source', 'shop.tar.gz', 400),
    ...each('external_container internal_container internal_template', (source) =>
      breaking(CREATE, DEPLOYMENTS[source] ?? {})(GRAPH, `is null for ${source}`, 'graph.json', 400),
    ),
    git(GRAPH, 'is required for git_host'),
    uploaded(GRAPH, 'is required for internal_source'),
    ['the cloud has no external_container', CREATE, external_container, 'external_container is only for', 400],
    ['only the cloud has the others', `self-hosted ${CREATE}`, git_host, 'git_host is only for', 400],
    ...each('name source source_config source_revision_config', (name) => git(name, 'is required')),
    ...each('name value', (name) => git(`secrets.0.${name}`, 'is required')),
    ...each('name secret_name secret_key', (name) => external(`secret_references.0.${name}`, 'is required')),
    git('name', 'is a string', 1),
    git('source', 'is one of five', 'ftp'),
    git('deployment_tier', 'is one of six', 'HUGE'),
    git('source_config.deployment_type', 'is one of five', 'huge'),
    git('source_config.integration_id', 'is a UUID', 'mine'),
    external('source_config.listener_id', 'is a UUID', 'mine'),
    git('source_config.build_on_push', 'is a boolean', 'yes'),
    git('source_config.install_command', 'is a string', 1),
    git('source_config.build_command', 'is a string', 1),
    ...each('cpu queue_cpu redis_cpu core_cpu', (field) => spec(field, 'is at least 0.1', 0.05)),
    ...each('cpu queue_cpu redis_cpu core_cpu', (field) => spec(`${field}_limit`, 'is at least 0.1', 0.05)),
    ...each('cpu queue_cpu redis_cpu', (field) => spec(field, 'is at most 8', 8.1)),
    ...each('cpu queue_cpu redis_cpu', (field) => spec(`${field}_limit`, 'is at most 16', 16.1)),
    ...each('min_scale max_scale queue_min_scale queue_max_scale', (field) => spec(field, 'is an integer', 1.5)),
    ...each('memory queue_memory redis_memory core_memory db_memory', (field) =>
      spec(`${field}_mb`, 'is an integer', 1.5),
    ),
    ...each('memory queue_memory redis_memory core_memory db_memory', (field) =>
      spec(`${field}_limit_mb`, 'is an integer', 1.5),
    ),
    ...each('db_storage_gi db_max_connections', (field) => spec(field, 'is an integer', 1.5)),
    ...each('labels annotations', (field) => spec(field, 'has string values', { team: 1 })),
    ...each('id tenant_id latest_revision_id active_revision_id', (name) => git(name, 'is read-only', UNKNOWN)),
    ...each('created_at updated_at', (name) => git(name, 'is read-only', RECORD.start_time)),
    git('status', 'is read-only', 'READY'),
    git('is_managed_deep_agent', 'is read-only', true),
    git('source_revision_config.repo_commit_sha', 'is read-only', 'f00d'),
    patch('name', 'is immutable', 'other'),
    patch('source', 'is immutable', 'git_host'),
    ...each('integration_id listener_id', (name) => patch(`source_config.${name}`, 'is immutable', UNKNOWN)),
    patch('source_config.repo_url', 'is immutable', 'https://git.example/other'),
    patch('source_config.deployment_type', 'is immutable', 'prod'),
    patch('source_config.listener_config.k8s_namespace', 'is immutable', 'other'),
    ['a tag is not built on push', PATCH, { source_config: { build_on_push: true }, ...TAG }, 'build_on_push'],
    ['a deployment that is built on push has no tag', PATCH, TAG, 'build_on_push'],
    ['source_tarball_path was issued', 'PATCH /v2/deployments/{uploaded_id}', TARBALL, 'source_tarball_path', 400],
    ...idRules('deployment_id', 'GET /v2/deployments/{deployment_id}'),
    ...idRules('deployment_id', PATCH, {}),
    ...idRules('deployment_id', 'POST /v2/deployments/{deployment_id}/upload-url'),
    ...idRules('deployment_id', `GET ${REVISION}`),
    ...idRules('revision_id', `GET ${REVISION}`),
    ...idRules('deployment_id', `POST ${REVISION}/redeploy`),
    ...idRules('revision_id', `POST ${REVISION}/redeploy`),
  ],
  'agent server': [
    ...keyRules(SEARCH, {}),
    search('metadata', 'is an object', 'mine'),
    search('limit', 'is an integer', 1.5),
    search('offset', 'is an integer', 1.5),
    stream('assistant_id', 'is required'),
    stream('feedback_keys', 'is a list', 'liked'),
    stream('stream_mode', 'is a string', 1),
    ['the assistant exists', STREAM, { ...RUN, assistant_id: UNKNOWN }, UNKNOWN, 404],
    ['the thread exists', STREAM.replace('{thread_id}', UNKNOWN), RUN, UNKNOWN, 404],
  ],
  feedback: [
    ['the token exists', 'POST /api/v1/feedback/tokens/mine', { score: 1 }, 'token', 404],
    feedback('score', 'is a number', 'good'),
    feedback('comment', 'is a string', 1),
    feedback('correction', 'is an object', 'Tea.'),
    feedback('metadata', 'is an object', 'page 1'),
    ['the token exists', 'GET /api/v1/feedback/tokens/mine?score=1', undefined, 'token', 404],
    ['score is a number', `GET ${TOKEN}?score=good`, undefined, 'score'],
    ['correction is JSON text', `GET ${TOKEN}?correction=Tea.`, undefined, 'correction'],
    ['metadata is only for POST', `GET ${TOKEN}?metadata=%7B%7D`, undefined, 'metadata'],
  ],
  ingestion: [
    ...keyRules('POST /runs', SIMPLE_RUN),
    ...each('id name run_type inputs start_time session_name', (name) => simple(name, 'is required')),
    simple('session_id', 'is not beside session_name', UNKNOWN),
    ...each('id parent_run_id', (name) => simple(name, 'is a UUID', 'mine')),
    simple('start_time', 'is a time', 'today'),
    simple('outputs', 'is sent on update', {}),
    update('end_time', 'is required'),
    update('outputs', 'is an object', 'Tea.'),
    ['run_id is a UUID', 'PATCH /runs/mine', SIMPLE_END, 'run_id'],
    ['a batch has a boundary (1)', SEND, BATCH, 'boundary', 400, { 'content-type': 'multipart/form-data' }],
    ...keyRules(SEND, BATCH),
    ['an operation is post or patch (2)', SEND, BATCH.replace('"post.', '"put.'), 'part name', 400],
    ['a part names a run (3)', SEND, BATCH.replace(`"post.${ROOT}"`, '"post.mine"'), 'part name', 400],
    ['a run has a main part (3)', SEND, multipart(INPUTS), 'main part', 400],
    ...each('inputs outputs events', (name) => root(name, 'is another part (3)', {})),
    ...each('id trace_id name start_time run_type dotted_order', (name) => root(name, 'is required (3)')),
    ended('end_time', 'is required (3)'),
    child('parent_run_id', 'is required (3)'),
    ['a part is JSON (4)', SEND, BATCH.replace('application/json', 'text/plain'), 'application/json', 400],
    ['a part has a length (4)', SEND, BATCH.replace(/Content-Length: \d+\r\n/, ''), 'Content-Length', 400],
    ['a part is a known field (4)', SEND, BATCH.replace('.inputs"', '.tags"'), 'part name', 400],
    ['a part is not empty (4)', SEND, multipart({ [`post.${ROOT}`]: MAIN, [NAME]: {} }), NAME],
    root('trace_id', 'is the id of the root (5)', CHILD),
    child('trace_id', 'is the id of the root (5)', CHILD),
    root('dotted_order', 'has microseconds (6)', `20261128T090000Z${ROOT}`),
    root('dotted_order', 'ends with the id (6)', STAMP + CHILD),
    child('parent_run_id', 'is in dotted_order (6)', UNKNOWN),
  ],
  chat: [['a thread is bootstrapped first', `GET /api/threads/${UNKNOWN}/state`, undefined, UNKNOWN, 404]],
};
