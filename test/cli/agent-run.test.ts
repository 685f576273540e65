import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { KEY, serveAgents } from '../clients/agent-server.ts';
import { serve } from '../http/server.ts';
import { type CommandResult, runMain } from '../support/command.ts';
import { temporaryFolder } from '../support/folders.ts';

const THREAD = '0193b3a0-4444-7000-8000-000000000001';
const { path: folder, remove } = temporaryFolder();
afterAll(remove);

const run = (url: string, words: string[], key = KEY): Promise<CommandResult> =>
  runMain(['run', ...words], { RUNSPAN_AGENT_URL: url, RUNSPAN_AGENT_KEY: key });

/** Starts an agent server that streams these events for each run. */
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
  it('prints the text of a model as it arrives, and tools and feedback addresses on separate lines', async () => {
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

  it('prints the chunks of a message without an id on one line', async () => {
    const url = await streaming([
      ['messages', [{ type: 'ai', content: 'It is ' }, {}]],
      ['messages', [{ type: 'ai', content: 'sunny.' }, {}]],
    ]);
    const { stdout } = await run(url, ['agent', '--message', 'weather?']);
    expect(stdout).toBe('It is sunny.\n');
  });

  it('ends the line of a text before it reports a failed run', async () => {
    const url = await streaming([piece('m-1', 'It is '), ['error', { message: 'no' }]]);
    const { code, stdout } = await run(url, ['agent', '--message', 'weather?']);
    expect([code, stdout]).toEqual([1, 'It is \n']);
  });

  it('prints data of an unexpected form as JSON', async () => {
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

  it('prints updates with their subgraph, and events of other modes', async () => {
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

  it('prints an interrupt in every mode, and resumes the run', async () => {
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

  it('reports invalid options by their names in the command', async () => {
    const ended = await runMain(['run', 'agent', '--input', '{}'], {
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

  it('creates the thread, sends the input of a file, and prints events as JSON', async () => {
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

  it.each<[string, string, string, number, string]>([
    ['the run fails', '{"text":"fail"}', KEY, 1, 'RangeError: no such city'],
    ['the key is rejected', '{}', 'a-wrong-key', 1, '401 Missing or invalid authentication'],
    ['the input is not JSON', '{"key":"secret-in-it"', KEY, 2, '--input is not valid JSON (at character 21)\n'],
    ['the file does not exist', '@none.json', KEY, 1, 'runspan: --input: ENOENT'],
  ])('reports that %s', async (_, input, key, code, message) => {
    const server = await serveAgents();
    const result = await run(server.url, ['agent', '--input', input], key);
    expect([result.code, result.stderr]).toEqual([code, expect.stringContaining(message)]);
    expect(result.stderr).not.toMatch(/a-wrong-key|secret-in-it/);
  });

  it('reports that no server is set', async () => {
    expect(await runMain(['run', 'agent', '--input', '{}'])).toMatchObject({
      code: 1,
      stderr: 'runspan: no agent server: set RUNSPAN_AGENT_URL or --url\n',
    });
  });

  it('accepts a timeout longer than a timer allows', async () => {
    const url = await streaming([['custom', 'done']]);
    const { code, stdout, stderr } = await run(url, ['agent', '--input', '{}', '--timeout', '1000h']);
    expect([code, stdout, stderr]).toEqual([0, 'custom: done\n', '']);
  });

  it('exits with 4 after the timeout', async () => {
    const { url } = await serve((_, response) => {
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write('event: metadata\ndata: {"run_id":"r"}\n\n');
    });
    const ended = await run(url, ['agent', '--input', '{}', '--timeout', '1s']);
    const message = 'run r\nrunspan: the run did not end within 1 s (--timeout) and was cancelled\n';
    expect([ended.code, ended.stderr]).toEqual([4, message]);
  });
});
