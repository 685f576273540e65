import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Stats, totalStats } from '../src/export/ledger.ts';
import { createReceiver } from '../src/receiver.ts';
import type { RunRecord } from '../src/run/record.ts';
import { root } from './support/folders.ts';
import { moduleText, runNode, runRunspan } from './support/program.ts';
import { makeOpenRun, makeRun } from './support/records.ts';
import { requestBody } from './support/request-body.ts';

const ASK_DOCS = 'examples/ask-docs/build/main.js';
const QUESTION = 'How do I fuzzy search with minisearch?';

/** The lines of the drawing at the end of what `runspan dev` printed, without times. */
const treeIn = (stdout: string): string[] =>
  (stdout.trimEnd().split('\n\n').at(-1) ?? '').replaceAll(/\d+(\.\d+)? m?s\b/g, '_').split('\n');

beforeAll(async () => {
  const { code, stdout } = await runNode(['node_modules/typescript/bin/tsc', '-p', 'examples/ask-docs']);
  if (code !== 0) throw new Error(`examples/ask-docs does not compile: ${stdout}`);
});

describe('hello', () => {
  it('draws its tree under runspan dev', async () => {
    const { code, stdout } = await runRunspan([
      'dev',
      '--port',
      '0',
      '--',
      process.execPath,
      'examples/hello/hello.js',
    ]);
    expect(treeIn(stdout)).toEqual([
      'answer · chain · _',
      '├─ search · retriever · _',
      '└─ model · llm · _ · 14 tokens (9 in, 5 out)',
    ]);
    expect(code).toBe(0);
  });

  it('is the program of the README', () => {
    const [, program] = /```js hello\.mjs\n(.*?)```\n/s.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];
    expect(program).toBe(readFileSync(join(root, 'examples/hello/hello.js'), 'utf8'));
  });

  it('runs the same without a receiver', async () => {
    expect(await runNode(['examples/hello/hello.js'])).toMatchObject({
      stdout: 'I read 2 pages.\n',
      stderr: '',
      code: 0,
    });
  });
});

describe('openai', () => {
  it('runs without a key, and draws the calls with their tokens', async () => {
    const program = 'examples/openai/openai.js';
    const { code, stdout, stderr } = await runRunspan(['dev', '--port', '0', '--', process.execPath, program]);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^The tools say: A page about tea$/m);
    expect(treeIn(stdout)).toEqual([
      'answer · chain · _',
      '├─ openai.chat.completions · llm · _ · 2 tokens (1 in, 1 out)',
      '├─ look_up · tool · _',
      '└─ openai.chat.completions · llm · _ · 12 tokens (5 in, 7 out)',
    ]);
    expect(code).toBe(0);
  });
});

describe('anthropic', () => {
  it('uses a tool and streams its answer, without a key', async () => {
    const program = 'examples/anthropic/weather.js';
    const { code, stdout, stderr } = await runRunspan(['dev', '--port', '0', '--', process.execPath, program]);
    expect(stderr).toBe('');
    expect(stdout).toContain('\nThe tool said: It rains in Paris\n');
    expect(treeIn(stdout)).toEqual([
      'answer · chain · _',
      '├─ anthropic.messages · llm · _ · 8 tokens (5 in, 3 out)',
      '├─ weather · tool · _',
      '└─ anthropic.messages · llm · _ · 15 tokens (8 in, 7 out)',
    ]);
    expect(code).toBe(0);
  });
});

describe('ai-sdk', () => {
  it('runs without a key, and draws the models and the tool below their calls', async () => {
    const program = 'examples/ai-sdk/ai-sdk.js';
    const { code, stdout, stderr } = await runRunspan(['dev', '--port', '0', '--', process.execPath, program]);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^The tools say: A page about tea$/m);
    expect(treeIn(stdout)).toEqual([
      'answer · chain · _',
      '├─ embedMany · chain · _',
      '│  └─ text-embedding-3-small · embedding · _ · 1 token in',
      '└─ streamText · chain · _',
      '   ├─ gpt-4.1-mini · llm · _ · 2 tokens (1 in, 1 out)',
      '   ├─ look_up · tool · _',
      '   └─ gpt-4.1-mini · llm · _ · 12 tokens (5 in, 7 out)',
    ]);
    expect(code).toBe(0);
  });
});

