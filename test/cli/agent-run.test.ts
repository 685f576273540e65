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

const run = (url: string, args: string[], key = KEY): Promise<CommandResult> =>
  runMain(['run', 'agent', ...args], { RUNSPAN_AGENT_URL: url, RUNSPAN_AGENT_KEY: key });

type Events = readonly (readonly [name: string, data: unknown])[];

/** Starts an agent server that streams these events for each run. */
function streaming(events: Events) {
  const text = events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('');
  return serve((_, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text));
}

const chunk = (id: string | undefined, content: unknown, type = 'AIMessageChunk') =>
  ['messages', [{ type, id, content }, {}]] as const;

describe('runspan run', () => {
  it.each<[string, Events, string[], string[]]>([
    [
      'the text of a model as it arrives, and tools and feedback addresses on separate lines',
      [
        chunk('m-1', 'It is '),
        chunk('m-1', [{ type: 'text', text: 'sunny.' }]),
        chunk('m-1', ''),
        chunk('t-1', '21 degrees\u001b[2J', 'tool'),
        chunk('m-2', 'And warm.\nReally.'),
        ['feedback', { helpful: 'https://feedback.example/tokens/1' }],
      ],
      [],
      [
        'It is sunny.',
        'tool: 21 degrees\\x1b[2J',
        'And warm.',
        'Really.',
        'feedback helpful: https://feedback.example/tokens/1',
      ],
    ],
    [
      'chunks without an id on one line',
      [chunk(undefined, 'It is '), chunk(undefined, 'sunny.')],
      [],
      ['It is sunny.'],
    ],
    [
      'data of an unexpected form as JSON',
      [
        ['messages', null],
        ['messages', [null, {}]],
        chunk('m-1', 5),
        ['updates', null],
        ['updates', 'text'],
        ['updates', { plan: null }],
        ['feedback', { helpful: 5 }],
      ],
      ['--mode', 'messages-tuple', '--mode', 'updates'],
      [
        'messages: null',
        'messages: [null,{}]',
        'updates: null',
        'updates: "text"',
        'plan: null',
        'feedback helpful: 5',
      ],
    ],
    [
      'updates with their subgraph, and events of other modes',
      [
        ['updates', { plan: { steps: 2 } }],
        ['updates|weather:a1|look:b2', { ask: { city: 'Kiel' } }],
        ['custom', 'half way'],
        ['later', { of: 'another version' }],
        ['updates', { answer: { text: 'x'.repeat(300) } }],
      ],
      ['--mode', 'updates', '--mode', 'custom'],
      [
        'plan: {"steps":2}',
        'weather > look > ask: {"city":"Kiel"}',
        'custom: half way',
        'later: {"of":"another version"}',
        `answer: {"text":"${'x'.repeat(190)}…`,
      ],
    ],
    [
      'events with a timeout longer than a timer allows',
      [['custom', 'done']],
      ['--timeout', '999999h'],
      ['custom: done'],
    ],
  ])('prints %s', async (_, events, args, lines) => {
    const { url } = await streaming([['metadata', { run_id: 'r-1' }], ...events]);
    const result = await run(url, ['--message', 'weather?', ...args]);
    expect(result).toEqual({ code: 0, stdout: `${lines.join('\n')}\n`, stderr: 'run r-1\n' });
  });

  it('ends the line of a text before it reports a failed run', async () => {
    const { url } = await streaming([chunk('m-1', 'It is '), ['error', { message: 'no' }]]);
    const { code, stdout } = await run(url, ['--message', 'weather?']);
    expect([code, stdout]).toEqual([1, 'It is \n']);
  });

  it('prints an interrupt in every mode, and resumes the run', async () => {
    const interrupt = [{ id: 'i-1', value: { question: 'May I?' } }, { id: 'i-2' }, null];
    const { url, seen } = await streaming([
      ['updates', { plan: {} }],
      ['updates', { __interrupt__: interrupt }],
    ]);
    expect(await run(url, ['--thread', THREAD, '--message', 'go'])).toEqual({
      code: 0,
      stdout: 'interrupt: {"question":"May I?"}\ninterrupt: null\n',
      stderr: `the run waits for an answer: --thread ${THREAD} --resume <json>\n`,
    });
    await run(url, ['--thread', THREAD, '--resume', '"yes"']);
    const [first, second] = seen.map(({ body }) => JSON.parse(body));
    expect(first).toMatchObject({ stream_mode: ['messages-tuple', 'updates'] });
    expect(second).toMatchObject({ command: { resume: 'yes' } });
    expect(second).not.toHaveProperty('input');
  });

  it('creates the thread, sends the input of a file, and prints events as JSON', async () => {
    const server = await serveAgents();
    const file = join(folder, 'input.json');
    writeFileSync(file, '\ufeff{"city":"Kiel"}');
    const options = ['--thread', THREAD, '--mode', 'values', '--feedback', 'helpful', '--json'];
    const { code, stdout } = await run(server.url, ['--input', `@${file}`, ...options]);
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).event)).toEqual(['metadata', 'values', 'values', 'feedback']);
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
    const result = await run(server.url, ['--input', input], key);
    expect([result.code, result.stderr]).toEqual([code, expect.stringContaining(message)]);
    expect(result.stderr).not.toMatch(/a-wrong-key|secret-in-it/);
  });

  it.each([
    ['', 'no agent server: set RUNSPAN_AGENT_URL or --url'],
    ['http://192.0.2.1', 'expected --url or RUNSPAN_AGENT_URL .* unless RUNSPAN_ALLOW_INSECURE=true is set'],
  ])('reports the address "%s"', async (url, message) => {
    const { code, stderr } = await run(url, ['--input', '{}']);
    expect([code, stderr]).toEqual([2, expect.stringMatching(new RegExp(`^runspan: ${message}$`, 'm'))]);
  });

  it('exits with 4 after the timeout', async () => {
    const { url } = await serve((_, response) => {
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write('event: metadata\ndata: {"run_id":"r"}\n\n');
    });
    const { code, stderr } = await run(url, ['--input', '{}', '--timeout', '1s']);
    expect([code, stderr]).toEqual([
      4,
      'run r\nrunspan: the run did not end within 1 s (--timeout) and was cancelled\n',
    ]);
  });
});
