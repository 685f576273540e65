import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import { root } from './support/folders.ts';
import { closeServer, listen } from './support/listen.ts';
import { runNode, runRunspan } from './support/program.ts';
import { requestBody } from './support/request-body.ts';

const ASK_DOCS = 'examples/ask-docs/build/main.js';
const QUESTION = 'How do I fuzzy search with minisearch?';

/** The lines of the drawing at the end of what `runspan dev` printed, without times and the link. */
const treeIn = (stdout: string): string[] =>
  (stdout.trimEnd().split('\n\n').at(-1) ?? '')
    .replaceAll(/\d+(\.\d+)? m?s\b/g, '_')
    .split('\n')
    .slice(0, -1);

const dev = (...program: string[]) => runRunspan(['dev', '--port', '0', '--', process.execPath, ...program]);

beforeAll(async () => {
  const { code, stdout } = await runNode(['node_modules/typescript/bin/tsc', '-p', 'examples/ask-docs']);
  if (code !== 0) throw new Error(`examples/ask-docs does not compile: ${stdout}`);
});

const EXAMPLES: readonly (readonly [path: string, says: RegExp, tree: readonly string[]])[] = [
  [
    'hello/hello.js',
    /^I read 2 pages\.$/m,
    ['answer · chain · _', '├─ search · retriever · _', '└─ model · llm · _ · 14 tokens (9 in, 5 out)'],
  ],
  [
    'openai/openai.js',
    /^The tools say: A page about tea$/m,
    [
      'answer · chain · _ · 14 tokens (6 in, 8 out) · $0.0000149',
      '├─ openai.chat.completions · llm · _ · 2 tokens (1 in, 1 out) · $0.00000200',
      '├─ look_up · tool · _',
      '└─ openai.chat.completions · llm · _ · 12 tokens (5 in, 7 out) · $0.0000129 · 20 % cached',
    ],
  ],
  [
    'anthropic/weather.js',
    /^The tool said: It rains in Paris$/m,
    [
      'answer · chain · _ · 23 tokens (13 in, 10 out) · $0.0000630',
      '├─ anthropic.messages · llm · _ · 8 tokens (5 in, 3 out) · $0.0000200',
      '├─ weather · tool · _',
      '└─ anthropic.messages · llm · _ · 15 tokens (8 in, 7 out) · $0.0000430',
    ],
  ],
  [
    'ai-sdk/ai-sdk.js',
    /^The tools say: A page about tea$/m,
    [
      'answer · chain · _ · 15 tokens (7 in, 8 out) · $0.0000149',
      '├─ embedMany · chain · _',
      '│  └─ text-embedding-3-small · embedding · _ · 1 token in · $0.0000000200',
      '└─ streamText · chain · _',
      '   ├─ gpt-4.1-mini · llm · _ · 2 tokens (1 in, 1 out) · $0.00000200',
      '   ├─ look_up · tool · _',
      '   └─ gpt-4.1-mini · llm · _ · 12 tokens (5 in, 7 out) · $0.0000129 · 20 % cached',
    ],
  ],
  [
    'langchain/langchain.js',
    /^Take an umbrella up the mountain\.$/m,
    [
      'plan a day · chain · _',
      '├─ gather · chain · _',
      '│  ├─ weather · tool · _',
      '│  │  └─ forecast · chain · _',
      '│  └─ Guide · retriever · _',
      '├─ ChatPromptTemplate · prompt · _',
      '├─ FakeListChatModel · llm · _',
      '└─ StrOutputParser · parser · _',
    ],
  ],
];

it.each(EXAMPLES)('the example %s works without a key, and `runspan dev` draws its runs', async (path, says, tree) => {
  const { code, stdout, stderr } = await dev(`examples/${path}`);
  expect([code, stderr]).toEqual([0, path.startsWith('hello') ? expect.any(String) : '']);
  expect(stdout).toMatch(says);
  expect(treeIn(stdout)).toEqual(tree);
});

it('the example hello is the program of the README', () => {
  const [, program] = /```js hello\.mjs\n(.*?)```\n/s.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];
  expect(program).toBe(readFileSync(join(root, 'examples/hello/hello.js'), 'utf8'));
});

describe('ask-docs', () => {
  it('answers from the installed documents, and is traced in three ways', async () => {
    const { code, stdout, stderr } = await dev(ASK_DOCS, QUESTION);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/fuzzy/i);
    const [, found, searched] = /Answered by extraction, from (\d+) of (\d+) paragraphs:\n/.exec(stdout) ?? [];
    expect(Number(found)).toBe(5);
    expect(Number(searched)).toBeGreaterThan(2_000);
    expect(stdout).toMatch(/\[1\] minisearch\/README\.md/);
    expect(treeIn(stdout)).toEqual([
      'ask-docs · chain · _',
      '├─ read documents · tool · _',
      '├─ build index · chain · _',
      '│  └─ tokenize paragraphs · tool · _',
      '├─ retrieve · retriever · _',
      '│  └─ tokenize question · tool · _',
      '├─ build prompt · prompt · _',
      '└─ extract answer · parser · _',
    ]);
    expect(code).toBe(0);
  });

  it('sends the question to a configured model, and records its tokens but not its key', async () => {
    const model = await startModel(200, {
      choices: [{ message: { role: 'assistant', content: 'Set fuzzy to 0.2 [1].' } }],
      usage: { prompt_tokens: 900, completion_tokens: 11 },
    });
    const receiver = await createReceiver();
    const { code, stdout, stderr } = await runNode([ASK_DOCS, QUESTION], {
      RUNSPAN_ENDPOINT: receiver.url,
      OPENAI_BASE_URL: `${model.url}/v1/`,
      OPENAI_API_KEY: 'a-secret',
      OPENAI_MODEL: 'small',
    });
    const runs = await receiver.runs();
    await Promise.all([receiver.close(), model.close()]);

    expect(stderr).toBe('');
    expect(stdout).toMatch(/^Set fuzzy to 0\.2 \[1\]\.\n\nAnswered by the model small, from 5 of/);
    expect(code).toBe(0);
    expect(model.requests).toMatchObject([
      { path: '/v1/chat/completions', authorization: 'Bearer a-secret', body: { model: 'small' } },
    ]);
    expect(JSON.stringify(model.requests)).toContain(QUESTION);
    expect(runs.find(({ name }) => name === 'ask model')).toMatchObject({
      run_type: 'llm',
      extra: { metadata: { usage_metadata: { input_tokens: 900, output_tokens: 11 } } },
    });
    expect(JSON.stringify(runs)).not.toContain('a-secret');
  });

  it('prints one line with the error of the model', async () => {
    const model = await startModel(401, { error: { message: 'Incorrect API key' } });
    const { code, stderr } = await runNode([ASK_DOCS, QUESTION], { OPENAI_BASE_URL: model.url });
    await model.close();
    const message = `The model at ${model.url} answered 401: Incorrect API key`;
    expect(stderr).toBe(`ask-docs: ${message}\n`);
    expect(code).toBe(1);
  });
});

async function startModel(status: number, body: unknown) {
  const requests: { path: string | undefined; authorization: string | undefined; body: unknown }[] = [];
  const server = createServer(async (request, response) => {
    const { url: path, headers } = request;
    const sent = await requestBody(request);
    if (sent === undefined) return;
    requests.push({ path, authorization: headers.authorization, body: JSON.parse(sent.toString()) });
    response.writeHead(status).end(JSON.stringify(body));
  });
  return { url: await listen(server), requests, close: () => closeServer(server) };
}
