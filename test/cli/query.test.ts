import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SCOPE, type RunOperation } from '#src/receiver.ts';
import { idOf, runAtSecond as run } from '../browser/runs.ts';
import { serve } from '../http/server.ts';
import { start } from '../receiver/wire.ts';
import { type CommandResult, runMain } from '../support/command.ts';
import { startFilled } from '../support/receiver.ts';
import { testFolder } from '../support/test-folder.ts';

const OPERATIONS: RunOperation[] = [
  run(1, { inputs: { question: 'Why\u001b[2J?' }, outputs: { answer: 'x'.repeat(3_000) } }),
  run(2, {
    parent: 1,
    run_type: 'llm',
    error: 'Error: no\n  at pay',
    extra: { metadata: { ls_model_name: 'm' } },
    outputs: { usage_metadata: { total_tokens: 7 } },
  }),
  {
    ...run(3, { tags: ['a'], extra: { metadata: { user: 'ada' } } }),
    attachments: [{ name: 'a.txt', mimeType: 'text/plain', bytes: Uint8Array.of(1) }],
  },
];

/** Runs the command against a receiver with the runs. Replaces local times by `TIME`. */
async function ask(...args: string[]): Promise<CommandResult> {
  const { store, url } = await startFilled(OPERATIONS);
  const times = { created_at: '2026-11-20T07:00:00.000000Z', modified_at: '2026-11-20T07:00:00.000000Z' };
  for (const feedback of [
    { id: idOf(9), key: 'liked', score: 1, comment: 'good' },
    { id: idOf(8), key: 'user_score' },
    { id: idOf(7), key: 'fixed', correction: 'better' },
  ]) {
    await store.addFeedback(DEFAULT_SCOPE, { run_id: idOf(3), ...feedback, ...times });
  }
  const result = await runMain([...args, '--url', url]);
  return { ...result, stdout: result.stdout.replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, 'TIME') };
}

