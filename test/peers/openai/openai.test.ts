// Other majors of the openai package than the one of the suite.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import type { LocalModel } from '../../../examples/local-model/server.js';
import { wrapOpenAI } from '../../../src/integrations/openai/client.ts';
import { run } from '../../instrument/built.ts';
import { record } from '../../instrument/recorder.ts';
import { chunksOf, localModel, lookUp, tea } from '../../integrations/local-openai.ts';
import { leftOpen, programs, seenBy } from '../../integrations/openai-programs.ts';
import { root } from '../../support/folders.ts';
import { bareEnvironment } from '../../support/program.ts';
import { isEarlierNode, laterNode } from '../later-node.ts';

const packages = createRequire(new URL('./package.json', import.meta.url));
const rejections = fileURLToPath(new URL('../../integrations/programs/rejections.mjs', import.meta.url));

/** The seventh says that it needs a later Node. */
const majors = isEarlierNode ? ['openai5'] : ['openai5', 'openai7'];

describe.each(majors)('a wrapped client of %s', (name) => {
  const makeClient = async (): Promise<(model: LocalModel) => OpenAI> => {
    const { default: Client } = (await import(pathToFileURL(packages.resolve(name)).href)) as {
      default: typeof OpenAI;
    };
    return ({ url }) => new Client({ apiKey: 'none', baseURL: `${url}/v1`, logLevel: 'off' });
  };

  test.each(Object.entries(programs))('does what the bare one does, with %s', async (title, program) => {
    const make = await makeClient();
    const bare = await seenBy(program, make);
    const recorder = record();
    const traced = await seenBy(program, (model) => wrapOpenAI(make(model)));
    expect(traced).toEqual(bare);
    expect(recorder.runs.every((run) => run.end_time !== undefined)).toBe(!leftOpen.has(title));
  });

  test('records the same answer at once and streamed', async () => {
    const client = wrapOpenAI((await makeClient())(await localModel()));
    const recorder = record();
    const body = { model: 'small', messages: tea, tools: [lookUp] };
    const input = { model: 'small', input: 'tea', reasoning: {} };
    await client.chat.completions.create(body);
    await chunksOf(
      await client.chat.completions.create({ ...body, stream: true, stream_options: { include_usage: true } }),
    );
    await client.responses.create(input);
    await chunksOf(await client.responses.create({ ...input, stream: true }));
    const [chat, chatStreamed, response, responseStreamed] = recorder.runs.map(({ outputs }) => outputs);
    expect(chat).toMatchObject({
      choices: [{ message: { tool_calls: [{ function: { name: 'look_up' } }] } }],
      usage_metadata: { input_tokens: 3 },
    });
    expect(chatStreamed).toEqual(chat);
    expect(response).toMatchObject({ status: 'completed', usage_metadata: { output_token_details: { reasoning: 3 } } });
    expect(responseStreamed).toEqual(response);
  });
});

describe.each(majors)('a failed call of %s', (name) => {
  test('has as many unhandled rejections with a wrapped client as with a bare one', async () => {
    const environment = { OPENAI_PACKAGE: packages.resolve(name) };
    const both = ['bare', 'traced'].map((mode) => run(rejections, [mode], environment));
    const [bare, traced] = (await Promise.all(both)).map(({ stdout, ...ended }) => {
      const lines = stdout.trimEnd().split('\n').sort();
      return { ...ended, lines: lines.filter((line) => !line.startsWith('run ')) };
    });
    expect(bare).toMatchObject({ code: 0, stderr: '' });
    expect(bare?.lines.filter((line) => line.startsWith('unhandled 4'))).toHaveLength(10);
    expect(traced).toEqual(bare);
  });
});

test.runIf(isEarlierNode)('openai7 passes these tests on a later Node', async () => {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const args = ['run', '--config', 'vitest.peers.config.ts', 'openai.test', '-t', 'openai7', '--reporter=json'];
  const { stdout } = await promisify(execFile)(laterNode(), [vitest, ...args], {
    cwd: root,
    env: bareEnvironment(),
    maxBuffer: 2 ** 24,
  });
  const { success, numPassedTests } = JSON.parse(stdout);
  expect(success).toBe(true);
  expect(numPassedTests).toBe(Object.keys(programs).length + 2);
});
