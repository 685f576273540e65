// Recorded model calls are sent again, with the keys of this process, only where they belong.
import { describe, expect, it, vi } from 'vitest';
import { keyHeader } from '#src/cli/rerun/service-key.ts';
import { DEFAULT_SCOPE } from '#src/receiver.ts';
import { idOf, run } from '../browser/runs.ts';
import { type Seen, serve } from '../http/server.ts';
import { call, sendJson } from '../receiver/wire.ts';
import { runMain } from '../support/command.ts';
import { testFolder } from '../support/test-folder.ts';
import { CALL, REQUEST, startRecorded } from './recorded-call.ts';

const sent = ({ url, headers, body }: Seen) => [url, headers.authorization, JSON.parse(body)];

describe('a model call that is run again', () => {
  it('is the recorded body with the changes, and its answers are runs of a new trace of the same project', async () => {
    const { service, rerun, receiver, store } = await startRecorded();
    const before = await receiver.runs();
    const set = { temperature: 0, 'messages.0.content': 'Is it snowing?', '__proto__.polluted': 1 };
    const events = (await rerun({ set, samples: 2 })) as { trace_id?: string; run_id?: string; text?: string }[];
    const messages = [{ role: 'user', content: 'Is it snowing?' }];
    const body = JSON.parse(`{"model":"small","temperature":0,"__proto__":{"polluted":1}}`);
    const expected = ['/v1/chat/completions', 'Bearer sk-of-the-environment', { ...body, messages }];
    expect(service.seen.map(sent)).toEqual([expected, expected]);
    expect({}).not.toHaveProperty('polluted');
    expect(events.filter(({ text }) => text !== undefined)).toContainEqual({ sample: 1, text: 'Yes, today.' });
    const ended = events.filter(({ run_id: id }) => id !== undefined);
    expect(ended).toHaveLength(2);
    const [root, ...answers] = await receiver.trace(ended[0]?.trace_id ?? '');
    expect(root).toMatchObject({ name: `rerun of ${CALL}`, session_name: 'weather', end_time: expect.any(String) });
    expect(answers.map(({ id }) => id).sort()).toEqual(ended.map(({ run_id: id }) => id).sort());
    const usage_metadata = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };
    const answer = { name: CALL, inputs: { messages }, outputs: { usage_metadata }, parent_run_id: root?.id };
    for (const one of answers) expect(one).toMatchObject({ ...answer, extra: { metadata: { rerun_of: idOf(1) } } });
    const { body: found } = await call(`${receiver.url}/query/runs?filter=meta.rerun_of:${idOf(1)}`, 'GET');
    expect(found).toMatchObject({ items: [{ run_type: 'llm' }, { run_type: 'llm' }] });
    const all = await receiver.runs();
    expect(all.filter(({ trace_id: id }) => id !== root?.trace_id)).toEqual(before);
    const exchanges = await Promise.all(answers.map(({ id }) => store.attachment(DEFAULT_SCOPE, id, 'exchange')));
    const stored = [JSON.stringify(all), ...exchanges.map((one) => new TextDecoder().decode(one?.bytes))].join();
    expect(stored).toContain('"url"');
    expect(stored).not.toContain('sk-of');
  });

  it('can be run again as a rerun', async () => {
    const { service, rerun } = await startRecorded();
    const events = (await rerun({ set: { model: 'large' } })) as { run_id?: string }[];
    await rerun({}, events.at(-1)?.run_id);
    const [first, second] = service.seen.map(sent);
    expect(second).toEqual(first);
    expect(JSON.parse(service.seen[0]?.body ?? '')).toEqual({ ...REQUEST, model: 'large' });
  });

  it.each([
    [
      'gemini.generateContent',
      '/v1beta/models/old:streamGenerateContent?alt=sse&key=[Redacted]',
      { model: 'new/x', stream: true, contents: [{ parts: [{ text: 'a' }] }] },
      '/v1beta/models/new%2Fx:streamGenerateContent?alt=sse',
      { contents: [{ parts: [{ text: 'a' }] }] },
    ],
    [
      CALL,
      '//deploy/deployments/deploy/chat/completions?api-version=1',
      { model: 'new', messages: [] },
      '//deploy/deployments/new/chat/completions?api-version=1',
      { messages: [] },
    ],
  ])('%s at %s has its model in the path', async (name, path, request, expectedPath, body) => {
    const { service, rerun } = await startRecorded({ call: name, path, request });
    await rerun({});
    expect(service.seen.map(({ url, body: text }) => [url, JSON.parse(text)])).toEqual([[expectedPath, body]]);
  });

  it('reports what the service says, follows no redirect, and does not need the answer to be read', async () => {
    const { service, rerun, receiver } = await startRecorded();
    for (const [model, status] of Object.entries({ bad: 404, moved: 307 })) {
      const events = await rerun({ set: { model } });
      expect(events).toEqual([expect.objectContaining({ error: `the service responded with status ${status}` })]);
    }
    expect((await receiver.runs()).flatMap(({ error = [] }) => error)).toEqual(['HTTP 404: no such model', 'HTTP 307']);
    expect(service.seen).toHaveLength(2);
  });

  it('reports an answer that cannot be stored, and goes on with the other samples', async () => {
    const { rerun, store, receiver } = await startRecorded();
    vi.spyOn(store, 'apply').mockRejectedValueOnce(new Error('disk full'));
    const events = (await rerun({ samples: 2 })) as { run_id?: string; error?: string }[];
    const ended = events.filter(({ run_id: id }) => id !== undefined).map(({ error = '' }) => error);
    expect(ended.sort()).toEqual(['', 'the answer could not be stored: disk full']);
    // The recorded run, and the runs of the rerun.
    expect((await receiver.runs()).filter(({ end_time: end }) => end !== undefined)).toHaveLength(4);
  });

  it.each([
    ['samples', { samples: 11 }, 422, 'Expected `samples` to be 1 to 10'],
    ['a list', { request: [] }, 422, 'Expected `request` to be an object'],
    ['an index', { set: { 'messages.2.x': 1 } }, 422, 'Expected 2 in `messages.2.x` to be an index of at most 1'],
    ['a length', { set: { 'messages.length': 9 } }, 422, expect.stringContaining('an index of at most 1')],
    ['a body', [], 400, 'The body is not a JSON object'],
  ])('with %s that is invalid, nothing is sent', async (_, body, status, detail) => {
    const { service, rerun } = await startRecorded();
    expect(await rerun(body)).toEqual([status, detail]);
    expect(service.seen).toEqual([]);
  });

  it('needs a recorded request', async () => {
    const { rerun, store } = await startRecorded();
    const unrecorded = `The request of the run ${idOf(2)} is not recorded; record the program with runspan dev`;
    expect(await rerun({}, idOf(2))).toEqual([409, unrecorded]);
    const damaged = [{ name: 'exchange', mimeType: 'application/json', bytes: new Uint8Array([0x7b, 0xff]) }];
    await store.apply(DEFAULT_SCOPE, [run(2, { attachments: damaged })]);
    expect(await rerun({}, idOf(2))).toEqual([409, unrecorded]);
    expect(await rerun({}, idOf(3))).toEqual([404, `The run ${idOf(3)} is not stored`]);
  });

  it('is not sent to the address that an imported trace names, and gets no key there [security 8]', async () => {
    const { url, receiver, rerun } = await startRecorded();
    const evil = await serve();
    const { body } = await call(`${url}/query/traces/${idOf(1)}/export`, 'GET');
    const imported = body as { runs: [Record<string, string> & { attachments: [{ data: string }] }] };
    const exchange = { call: CALL, url: `${evil.url}/v1/chat/completions`, request: REQUEST };
    const [run] = imported.runs;
    run.attachments[0].data = Buffer.from(JSON.stringify(exchange)).toString('base64');
    const order = `${run.dotted_order}`.replace(/Z.*/, `Z${idOf(7)}`);
    Object.assign(run, { id: idOf(7), trace_id: idOf(7), dotted_order: order });
    expect((await sendJson(receiver, 'POST', '/query/import', imported)).status).toBe(200);
    expect(await rerun({}, idOf(7))).toEqual([409, expect.stringMatching(/^nothing is sent to .* if you trust it$/)]);
    expect(evil.seen).toEqual([]);
  });
});

