import { existsSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import { read } from './package/repository.ts';
import { commandsOf, masked, snippetsOf } from './package/snippets.ts';
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

const EXAMPLES = readdirSync(join(root, 'examples'))
  .map((name) => `examples/${name}/README.md`)
  .filter((page) => existsSync(join(root, page)))
  .flatMap((page) => snippetsOf(page, read(page)))
  .filter(({ code, prints }) => code.includes('npx runspan dev') && prints !== undefined)
  .map(({ place, code, prints = '' }) => [place, commandsOf(code).at(-1)?.split(' ').at(-1) ?? '', prints] as const);

/** Concurrent requests end in any order. */
const tracesIn = (text: string) => text.split('\n\n').map(masked).sort();

it.each(EXAMPLES)('%s shows what `runspan dev` prints without a key', async (_, path, prints) => {
  const { code, stdout } = await dev(path);
  expect(tracesIn(stdout)).toEqual(tracesIn(prints));
  expect(code).toBe(0);
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
