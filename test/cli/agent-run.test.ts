import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { KEY, serveAgents } from '../clients/agent-server.ts';
import { serve } from '../http/server.ts';
import { temporaryFolder } from '../support/folders.ts';
import { type Ended, runRunspan } from '../support/program.ts';

const THREAD = '0193b3a0-4444-7000-8000-000000000001';
const { path: folder, remove } = temporaryFolder();
afterAll(remove);

const run = (url: string, words: string[], key = KEY): Promise<Ended> =>
  runRunspan(['run', ...words], { RUNSPAN_AGENT_URL: url, RUNSPAN_AGENT_KEY: key });

/** An agent server that streams these events to whoever runs anything. */
async function streaming(events: readonly (readonly [name: string, data: unknown])[]): Promise<string> {
  const text = events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('');
  const { url } = await serve((_, response) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text),
  );
  return url;
}

const piece = (id: string, content: unknown, type = 'AIMessageChunk') =>
  ['messages', [{ type, id, content }, {}]] as const;

describe('runspan run', () => {
  it('prints the text of a model as it comes, tools and addresses for feedback on lines of their own', async () => {
    const url = await streaming([
      ['metadata', { run_id: 'r-1' }],
      piece('m-1', 'It is '),
      piece('m-1', [{ type: 'text', text: 'sunny.' }]),
      piece('m-1', ''),
      piece('t-1', '21 degrees\u001b[2J', 'tool'),
      piece('m-2', 'And warm.\nReally.'),
      ['feedback', { helpful: 'https://feedback.example/tokens/1' }],
    ]);
    const ended = await run(url, ['agent', '--message', 'weather?']);
    expect(ended).toMatchObject({ code: 0, stderr: 'run r-1\n' });
    expect(ended.stdout).toBe(
      [
        'It is sunny.',
        'tool: 21 degrees\\x1b[2J',
        'And warm.',
        'Really.',
        'feedback helpful: https://feedback.example/tokens/1\n',
      ].join('\n'),
    );
  });

  it('keeps the text of a model together that gives no id', async () => {
    const url = await streaming([
      ['messages', [{ type: 'ai', content: 'It is ' }, {}]],
      ['messages', [{ type: 'ai', content: 'sunny.' }, {}]],
    ]);
    const { stdout } = await run(url, ['agent', '--message', 'weather?']);
    expect(stdout).toBe('It is sunny.\n');
  });

  it('ends the line of a text before it says that the run has failed', async () => {
    const url = await streaming([piece('m-1', 'It is '), ['error', { message: 'no' }]]);
    const { code, stdout } = await run(url, ['agent', '--message', 'weather?']);
    expect([code, stdout]).toEqual([1, 'It is \n']);
  });

  it('prints what has another form than its name says as it is', async () => {
    const url = await streaming([
      ['messages', null],
      ['messages', [null, {}]],
      ['messages', [{ type: 'ai', content: 5 }, {}]],
      ['updates', null],
      ['updates', 'text'],
      ['updates', { plan: null }],
      ['feedback', { helpful: 5 }],
    ]);
    const { code, stdout } = await run(url, [
      'agent',
      '--message',
      'weather?',
      '--mode',
      'messages-tuple',
      '--mode',
      'updates',
    ]);
    expect(code).toBe(0);
    expect(stdout).toBe(
      [
        'messages: null',
        'messages: [null,{}]',
        'updates: null',
        'updates: text',
        'plan: null',
        'feedback helpful: 5',
        '',
      ].join('\n'),
    );
  });

  it('prints what each step has changed, with the subgraph that it is in, and modes of any other kind', async () => {
    const url = await streaming([
      ['updates', { plan: { steps: 2 } }],
      ['updates|weather:a1|look:b2', { ask: { city: 'Kiel' } }],
      ['custom', 'half way'],
      ['later', { of: 'another version' }],
      ['updates', { answer: { text: 'x'.repeat(300) } }],
    ]);
    const { stdout } = await run(url, ['agent', '--input', '{}', '--mode', 'updates', '--mode', 'custom']);
    expect(stdout).toBe(
      [
        'plan: {"steps":2}',
        'weather > look > ask: {"city":"Kiel"}',
        'custom: half way',
        'later: {"of":"another version"}',
        `answer: {"text":"${'x'.repeat(190)}…\n`,
      ].join('\n'),
    );
  });

  it('prints what a run waits for, whatever is streamed, and answers it', async () => {
    const interrupt = [{ id: 'i-1', value: { question: 'May I?' } }];
    const { url, seen } = await serve((_, response) => {
      const events = ['updates', { plan: {} }, 'updates', { __interrupt__: interrupt }];
      const text = [0, 2].map((at) => `event: ${events[at]}\ndata: ${JSON.stringify(events[at + 1])}\n\n`).join('');
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text);
    });
    const words = ['agent', '--thread', THREAD];
    const asked = await run(url, [...words, '--message', 'go']);
    expect([asked.code, asked.stdout]).toEqual([0, 'interrupt: {"question":"May I?"}\n']);
    expect(asked.stderr).toBe(`the run waits for an answer: --thread ${THREAD} --resume <json>\n`);
    await run(url, [...words, '--resume', '"yes"']);
    const [first, second] = seen.map(({ body }) => JSON.parse(body));
    expect(first).toMatchObject({ stream_mode: ['messages-tuple', 'updates'] });
    expect(second).toMatchObject({ command: { resume: 'yes' } });
    expect(second).not.toHaveProperty('input');
  });

  it('calls options by the words of the command', async () => {
    const ended = await runRunspan(['run', 'agent', '--input', '{}'], {
      RUNSPAN_AGENT_URL: 'http://192.0.2.1',
      RUNSPAN_AGENT_KEY: KEY,
    });
    expect([ended.code, ended.stderr]).toEqual([
      1,
      expect.stringMatching(
        /^runspan: expected --url or RUNSPAN_AGENT_URL .* unless RUNSPAN_ALLOW_INSECURE=true is set$/m,
      ),
    ]);
  });

  it('makes the thread, sends the input of a file, and prints events as JSON', async () => {
    const server = await serveAgents();
    const file = join(folder, 'input.json');
    writeFileSync(file, '{"city":"Kiel"}');
    const words = [
      'agent',
      '--input',
      `@${file}`,
      '--thread',
      THREAD,
      '--mode',
      'values',
      '--feedback',
      'helpful',
      '--json',
    ];
    const { code, stdout } = await run(server.url, words);
    expect(code).toBe(0);
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(events.map(({ event }) => event)).toEqual(['metadata', 'values', 'values', 'feedback']);
    expect(server.endpoints).toEqual(['POST /threads/{thread_id}/runs/stream']);
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({
      assistant_id: 'agent',
      input: { city: 'Kiel' },
      stream_mode: ['values'],
      on_disconnect: 'cancel',
      feedback_keys: ['helpful'],
      if_not_exists: 'create',
    });
  });

  it('ends with 1 and says why when the run fails, the key is not taken, or the input cannot be read', async () => {
    const server = await serveAgents();
    const [failed, refused, unreadable, absent, nowhere] = await Promise.all([
      run(server.url, ['agent', '--input', '{"text":"fail"}']),
      run(server.url, ['agent', '--input', '{}'], 'a-wrong-key'),
      run(server.url, ['agent', '--input', '{"key":"secret-in-it"']),
      run(server.url, ['agent', '--input', '@none.json']),
      runRunspan(['run', 'agent', '--input', '{}']),
    ]);
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('RangeError: no such city')]);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('401 Missing or invalid authentication'),
    ]);
    expect(refused.stderr).not.toContain('a-wrong-key');
    const message = 'runspan: expected --input to be JSON; it is none at character 21\n';
    expect([unreadable.code, unreadable.stderr]).toEqual([2, message]);
    expect([absent.code, absent.stderr]).toEqual([1, expect.stringMatching(/^runspan: --input: ENOENT/)]);
    expect([nowhere.code, nowhere.stderr]).toEqual([
      1,
      'runspan: no agent server: set RUNSPAN_AGENT_URL, or give --url\n',
    ]);
  });

  it('waits for as long as a timer can where the time is longer', async () => {
    const url = await streaming([['custom', 'done']]);
    const { code, stdout, stderr } = await run(url, ['agent', '--input', '{}', '--timeout', '1000h']);
    expect([code, stdout, stderr]).toEqual([0, 'custom: done\n', '']);
  });

  it('ends with 4 when the time is over', async () => {
    const { url } = await serve((_, response) => {
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write('event: metadata\ndata: {"run_id":"r"}\n\n');
    });
    const ended = await run(url, ['agent', '--input', '{}', '--timeout', '1s']);
    const message = 'run r\nrunspan: the run has not ended within 1 s (--timeout); it is cancelled\n';
    expect([ended.code, ended.stderr]).toEqual([4, message]);
  });
});
