// A model call that both an instrumentation and a wrapper record becomes one run, so its tokens count once. The
// instrumentations follow these conventions:
// https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md and
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { startLocalModel } from '../support/local-model/server.js';
import { type OpenAiServer, startOpenAiServer } from '../support/openai-server.ts';
import { runNode } from '../support/program.ts';

const program = fileURLToPath(new URL('./otel-both-program.mjs', import.meta.url));

let server: OpenAiServer;

beforeAll(async () => {
  server = await startOpenAiServer();
});

afterAll(() => server.close());

interface Traced {
  readonly result: unknown;
  /** Number of calls that the instrumentation recorded. */
  readonly seen: number;
  readonly drawn: readonly string[];
}

/** Runs the program with each wrapper. Returns its results, and one line per run. */
async function traced(instrumentation: string, wrappers: readonly string[], url = server.url): Promise<Traced[]> {
  const environment = { TRACELOOP_TELEMETRY: 'false' };
  const { code, stdout, stderr } = await runNode([program, instrumentation, url, ...wrappers], environment);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const results = JSON.parse(stdout) as { result: unknown; seen: number; runs: RunRecord[] }[];
  return results.map(({ runs, ...rest }) => ({ ...rest, drawn: drawn(runs) }));
}

function drawn(runs: readonly RunRecord[], parent?: string, indent = ''): string[] {
  const children = runs.filter(({ parent_run_id }) => parent_run_id === parent);
  const lines = children.map((run) => {
    const usage = (run.outputs?.usage_metadata ?? {}) as { input_tokens?: number };
    const name = run.name.replace(/127\.0\.0\.1:\d+/, 'host');
    const said = [name, run.run_type, usage.input_tokens, run.error?.split('\n', 1)[0]].filter(Boolean).join(' ');
    return [`${indent}${said}`, ...drawn(runs, run.id, `${indent}  `)].join('\n');
  });
  return lines.sort().flatMap((text) => text.split('\n'));
}

const ANSWERS = ['It is raining.', '', 'It ', 'is ', 'raining', '.', '', '', 1, 400];

// Traceloop's instrumentations do not record embeddings.
describe.each([
  ['no instrumentation', 0, ['wrapOpenAI']],
  ['openinference', 4, ['wrapOpenAI', 'handler']],
  ['traceloop', 3, ['wrapOpenAI', 'handler']],
  ['traceloop-0.22', 3, ['wrapOpenAI', 'handler']],
  ['otel', 4, ['wrapOpenAI', 'handler']],
])('%s', (instrumentation, seen, wrappers) => {
  let wrapped: Traced | undefined;
  let handled: Traced | undefined;
  beforeAll(async () => {
    [wrapped, handled] = await traced(instrumentation, wrappers);
  });

  test('and wrapOpenAI record a call once, with the request below it', () => {
    expect(wrapped).toEqual({
      result: ANSWERS,
      seen,
      drawn: [
        'answer chain',
        '  ask chain',
        '    openai.chat.completions llm 20',
        '      POST host/v1/chat/completions chain',
        '  openai.chat.completions llm 20',
        '    POST host/v1/chat/completions chain',
        '  openai.chat.completions llm BadRequestError: 400 no such tune',
        '    POST host/v1/chat/completions chain HTTP 400',
        '  openai.embeddings embedding 4',
        '    POST host/v1/embeddings chain',
      ],
    });
  });

  test.runIf(wrappers.includes('handler'))(
    'and the LangChain handler each record a call, with the HTTP request nested under the span',
    () => {
      const answer = 'It is raining.';
      expect(handled).toMatchObject({ result: [answer, answer, answer], seen: 3 });
      const lines = handled?.drawn ?? [];
      expect(lines.filter((line) => / llm 20$/.test(line))).toHaveLength(6);
      expect(lines.filter((line) => line.includes('ChatOpenAI'))).toEqual([
        '  ChatOpenAI llm 20',
        '    ChatOpenAI llm 20',
        '    ChatOpenAI llm 20',
      ]);
      expect(lines.filter((line) => line.includes('POST'))).toEqual(
        Array.from({ length: 3 }, () => '    POST host/v1/chat/completions chain'),
      );
    },
  );
});

test('otel, which returns plain promises of streamed responses, and wrapOpenAI record the tokens of one once', async () => {
  const model = await startLocalModel();
  onTestFinished(() => model.close());
  const [streamed] = await traced('otel', ['streamedResponse'], `${model.url}/v1`);
  expect(streamed).toEqual({
    result: 'response.completed',
    seen: 1,
    drawn: ['answer chain', '  openai.responses llm 1', '    POST host/v1/responses chain'],
  });
});