describe('ask-docs', () => {
  it('answers from the installed documents, and is traced in all three ways', async () => {
    const { code, stdout, stderr } = await runRunspan([
      'dev',
      '--port',
      '0',
      '--',
      process.execPath,
      ASK_DOCS,
      QUESTION,
    ]);
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

  it('asks a model when there is one, and records its tokens and not its key', async () => {
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

  it('says in one line what is wrong with the model, and draws where it failed', async () => {
    const model = await startModel(401, { error: { message: 'Incorrect API key' } });
    const { code, stdout, stderr } = await runRunspan(
      ['dev', '--port', '0', '--', process.execPath, ASK_DOCS, QUESTION],
      {
        OPENAI_BASE_URL: model.url,
      },
    );
    await model.close();
    const message = `The model at ${model.url} answered 401: Incorrect API key`;
    expect(stderr).toBe(`ask-docs: ${message}\n`);
    expect(treeIn(stdout).at(-1)).toBe(`└─ ask model · llm · _ · ✗ Error: ${message}`);
    expect(code).toBe(1);
  });

  it.each<[string, number | undefined, unknown, RegExp]>([
    ['that has no answer', 200, { choices: [] }, /gave no answer/],
    ['that answers no JSON', 200, undefined, /answered no JSON object/],
    ['that never answers', undefined, {}, /cannot be reached: no answer within 0\.05 s/],
    ['that is elsewhere now', 302, {}, /cannot be reached/],
  ])('explains a model %s', async (_, status, body, expected) => {
    const model = await startModel(status, body);
    const options = JSON.stringify({
      baseUrl: model.url,
      name: 'small',
      timeoutMs: status === undefined ? 50 : 10_000,
    });
    const code = `
      import { askModel } from './examples/ask-docs/build/model.js';
      await askModel(${options}, []).catch((error) => console.log(error.message));`;
    const { stdout } = await runNode(moduleText(code));
    await model.close();
    expect(stdout).toMatch(expected);
  });

  it('takes prose, and not code, tables or markup', async () => {
    const markdown = [
      '# One',
      'A [link](http://a) to *some* `code`, in a paragraph\nof **two** lines that is long enough.',
      '```js\nconst aLineOfCodeThatIsLongEnoughToBeTakenForProse = 1;\n```',
      '| a table with cells | that are long enough to be prose |',
      'Two\n---',
      '- The first item of a list, which is long enough.\n- The second_item of a list, likewise long enough.',
      '<!-- a comment that is long enough to be taken for prose -->',
      'Too short.',
    ].join('\n\n');
    const code = `
      import { paragraphsOf } from './examples/ask-docs/build/documents.js';
      console.log(JSON.stringify(paragraphsOf(${JSON.stringify(markdown)})));`;
    expect(JSON.parse((await runNode(moduleText(code))).stdout)).toEqual([
      { heading: 'One', text: 'A link to some code, in a paragraph of two lines that is long enough.' },
      { heading: 'One', text: 'The first item of a list, which is long enough.' },
      { heading: 'One', text: 'The second_item of a list, likewise long enough.' },
    ]);
  });

  it('answers nothing without a question', async () => {
    const { code, stderr } = await runNode([ASK_DOCS]);
    expect(stderr).toBe('usage: node examples/ask-docs/build/main.js "question"\n');
    expect(code).toBe(2);
  });
});

describe('langchain', () => {
  it('draws chain, tool, retriever and model, and the traced function inside of the tool', async () => {
    const program = 'examples/langchain/langchain.js';
    const { code, stdout, stderr } = await runRunspan(['dev', '--port', '0', '--', process.execPath, program]);
    expect(stderr).toBe('');
    expect(stdout).toContain('Take an umbrella up the mountain.\n');
    expect(treeIn(stdout)).toEqual([
      'plan a day · chain · _',
      '├─ gather · chain · _',
      '│  ├─ weather · tool · _',
      '│  │  └─ forecast · chain · _',
      '│  └─ Guide · retriever · _',
      '├─ ChatPromptTemplate · prompt · _',
      '├─ FakeListChatModel · llm · _',
      '└─ StrOutputParser · parser · _',
    ]);
    expect(code).toBe(0);
  });
});

describe('otel-distributed', () => {
  it('draws the spans and functions of both processes as one tree', async () => {
    const program = 'examples/otel-distributed/main.js';
    const { code, stdout, stderr } = await runRunspan(['dev', '--port', '0', '--', process.execPath, program]);
    expect(stderr).toBe('');
    expect(treeIn(stdout)).toEqual([
      'answer · chain · _',
      '└─ GET · chain · _',
      '   └─ GET / · chain · _',
      '      └─ search · retriever · _',
    ]);
    expect(code).toBe(0);
  });
});

describe('the demo', () => {
  it('shows one trace, the ledger and the count of the receiver, and that they agree', async () => {
    const { code, stdout, stderr } = await runNode(['scripts/demo/demo.mjs']);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^ask-docs · chain · /m);
    expect(stdout).toMatch(/created: 8,[\s\S]*sent: 8,\s*dropped: 0,[\s\S]*multipart: [1-9]\d*, simple: 0/);
    expect(stdout).toMatch(/^Runs that the receiver holds, by its query: 8$/m);
    expect(code).toBe(0);
  });
});

describe('the verdict of the demo', async () => {
  // A script without types; a name that the compiler can follow would have it ask for them.
  const script = new URL('../scripts/demo/delivery.mjs', import.meta.url).href;
  const { faultsOf }: { faultsOf(ledger: Stats, received: readonly RunRecord[]): string[] } = await import(script);

  const names = ['ask-docs', 'read documents', 'build prompt', 'build index', 'retrieve', 'tokenize paragraphs'];
  const types = ['chain', 'tool', 'prompt'];
  const runs = [...names, 'tokenize question'].map((name, index) =>
    makeRun(index === 0 ? '1' : `1.${index}`, name, { run_type: types[index % types.length] ?? '' }),
  );
  const ledger = { ...totalStats(), created: 7, sent: 7, requests: { multipart: 1, simple: 0 } };

  it('is good when all that was created was sent and received', () => {
    expect(faultsOf(ledger, runs)).toEqual([]);
  });

  it.each<[string, Parameters<typeof faultsOf>]>([
    ['7 runs were created and 6 sent', [{ ...ledger, sent: 6 }, runs.slice(0, 6)]],
    ['1 runs were dropped', [{ ...ledger, dropped: 1 }, runs]],
    ['7 runs were sent and 6 received', [ledger, runs.slice(0, 6)]],
    ['7 runs were sent and 8 received', [ledger, [...runs, makeRun('1.9', 'again')]]],
    ['1 runs were received without their end', [ledger, [...runs.slice(1), makeOpenRun('1', 'ask-docs')]]],
    ['the runs are in 2 traces', [ledger, [...runs.slice(1), makeRun('2', 'ask-docs')]]],
    ['nothing was sent over multipart', [{ ...ledger, requests: { multipart: 0, simple: 0 } }, runs]],
    ['2 requests fell back to simple ingestion', [{ ...ledger, requests: { multipart: 1, simple: 2 } }, runs]],
    ['missing: retrieve', [ledger, runs.map((one) => (one.name === 'retrieve' ? { ...one, name: 'find' } : one))]],
    ['the runs are of 1 types, not 3 or more', [ledger, runs.map((one) => ({ ...one, run_type: 'chain' }))]],
    ['nothing was sent over multipart', [totalStats(), []]],
  ])('names that %s', (fault, [stats, received]) => {
    expect(faultsOf(stats, received)).toContain(fault);
  });
});

/** A model that answers every request alike; without a status it never does. */
async function startModel(status: number | undefined, body: unknown) {
  const requests: { path: string | undefined; authorization: string | undefined; body: unknown }[] = [];
  const server = createServer(async (request, response) => {
    const { url: path, headers } = request;
    const sent = await requestBody(request);
    if (sent === undefined) return;
    requests.push({ path, authorization: headers.authorization, body: JSON.parse(sent.toString()) });
    if (status === undefined) return;
    response.writeHead(status, { location: '/elsewhere' }).end(body === undefined ? '<html>' : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, close };
}
