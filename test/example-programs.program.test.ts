// The examples of web frameworks, streams, several processes, and failing services and processes.
import { describe, expect, it } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import type { RunRecord } from '#src/run/record.ts';
import { createPlatform } from '#src/testing.ts';
import { runNode } from './support/program.ts';

async function runExample(path: string, env: Record<string, string> = {}) {
  const receiver = await createReceiver();
  const ended = await runNode([`examples/${path}`], { RUNSPAN_ENDPOINT: receiver.url, ...env });
  const runs = await receiver.runs();
  await receiver.close();
  return { ...ended, runs };
}

const below = (runs: readonly RunRecord[], { id }: RunRecord) =>
  runs.filter(({ parent_run_id }) => parent_run_id === id);

describe.concurrent('the example server', () => {
  it('records each of four concurrent requests as a separate trace, and the aborted one as cancelled', async () => {
    const { code, stdout, stderr, runs } = await runExample('server/main.js');
    expect([code, stderr]).toEqual([0, '']);
    const read = ['tea', 'coffee', 'water'].map((question) => `I read a page about ${question} to the end.\n`);
    expect(stdout).toBe(`${read.join('')}I gave up on milk.\n`);
    const roots = runs.filter(({ parent_run_id }) => parent_run_id === undefined);
    expect(roots.map(({ inputs }) => inputs.question).sort()).toEqual(['coffee', 'milk', 'tea', 'water']);
    for (const root of roots) {
      const { question } = root.inputs;
      expect(below(runs, root).map(({ name, inputs }) => [name, inputs])).toEqual([['retrieve', { input: question }]]);
      const isGivenUp = question === 'milk';
      expect(root.extra?.runspan_end_reason).toBe(isGivenUp ? 'cancelled' : undefined);
      if (!isGivenUp) expect(String(root.outputs?.text).trim()).toBe(`I read a page about ${question} to the end.`);
    }
    expect(runs).toHaveLength(8);
  });

  it('prints the same without tracing', async () => {
    const { code, stdout, stderr } = await runNode(['examples/server/main.js']);
    expect([code, stderr, stdout.split('\n').length]).toEqual([0, '', 5]);
  });
});

describe.concurrent('the example deploy-and-rate', () => {
  it('deploys, asks and rates on a platform in memory, where the agent continues the trace of the call', async () => {
    const { code, stdout, stderr } = await runNode(['examples/deploy-and-rate/main.js']);
    expect([code, stderr]).toEqual([0, '']);
    const tree = 'answer (chain)\n  runs.stream (chain)\n    agent (chain)\n';
    expect(stdout.replace(/^([A-Z_]+\n)+(?=DEPLOYED)/, '')).toBe(`DEPLOYED\nWhere is my parcel?\n${tree}`);
  });

  it('uses the services of its variables, and the feedback is seen on the trace', async () => {
    await using platform = await createPlatform({ hosting: 'self-hosted' });
    const { url, agentUrl, apiKey } = platform;
    platform.setStatuses(['DEPLOYED']);
    const services = { CONTROL_PLANE_URL: url, CONTROL_PLANE_KEY: apiKey, AGENT_URL: agentUrl, AGENT_KEY: apiKey };
    const env = { ...services, RUNSPAN_ENDPOINT: url, RUNSPAN_API_KEY: apiKey };
    const { code, stdout, stderr } = await runNode(['examples/deploy-and-rate/main.js'], env);
    expect([code, stderr]).toEqual([0, '']);
    const [call, , agent] = await platform.runs();
    const addresses = [`the call:  ${url}/?trace=${call?.id}`, `the agent: ${url}/?trace=${agent?.id}`];
    expect(stdout).toBe(['DEPLOYED', 'Where is my parcel?', ...addresses, ''].join('\n'));
    const rated = await fetch(`${url}/query/runs/${agent?.id}`, { headers: { 'x-api-key': apiKey } });
    expect(await rated.json()).toMatchObject({ feedback: [{ key: 'helpful', score: 1, comment: 'That helped.' }] });
  });
});

it.concurrent('the example distributed is one trace over two processes, with tags and metadata of the first in the second', async () => {
  const { code, stdout, stderr, runs } = await runExample('distributed/main.js');
  expect([code, stdout, stderr]).toEqual([0, 'I read the page on tea and another one.\n', '']);
  const [answer, search] = runs;
  expect([answer?.name, search?.name, runs.length]).toEqual(['answer', 'search', 2]);
  expect(search).toMatchObject({ parent_run_id: answer?.id, trace_id: answer?.id, tags: ['shop'] });
  expect(search?.extra?.metadata).toEqual({ user: 'ada' });
});

