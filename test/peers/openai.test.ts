// Other majors of the openai package than the major that the suite tests.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { expectRun, serve } from '../exchanges/run.ts';
import { callSdk, hasSdk } from '../exchanges/sdks.ts';
import { rows } from '../exchanges/table.ts';
import { record } from '../instrument/recorder.ts';
import { onlyRun } from '../integrations/local-openai.ts';
import { leftOpen, programs, seenBy } from '../integrations/sdk-programs.ts';
import { openai, type Sdk } from '../integrations/sdks.ts';
import { root } from '../support/folders.ts';
import { bareEnvironment } from '../support/program.ts';
import { isEarlierNode, laterNode } from './later-node.ts';

const openaiPrograms = Object.entries(programs.wrapOpenAI ?? {});

/** The seventh major requires a later Node. */
const majors = isEarlierNode ? ['openai5'] : ['openai5', 'openai7'];

async function packageOf(name: string): Promise<typeof OpenAI> {
  const [folder, installed] = name === 'openai5' ? ['ai-sdk', name] : ['today', 'openai'];
  const packages = createRequire(new URL(`./${folder}/package.json`, import.meta.url));
  return ((await import(pathToFileURL(packages.resolve(installed)).href)) as { default: typeof OpenAI }).default;
}

/** The fifth major has no `compact`. */
const calls = rows.filter(({ exchange }) => /^openai\.(?!responses\.compact)/.test(exchange.name) && hasSdk(exchange));

describe.each(majors)('a wrapped client of %s', (name) => {
  test.each(openaiPrograms)('behaves like a bare client with %s', async (title, program) => {
    const Package = await packageOf(name);
    const make: Sdk['make'] = ({ url }, options = {}) =>
      new Package({ apiKey: 'none', baseURL: `${url}/v1`, logLevel: 'off', ...(options as object) }) as never;
    const sdk = { ...openai, make };
    const bare = await seenBy(program, sdk, (client) => client);
    const recorder = record();
    const traced = await seenBy(program, sdk, sdk.wrap);
    expect(traced).toEqual(bare);
    expect(recorder.runs.every((run) => run.end_time !== undefined)).toBe(!leftOpen.has(title));
  });

  test.each(calls)('records $title', async ({ exchange, isStreamed }) => {
    await serve(exchange, isStreamed);
    const recorder = record();
    await callSdk(exchange, isStreamed, true, await packageOf(name));
    expectRun(onlyRun(recorder.runs), exchange, isStreamed);
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
  expect(numPassedTests).toBe(openaiPrograms.length + calls.length);
});