describe('the key of a call goes', () => {
  const OPENAI = 'https://api.openai.com';
  const OWN = 'https://gateway.example.com';
  const bearer = { authorization: 'Bearer k' };
  const key = { OPENAI_API_KEY: 'k' };
  const own = { ...key, OPENAI_BASE_URL: `${OWN}/v1` };
  const azure = { AZURE_OPENAI_ENDPOINT: 'https://a.openai.azure.com', AZURE_OPENAI_API_KEY: 'k' };
  const two = { X_BASE_URL: OWN, X_API_KEY: 'x', ...own };
  const missing = `the key for ${OPENAI} is missing: set OPENAI_API_KEY`;
  type Given = { call?: string; variables?: Record<string, string>; file?: string; allowed?: string[] };

  it.each<[behaviour: string, origin: string, Given, expected: object | string]>([
    ['to its service', OPENAI, {}, bearer],
    ['to its service, from .env', OPENAI, { variables: {}, file: 'OPENAI_API_KEY=k' }, bearer],
    [
      'in the header of its format',
      'https://api.anthropic.com',
      { call: 'anthropic.messages', variables: { ANTHROPIC_API_KEY: 'k' } },
      { 'x-api-key': 'k' },
    ],
    [
      'in the header of its format, Gemini',
      'https://generativelanguage.googleapis.com',
      { call: 'gemini.generateContent', variables: { GOOGLE_API_KEY: 'k' } },
      { 'x-goog-api-key': 'k' },
    ],
    [
      'by the origin, not the format',
      'https://api.groq.com',
      { variables: { GROQ_API_KEY: 'k', OPENAI_API_KEY: 'o' } },
      bearer,
    ],
    ['to Azure, in its header', azure.AZURE_OPENAI_ENDPOINT, { variables: azure }, { 'api-key': 'k' }],
    ['to the base URL', OWN, { variables: own }, bearer],
    ['to a base URL of two keys, by the format', OWN, { variables: two }, bearer],
    ['to the base URL, from .env', OWN, { variables: { MY_BASE_URL: OWN }, file: 'MY_API_KEY=k' }, bearer],
    ['to an allowed origin', OWN, { allowed: [OWN] }, bearer],
    ['nowhere from the environment if .env names the base URL', OWN, { file: `OPENAI_BASE_URL=${OWN}` }, {}],
    ['not to its service if the base URL is another', OPENAI, { variables: own }, missing],
    ['nowhere if there is none', OPENAI, { variables: { OPENAI_API_KEY: ' ' } }, missing],
    ['nowhere if it is no key', OPENAI, { variables: { OPENAI_API_KEY: 'k\nk' } }, 'the key in OPENAI_API_KEY is not'],
    [
      'not over plain HTTP',
      'http://gateway.example.com',
      { variables: { ...key, OPENAI_BASE_URL: 'http://gateway.example.com' } },
      'the key is not sent to http://gateway.example.com over plain HTTP',
    ],
    ['nowhere for a model on this machine', 'http://localhost:11434', { call: 'ollama.chat' }, {}],
    ...[
      ['not to another origin', OWN],
      ['not to another port', 'https://api.openai.com:8443'],
      ['not to another scheme', 'http://api.openai.com'],
      ['not to a host that ends like the service', 'https://evil-api.openai.com'],
      ['not to a name of a prototype', 'https://constructor'],
    ].map(([behaviour = '', origin = '']): [string, string, Given, string] => {
      return [behaviour, origin, {}, `nothing is sent to ${origin}, which is no known service`];
    }),
  ])('%s [security 8]', (_, origin, { call: name = CALL, variables = key, file = '', allowed = [] }, expected) => {
    for (const variable of Object.keys(process.env))
      if (/_(API_KEY|BASE_URL|ENDPOINT)$/.test(variable)) vi.stubEnv(variable, undefined);
    for (const [variable, value] of Object.entries(variables)) vi.stubEnv(variable, value);
    const folder = testFolder({ '.env': file });
    const header = () => keyHeader(new URL(`${origin}/v1/chat/completions`), name, { folder, allowed });
    if (typeof expected === 'string') expect(header).toThrow(expected);
    else expect(header()).toEqual(expected);
  });
});