it.concurrent('the example otel-distributed is one trace of spans and traced functions over two processes', async () => {
  const { code, stdout, stderr, runs } = await runExample('otel-distributed/main.js');
  expect([code, stdout, stderr]).toEqual([0, 'I read the page on tea and another one.\n', '']);
  const path = ({ dotted_order }: RunRecord) =>
    dotted_order.split('.').map((segment) => runs.find(({ id }) => segment.endsWith(id))?.name);
  expect(runs.map(path).sort((a, b) => a.length - b.length)).toEqual([
    ['answer'],
    ['answer', 'GET'],
    ['answer', 'GET', 'GET /'],
    ['answer', 'GET', 'GET /', 'search'],
  ]);
});

it.concurrent('the example streaming records each stream with the chunks that were read, its first word as an event, and its end', async () => {
  const { code, stderr, runs } = await runExample('streaming/main.js');
  expect([code, stderr]).toEqual([0, '']);
  const whole = { text: 'A span is opened when work begins.' };
  expect(runs.map(({ name, outputs }) => [name, outputs])).toEqual([
    ['generated', whole],
    ['web stream', whole],
    ['Node stream', whole],
    ['promised', whole],
    ['inner', whole],
    ['left early', { text: 'A' }],
  ]);
  expect(runs.map(({ extra }) => extra?.runspan_end_reason ?? 'ended')).toEqual([
    ...new Array(5).fill('ended'),
    'cancelled',
  ]);
  for (const { events } of runs) expect(events?.map(({ name }) => name)).toEqual(['new_token']);
});

it.concurrent('the example redaction masks by name, path and pattern, in payloads and errors, and does not affect the program', async () => {
  const { code, stdout, stderr, runs } = await runExample('redaction/main.js');
  expect([code, stderr, stdout]).toEqual([0, '', 'The program sees: No number for Bob; the\n']);
  const [paid, failed] = runs;
  expect(paid?.inputs).toEqual({
    user: {
      name: 'Ada',
      email: '[inputs.user.email: 15 characters]',
      ssn: '[inputs.user.ssn: 11 characters]',
      password: '[inputs.user.password: 8 characters]',
    },
    headers: { authorization: '[inputs.headers.authorization: 10 characters]', accept: '*/*' },
  });
  expect(paid?.outputs).toEqual({ account: { owner: 'Ada', iban: '[outputs.account.iban: 22 characters]' } });
  expect(failed?.error?.split('\n')[0]).toBe('Error: No number for Bob; the key was [error: 40 characters]');
  expect(JSON.stringify(runs)).not.toMatch(/ghp_|lovelace|ada@|123-45|DE89/);
});

/** What the library says of an outage; when it begins and ends depends on what is under way. */
const OUTAGE =
  /^(runspan: delivery to http:\/\/127\.0\.0\.1:\d+ (failed: .+; the runs are retried while the process runs(, and then kept on disk)?|works again)\n)*$/;

it.concurrent('the example outage loses no run if the service is killed and restarted, and uses the disk meanwhile', async () => {
  const { code, stdout, stderr } = await runNode(['examples/outage/main.js']);
  expect(stderr).toMatch(OUTAGE);
  expect(stdout.split('\n')).toEqual([
    'the service is killed',
    '3000 calls are done, and 0 runs lost; there are some on disk: true',
    'the ledger adds up: true',
    'the service is back',
    'delivered: true; 3000 sent, 0 dropped, 3000 arrived',
    '',
  ]);
  expect(code).toBe(0);
});

it.concurrent('the example crash delivers the runs of all calls that had returned before kill -9, after a restart', async () => {
  const { code, stdout, stderr } = await runNode(['examples/crash/main.js']);
  expect([code, stderr]).toEqual([0, '']);
  const [killed = [], restarted = []] = [...stdout.matchAll(/^(.+): (\d+) calls have returned, (\d+) of/gm)].map(
    ([, when, returned, arrived]) => [when, Number(returned), Number(arrived)] as const,
  );
  const [, returned = 0] = killed;
  expect(killed[0]).toBe('SIGKILL');
  expect(returned).toBeGreaterThanOrEqual(500);
  expect(restarted).toEqual(['started again', returned + 1, returned + 1]);
});

describe.concurrent('the example two-destinations', () => {
  it('delivers the runs of one tenant while the service of the other is down, and the others later', async () => {
    const { code, stdout, stderr } = await runNode(['examples/two-destinations/tenants.js']);
    expect(stderr).toMatch(OUTAGE);
    expect(stdout.split('\n')).toEqual([
      'acme   { ok: true, pending: 0 } 100 created, 100 sent, 0 dropped, 100 of 100 arrived',
      'globex { ok: false, pending: 100 } 100 created, 0 sent, 0 dropped, 0 of 0 arrived',
      'globex { ok: true, pending: 0 } 100 created, 100 sent, 0 dropped, 100 of 100 arrived',
      '',
    ]);
    expect(code).toBe(0);
  });

  it('sends the same runs of spans to two services', async () => {
    const { code, stdout, stderr } = await runNode(['examples/two-destinations/migration.js']);
    expect([code, stdout, stderr]).toEqual([0, '6 runs there, 6 here; the same: true\n', '']);
  });
});
