/**
 * The endpoints and rules of the platform's interface, copied by hand from its description. They are not derived from
 * the clients' schemas, because the demo checks these schemas.
 */
import { CREATE, DEPLOYMENT_RULES, DEPLOYMENTS, PATCH } from './deployment-rules.ts';
import { breaking, each, type Fields, idRules, keyRules, type Rule, UNKNOWN } from './rule.ts';

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

const REVISION = '/v2/deployments/{deployment_id}/revisions/{revision_id}';
const TARBALL = { source_revision_config: { source_tarball_path: 'other.tar.gz' } };
const TAG = { source_revision_config: { repo_ref: 'refs/tags/v1' } };

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
const NO_BOUNDARY = { headers: { 'content-type': 'multipart/form-data' } };
const simple = breaking('POST /runs', SIMPLE_RUN);
export const SIMPLE_END: Fields = { outputs: { answer: 'Tea.' }, ...ENDED };
const update = breaking(`PATCH /runs/${ROOT}`, SIMPLE_END);
const root = breaking(SEND, MAIN, (main) => multipart({ [`post.${ROOT}`]: main }));
const child = breaking(SEND, BELOW, (main) => multipart({ [`post.${CHILD}`]: main }));
const ended = breaking(SEND, { ...MAIN, ...ENDED }, (main) => multipart({ [`patch.${ROOT}`]: main }));

export const RULES: Readonly<Record<Part, readonly Rule[]>> = {
  'control plane': [
    ...keyRules('GET /v2/listeners'),
    ...DEPLOYMENT_RULES,
    ['the cloud has no external_container', CREATE, DEPLOYMENTS.external_container, 'external_container is only', 400],
    ['only the cloud has the others', `self-hosted ${CREATE}`, DEPLOYMENTS.git_host, 'git_host is only', 400],
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
    feedback('correction', 'is an object', ['Tea.']),
    ['correction is no text', `POST ${TOKEN}`, { correction: 'Tea.' }, 'correction'],
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
    ['a batch has a boundary (1)', SEND, BATCH, 'boundary', 400, NO_BOUNDARY],
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
