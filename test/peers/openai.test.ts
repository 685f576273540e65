// Other majors of the openai package than the major that the suite tests.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { wrapOpenAI } from '#src/integrations/openai/client.ts';
import { record } from '../instrument/recorder.ts';
import { chunksOf, localModel, lookUp, tea } from '../integrations/local-openai.ts';
import { leftOpen, programs, seenBy } from '../integrations/sdk-programs.ts';
import { openai, type Sdk } from '../integrations/sdks.ts';
import { root } from '../support/folders.ts';
import { bareEnvironment } from '../support/program.ts';
import { isEarlierNode, laterNode } from './later-node.ts';

const openaiPrograms = Object.entries(programs.wrapOpenAI ?? {});

/** The seventh major requires a later Node. */
const majors = isEarlierNode ? ['openai5'] : ['openai5', 'openai7'];

async function sdkOf(name: string): Promise<Sdk> {
  const [folder, installed] = name === 'openai5' ? ['ai-sdk', name] : ['today', 'openai'];
  const packages = createRequire(new URL(`./${folder}/package.json`, import.meta.url));
  const { default: Package } = (await import(pathToFileURL(packages.resolve(installed)).href)) as {
    default: typeof OpenAI;
  };
  const make: Sdk['make'] = ({ url }, options = {}) =>
    new Package({ apiKey: 'none', baseURL: `${url}/v1`, logLevel: 'off', ...(options as object) }) as never;
  return { ...openai, make };
}

describe.each(majors)('a wrapped client of %s', (name) => {
  test.each(openaiPrograms)('behaves like a bare client with %s', async (title, program) => {
    const sdk = await sdkOf(name);
    const bare = await seenBy(program, sdk, (client) => client);
    const recorder = record();
    const traced = await seenBy(program, sdk, sdk.wrap);
    expect(traced).toEqual(bare);
    expect(recorder.runs.every((run) => run.end_time !== undefined)).toBe(!leftOpen.has(title));
  });

  test('records the same answer at once and streamed', async () => {
    const client = wrapOpenAI((await sdkOf(name)).make(await localModel()) as unknown as OpenAI);
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

test.runIf(isEarlierNode)('openai7 passes these tests on a later Node', async () => {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const args = ['run', '--project=peers', 'openai.test', '-t', 'openai7', '--reporter=json'];
  const { stdout } = await promisify(execFile)(laterNode(), [vitest, ...args], {
    cwd: root,
    env: bareEnvironment(),
    maxBuffer: 2 ** 24,
  });
  const { success, numPassedTests } = JSON.parse(stdout);
  expect(success).toBe(true);
  expect(numPassedTests).toBe(openaiPrograms.length + 1);
});