describe('runspan traces', () => {
  it('prints a line for each trace, the latest first, with its totals', async () => {
    expect(await ask('traces')).toEqual({
      code: 0,
      stderr: '',
      stdout:
        'TIME  000000000003  run 3 · chain · 12 ms\n' +
        'TIME  000000000001  run 1 · chain · 12 ms · 2 runs · 1 failed · 7 tokens · failed below · ⚠ Error: no\n',
    });
  });

  it('reports that more traces match, or none', async () => {
    expect((await ask('traces', '--limit', '1')).stdout).toContain(
      '\n… more traces match; raise --limit to see them\n',
    );
    expect((await ask('traces', '--name', 'none')).stdout).toBe('no traces\n');
    expect((await ask('traces', '--status', 'error')).stdout).toBe(
      'no traces\ntraces with a failed run match "status:failed_below"\n',
    );
  });

  it('prints JSON lines with --json', async () => {
    const lines = (await ask('traces', '--json')).stdout.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).trace_id)).toEqual([idOf(3), idOf(1)]);
  });

  const local = (day: number, hour: number) => encodeURIComponent(new Date(2026, 0, day, hour).toISOString());

  it.each<[string, string]>([
    ['', 'traces?limit=20'],
    ['--limit 1000', 'traces?limit=1000'],
    ['--project a --name b', 'traces?project=a&filter=name%3Ab&limit=20'],
    ['--tag x --tag y --text=new', 'traces?filter=tag%3Ax+tag%3Ay+%22new%22&limit=20'],
    ['--text=status:error', 'traces?filter=%22status%3Aerror%22&limit=20'],
    ['--status success', 'traces?filter=status%3Asuccess&limit=20'],
    ['--status success --status error', 'traces?filter=status%3Asuccess%2Cerror&limit=20'],
    ['--status success --type llm', 'traces?filter=any%28status%3Asuccess+type%3Allm%29&limit=20'],
    ['--model m', 'traces?filter=any%28model%3Am%29&limit=20'],
    ['--status error --status pending', 'traces?filter=status%3Aerror%2Cpending&limit=20'],
    ['--type llm --model a,b', 'traces?filter=any%28type%3Allm+model%3A%22a%2Cb%22%29&limit=20'],
    ['user:ada OR cost>1 late --text=new', 'traces?filter=user%3Aada+OR+cost%3E1+late+%22new%22&limit=20'],
    ['since:2026-01-31T09:00Z', 'traces?filter=since%3A2026-01-31T09%3A00%3A00.000Z&limit=20'],
    ['--since 2026-01-31', `traces?filter=since%3A${local(31, 0)}&limit=20`],
    ['--since 2026-01-31T09:00', `traces?filter=since%3A${local(31, 9)}&limit=20`],
    ['--since 2026-11-20T00:00:00Z', 'traces?filter=since%3A2026-11-20T00%3A00%3A00.000Z&limit=20'],
  ])('sends the filters %s to the receiver', async (line, query) => {
    const { url, seen } = await serve((_, response) => response.end('{"items":[]}'));
    expect(await runMain(['traces', '--url', `${url}/x`, ...line.split(' ').filter(Boolean)])).toMatchObject({
      code: 0,
    });
    expect(seen[0]?.url).toBe(`/x/query/${query}`);
  });

  it('rejects an invalid filter', async () => {
    const { code, stderr } = await ask('traces', 'status:failed');
    expect([code, stderr]).toEqual([2, expect.stringContaining('status: expects one of error, failed_below, pending')]);
    expect((await ask('traces', 'stauts:error')).stderr).toContain('did you mean status:error?');
  });

  it.each([
    ['90s', 90],
    ['2h', 7_200],
    ['7d', 604_800],
  ])('filters by an age of %s', async (age, seconds) => {
    const { url, seen } = await serve((_, response) => response.end('{"items":[]}'));
    await runMain(['traces', '--url', url, '--since', age]);
    const from = new URL(`${url}${seen[0]?.url}`).searchParams.get('filter')?.replace('since:', '') ?? '';
    expect(Math.abs(Date.now() - Date.parse(from) - seconds * 1_000)).toBeLessThan(10_000);
  });
});