it('runspan rerun prints the answers', async () => {
  const { url, service } = await startRecorded();
  const variables = { OPENAI_BASE_URL: `${service.url}/v1`, OPENAI_API_KEY: 'k' };
  const rerun = async (...args: string[]) => {
    const { stdout, ...ended } = await runMain(['rerun', ...args, '--url', url], variables);
    return { ...ended, stdout: stdout.replace(/\b[\d.]+ ms\b/g, '_ ms').replace(/[\da-f]{8}-[\da-f-]{27}/g, '<id>') };
  };
  const shown = 'large · _ ms · 5 tokens (3 in, 2 out)\nYes, today.\n';
  const answers = [1, 2].map((sample) => `sample ${sample} · ${shown}`).join('');
  const stdout = `${answers}${url}/?trace=<id>\nKeep it: npx runspan set add <name> run:<id> --runs\n`;
  const given = [idOf(1), '--model', 'large', '--set', 'temperature=0', '--set', 'user=ada', '--samples', '2'];
  expect(await rerun(...given)).toEqual({ code: 0, stdout, stderr: '' });
  expect(JSON.parse(service.seen[0]?.body ?? '')).toEqual({ ...REQUEST, model: 'large', temperature: 0, user: 'ada' });
  const failed = await rerun(idOf(1), '--model', 'bad');
  const refused = `sample 1 · bad · _ ms · HTTP 404: no such model\n${url}/?trace=<id>\n`;
  expect([failed.code, failed.stdout]).toEqual([1, refused]);
  const { stdout: calls } = await rerun(idOf(1), '--model', 'looks');
  expect(calls.split('\n')[1]).toBe('→ look("sky")');
  const json = await rerun(idOf(1), '--json');
  expect(JSON.parse(json.stdout)).toEqual({ sample: 0, text: 'Yes, today.', run_id: '<id>', trace_id: '<id>' });
  service.server.close();
  service.server.closeAllConnections();
  const unreachable = /^sample 1 · small · _ ms · TypeError: fetch failed ← Error: connect ECONNREFUSED /;
  expect(await rerun(idOf(1))).toMatchObject({ code: 1, stdout: expect.stringMatching(unreachable) });
  expect(await rerun(idOf(2))).toMatchObject({ code: 1, stderr: expect.stringContaining('is not recorded') });
  expect(await rerun(idOf(1), '--set', 'x')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('expected --set <path>=<value>'),
  });
});
