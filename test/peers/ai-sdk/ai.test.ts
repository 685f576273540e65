import { expect, it } from 'vitest';
import type { RunRecord } from '#src/index.ts';
import { USAGE_METADATA as USAGE } from '../../support/openai-server.ts';
import { printedByAi } from '../otel-runs.ts';

interface Printed {
  readonly bare: readonly unknown[];
  readonly wrapped: readonly unknown[];
  readonly runs: readonly RunRecord[];
}

/** Returns one line per run: name, type and end, indented by the depth. */
const drawn = (runs: readonly RunRecord[]): string[] =>
  runs.map((one) => {
    const hasEnded = one.end_time !== undefined;
    const how = one.extra?.runspan_end_reason ?? one.error?.split(':')[0] ?? '';
    const end = hasEnded ? how : 'OPEN';
    return `${'  '.repeat(one.dotted_order.split('.').length - 1)}${one.name} (${one.run_type}) ${end}`.trimEnd();
  });

const STEPS = ['  gpt (llm)', '  weather (tool)', '  gpt (llm)'];

// test/integrations/ai-sdk.test.ts has major 6.
it.each(['4', '5', '7'])(
  'ai %s behaves the same with tracing, and is recorded like every other major',
  async (major) => {
    const { bare, wrapped, runs } = await printedByAi<Printed>('ai-program.mjs', major);
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
      'streamText (chain) cancelled',
      // Before version 7, the SDK reads the rest of the model's answer after its consumer has left.
      major === '7' ? '  long (llm) cancelled' : '  long (llm)',
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
    expect(runs.find((one) => one.name === 'long')?.outputs).toMatchObject(
      major === '7'
        ? { messages: [{ content: expect.stringMatching(/^(la ){1,50}$/) }] }
        : { messages: [{ content: 'la '.repeat(1_000) }], usage_metadata: USAGE },
    );
  },
);