describe('runspan show', () => {
  it('prints a trace as a tree with its payloads, which are cut and escaped', async () => {
    const [head, ...lines] = (await ask('show', idOf(1))).stdout.split('\n');
    expect(head).toBe(`trace ${idOf(1)}, started TIME, failed below`);
    expect(lines.slice(1, 3)).toEqual(['run 1 · chain · 12 ms', '└─ run 2 · llm · 12 ms · 7 tokens · ✗ Error: no']);
    expect(lines.join('\n')).toContain('inputs\n{\n  "question": "Why\\u001b[2J?"\n}');
    expect(lines.join('\n')).toContain('… (3018 characters; --full shows all)');
    expect((await ask('show', idOf(1), '--full')).stdout).toContain('x'.repeat(3_000));
  });

  it.each<[string[], string]>([
    [[], `trace ${idOf(3)}`],
    [['0001'], `trace ${idOf(1)}`],
    [[idOf(1).replaceAll('-', '').toUpperCase()], `trace ${idOf(1)}`],
  ])('finds a trace by %j', async (args, head) => {
    expect((await ask('show', ...args)).stdout).toContain(head);
  });

  it.each([
    ['01900000', 'the ids of 2 recent traces start or end with 01900000; give more characters'],
    ['beef', 'none of the last 1000 traces has an id that starts or ends with beef'],
    [idOf(8), `no trace or run has the id ${idOf(8)}`],
  ])('fails for the id %s', async (wanted, message) => {
    expect(await ask('show', wanted)).toEqual({ code: 1, stdout: '', stderr: `runspan: ${message}\n` });
  });

  it('counts the internal steps of frameworks, and prints them with --internal', async () => {
    const step = (n: number, parent: number, name: string) => run(n, { parent, name, ms: 5 });
    const { url } = await startFilled([run(1), step(2, 1, 'RunnableSequence'), step(4, 2, 'ask')]);
    const treeOf = async (...args: string[]) =>
      (await runMain(['show', '--url', url, ...args])).stdout.split('\n\n')[1];
    expect(await treeOf()).toBe('run 1 · chain · 12 ms\n└─ ask · chain · 5 ms\n+1 internal step');
    expect(await treeOf('--internal')).toBe(
      'run 1 · chain · 12 ms\n└─ RunnableSequence · chain · 5 ms\n   └─ ask · chain · 5 ms',
    );
  });

  it('prints a run with all its details', async () => {
    expect((await ask('show', idOf(2))).stdout).toBe(
      [
        'run 2',
        `run      ${idOf(2)}`,
        `trace    ${idOf(1)}`,
        `parent   ${idOf(1)}`,
        'type     llm',
        'status   error',
        'started  TIME (2026-11-20T07:00:02.000000Z)',
        'took     12 ms',
        'model    m',
        'tokens   7 tokens',
        'cost     unknown: no price for model "m"',
        '\nerror\nError: no\n  at pay',
        '\nmetadata\n{\n  "ls_model_name": "m"\n}',
        '\ninputs\n{}',
        '\noutputs\n{\n  "usage_metadata": {\n    "total_tokens": 7\n  }\n}\n',
      ].join('\n'),
    );
    const { stdout } = await ask('show', idOf(3));
    expect(stdout).toContain('metadata\n{\n  "user": "ada"\n}');
    expect(stdout).toContain('attachments\na.txt text/plain 1 bytes');
    expect(stdout).toContain('feedback\nliked: score 1, good\nuser_score: withdrawn\nfixed: correction "better"');
  });

  it.each([
    [{ input_tokens: 1_000, output_tokens: 100 }, '$0.00225 (by genai-prices 0.1.8)'],
    [{ input_tokens: 1_000, output_tokens: 100, total_cost: 12.3456 }, '$12.35 (reported by the run)'],
    [{ input_tokens: 1_000, output_tokens: 100, total_cost: 0 }, '$0 (reported by the run)'],
    [{ total_tokens: 1_000 }, 'unknown: no input and output token counts for model "gpt-5" of openai'],
  ])('prints the cost of a call, and where it comes from: %j', async (usage_metadata, cost) => {
    const metadata = { ls_provider: 'openai', ls_model_name: 'gpt-5' };
    const call = { run_type: 'llm', extra: { metadata }, outputs: { usage_metadata } };
    const { url } = await startFilled([run(1, call), run(2, { parent: 1, ...call })]);
    expect((await runMain(['show', idOf(2), '--url', url])).stdout).toContain(`\ncost     ${cost}\n`);
    expect((await runMain(['show', idOf(1), '--url', url])).stdout).toContain(`\n\ncost\n${cost}\n\n`);
  });

  it('prints where the prompt of a call differs from that of an earlier call', async () => {
    const call = (content: string) => ({
      run_type: 'llm',
      inputs: { messages: [{ role: 'user', content }] },
      outputs: { usage_metadata: { input_tokens: 2_000, output_tokens: 1, input_token_details: { cache_read: 0 } } },
      extra: { metadata: { ls_model_name: 'gpt-5', thread_id: 't' } },
    });
    const { url } = await startFilled([run(1, call('Why?')), run(2, { parent: 1, ...call('Who?') })]);
    expect((await runMain(['show', idOf(2), '--url', url])).stdout).toContain(
      '\ncache    The prompt differs from that of the call 1 s earlier from message 1 (user) on: "Why?" became "Who?". ' +
        "The equal beginning is 50 % of the earlier prompt's text. 0 % of the input tokens were read from the cache.\n",
    );
  });

  // Claude Opus 5 costs 5 dollars per million input tokens, 0.5 from a cache and 6.25 to a cache.
  it.each([
    [{ cache_read: 9_000 }, '$0.00950 · 90 % cached', 'cached   90 % cached (9000 tokens), saved $0.0405'],
    [{ cache_creation: 8_000 }, '$0.0600', 'cached   lost $0.0100'],
    [{ cache_read: 0 }, '$0.0500', undefined],
  ])('prints what caching did, in the lists and the run: %j', async (input_token_details, inLists, inRun) => {
    const usage_metadata = { input_tokens: 10_000, output_tokens: 0, input_token_details };
    const metadata = { ls_provider: 'anthropic', ls_model_name: 'claude-opus-5' };
    const call = { run_type: 'llm', extra: { metadata }, outputs: { usage_metadata } };
    const { url } = await startFilled([run(1), run(2, { parent: 1, ...call })]);
    const text = `10000 tokens (10000 in, 0 out) · ${inLists}\n`;
    expect((await runMain(['traces', '--url', url])).stdout).toContain(text);
    expect((await runMain(['show', idOf(1), '--url', url])).stdout).toContain(text);
    const { stdout } = await runMain(['show', idOf(2), '--url', url]);
    if (inRun === undefined) expect(stdout).not.toContain('cached');
    else expect(stdout).toContain(`\n${inRun}\n`);
  });

  it('saves a trace as an HTML file with secrets masked, with --html', async () => {
    const folder = testFolder();
    const file = join(folder, 'trace.html');
    const { url } = await startFilled([run(1, { inputs: { question: 'Why?', password: 'hunter2!' } })]);
    expect(await runMain(['show', idOf(1), '--html', file, '--url', url])).toEqual({
      code: 0,
      stderr: '',
      stdout: `saved trace ${idOf(1)} to ${file}\n`,
    });
    const html = readFileSync(file, 'utf8');
    expect(html).toContain('Why?');
    expect(html).not.toContain('hunter2');
    const unknown = await runMain(['show', idOf(4), '--html', file, '--url', url]);
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining(`no trace has the id ${idOf(4)}`)]);
    const nowhere = await runMain(['show', idOf(1), '--html', folder, '--url', url]);
    expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining('cannot write the file: ')]);
  });

  it('prints a trace that can be imported, or a run with its payloads, with --json', async () => {
    expect(JSON.parse((await ask('show', idOf(1), '--json')).stdout)).toMatchObject({
      format: 'runspan-trace',
      runs: [{ id: idOf(1) }, { id: idOf(2) }],
    });
    const run = { id: idOf(2), inputs: {}, error: 'Error: no\n  at pay' };
    expect(JSON.parse((await ask('show', idOf(2), '--json')).stdout)).toMatchObject(run);
  });
});

