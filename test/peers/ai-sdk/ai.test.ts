import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { RunRecord } from '../../../src/index.ts';
import { startOpenAiServer } from '../../support/openai-server.ts';
import { bareEnvironment } from '../../support/program.ts';
import { laterNode } from '../later-node.ts';

const program = fileURLToPath(new URL('../ai-program.mjs', import.meta.url));
/** What a program of one major has seen, and what was recorded of it. */
interface Told {
  readonly node: string;
  readonly bare: readonly unknown[];
  readonly wrapped: readonly unknown[];
  readonly runs: readonly RunRecord[];
}

async function run(major: string, binary: string): Promise<Told> {
  const server = await startOpenAiServer();
  // 7 warns of functions that are to go.
  const options = { maxBuffer: 2 ** 24, env: { ...bareEnvironment(), NODE_NO_WARNINGS: '1' } };
  const { stdout, stderr } = await promisify(execFile)(binary, [program, major, server.url], options);
  await server.close();
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

const drawn = (runs: readonly RunRecord[]): string[] =>
  runs.map((one) => {
    const hasEnded = one.end_time !== undefined;
    const how = one.extra?.metadata?.end_reason ?? one.error?.split(':')[0] ?? '';
    const end = hasEnded ? how : 'OPEN';
    return `${'  '.repeat(one.dotted_order.split('.').length - 1)}${one.name} (${one.run_type}) ${end}`.trimEnd();
  });

const STEPS = ['  gpt (llm)', '  weather (tool)', '  gpt (llm)'];
const USAGE = {
  input_tokens: 20,
  output_tokens: 9,
  total_tokens: 29,
  input_token_details: { cache_read: 8 },
  output_token_details: { reasoning: 3 },
};

describe.each(['4', '5', '6', '7'])('ai %s', (major) => {
  it('does the same with tracing, and is recorded as every other major', async () => {
    const { bare, wrapped, runs } = await run(major, major === '7' ? laterNode() : process.execPath);
    const agent = major === '5' ? 'Agent' : 'ToolLoopAgent';

    expect(wrapped).toEqual(bare);
    expect(drawn(runs)).toEqual([
      'generateText (chain)',
      ...STEPS,
      'streamText (chain)',
      ...STEPS,
      'generateObject (chain)',
      '  gpt (llm)',
      'streamObject (chain)',
      '  gpt (llm)',
      'embedMany (chain)',
      '  emb (embedding)',
      'generateText (chain) AI_APICallError',
      '  broken (llm) AI_APICallError',
      'streamText (chain) AI_APICallError',
      '  broken (llm) AI_APICallError',
      'streamText (chain) cancelled',
      '  endless (llm) cancelled',
      ...(major === '4' ? [] : [`${agent}.generate (chain)`, ...STEPS]),
    ]);
    const calls = runs.filter((one) => one.name === 'gpt');
    for (const { outputs, extra } of calls) {
      expect(outputs?.usage_metadata).toEqual(USAGE);
      expect(extra?.metadata).toMatchObject({ ls_provider: 'openai', ls_model_name: 'gpt', usage_metadata: USAGE });
    }
    expect(JSON.stringify(runs.filter((one) => one.run_type === 'chain'))).not.toContain('usage_metadata');
    const [plain, streamed] = [0, 4].map((at) =>
      runs.slice(at, at + 4).map(({ inputs, outputs }) => [inputs, outputs]),
    );
    expect(streamed).toEqual(plain);
    const object = { city: 'Cork', rain: true };
    expect([8, 10].map((at) => runs[at]?.outputs)).toEqual(Array(2).fill({ object, finishReason: 'stop' }));
    const endless = runs.find((one) => one.name === 'endless');
    expect(endless?.outputs).toMatchObject({ messages: [{ content: 'It is raining.' }] });
  });
});