describe('another address', () => {
  it('without a receiver is reported', async () => {
    const { code, stderr } = await runMain(['traces', '--url', 'http://127.0.0.1:3']);
    expect(stderr).toContain('no receiver responds at http://127.0.0.1:3: connect ECONNREFUSED');
    expect(code).toBe(1);
  });

  it.each<[status: number, body: string, response: string]>([
    [404, '<h1>A page</h1>', 'responded with status 404'],
    [500, '{"error":"no"}', 'responded with status 500'],
    [200, '<h1>A page</h1>', 'responded without JSON'],
    [200, 'null', 'responded with other JSON'],
    [200, '{"ok":true}', 'responded with other JSON'],
  ])('with another server is reported with its response: %i %s', async (status, body, response) => {
    const { url } = await serve((_, answer) => answer.writeHead(status).end(body));
    for (const command of [['traces'], ['show'], ['show', idOf(1)], ['delete', 'project', 'shop']]) {
      expect(await runMain([...command, '--url', url])).toEqual({
        code: 1,
        stdout: '',
        stderr: `runspan: ${url} ${response}: this is not the URL of a receiver\n`,
      });
    }
  });

  it.each<[key: string, problem: string]>([
    ['', 'requires a key; set RUNSPAN_RECEIVER_KEY'],
    ['mellon', 'rejected the key in RUNSPAN_RECEIVER_KEY'],
    ['millet', 'refused the request: The write key can only send runs and feedback'],
  ])('of a receiver that requires another key than "%s" is reported', async (key, problem) => {
    const { url } = await start({ apiKey: 'sesame', writeKey: 'millet' });
    const env = key === '' ? {} : { RUNSPAN_RECEIVER_KEY: key };
    expect(await runMain(['traces', '--url', url], env)).toMatchObject({
      code: 1,
      stderr: `runspan: the receiver at ${url} ${problem}\n`,
    });
  });

  it.each<[status: number, body: string, code: number, message: string]>([
    [403, 'No', 1, 'refused the request: status 403'],
    [429, '{"detail":"Too many wrong keys\\u001b"}', 1, 'refused the request: Too many wrong keys\\x1b'],
    [422, '{"detail":[{"msg":"Expected a cursor"}]}', 2, 'refused the request: Expected a cursor'],
    [503, '{"detail":"The store is busy"}', 1, 'cannot answer: The store is busy'],
  ])('with an error of status %i is reported: %s', async (status, body, code, message) => {
    const { url } = await serve((_, answer) => answer.writeHead(status).end(body));
    const ended = await runMain(['traces', '--url', url]);
    expect([ended.code, ended.stderr.split('\n')[0]]).toEqual([code, `runspan: the receiver at ${url} ${message}`]);
  });

  it.each(['traces', 'traces --type llm', 'show'])(
    'with another path of a receiver is reported by %s',
    async (line) => {
      const { url } = await start();
      const { code, stdout, stderr } = await runMain([...line.split(' '), '--url', `${url}/x/`]);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toBe(`runspan: ${url}/x responded with status 404: this is not the URL of a receiver\n`);
    },
  );

  it('receives no key over plain HTTP', async () => {
    const { code, stderr } = await runMain(['traces', '--url', 'http://example.com'], { RUNSPAN_RECEIVER_KEY: 'k' });
    expect([code, stderr]).toEqual([
      2,
      'runspan: the key is not sent to http://example.com over plain HTTP; use https\nRun "runspan traces --help" for help.\n',
    ]);
  });
});

describe('runspan delete', () => {
  const acting = (url: string): string => `runspan: the receiver at ${url} with 1 project\n`;

  it('shows what it would delete, and deletes with --yes', async () => {
    const { store, url } = await startFilled(OPERATIONS);
    const remove = (...args: string[]) => runMain(['delete', ...args, '--url', url]);
    expect(await remove('trace', idOf(1))).toMatchObject({
      code: 1,
      stderr: `${acting(url)}runspan: would delete 2 runs of 1 trace; pass --yes to confirm\n`,
    });
    expect(await store.outline(DEFAULT_SCOPE, idOf(1))).toHaveLength(2);
    expect(await remove('trace', idOf(1), '--yes')).toMatchObject({
      code: 0,
      stdout: `deleted 2 runs of 1 trace from ${url}\n`,
    });
    expect(await store.outline(DEFAULT_SCOPE, idOf(1))).toEqual([]);
    expect(await remove('user', 'nobody')).toMatchObject({
      code: 1,
      stderr: `${acting(url)}runspan: the store has no user nobody\n`,
    });
    expect((await remove('user', 'nobody', '--yes')).stdout).toBe(`deleted 0 runs of 0 traces from ${url}\n`);
    expect(await remove('trace', idOf(1).slice(-12))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"000000000001" is not the id of a trace: expected a UUID'),
    });
  });

  it('tells why a request was refused', async () => {
    const answers: [number, object][] = [
      [200, { items: [{}] }],
      [429, { detail: '100 deletions are not finished' }],
    ];
    const { url } = await serve((_, response) => {
      const [status, body] = answers.shift() ?? [500, {}];
      response.writeHead(status).end(JSON.stringify(body));
    });
    const { code, stderr } = await runMain(['delete', 'project', 'big', '--yes', '--url', url]);
    expect(code).toBe(1);
    expect(stderr).toContain('refused the request: 100 deletions are not finished');
  });
});
