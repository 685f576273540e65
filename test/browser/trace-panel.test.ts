import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { expectAccessible } from './axe.ts';
import { openPage } from './page.ts';
import { idOf, run } from './runs.ts';

const ERROR = [
  'ToolError: issue_refund failed',
  '    at runTool (/app/src/agent.ts:88:20)',
  '    at async Object.execute (/app/node_modules/ai/dist/index.js:3573:46)',
  'Caused by: HttpError: POST /refunds answered 422',
  '    at runTool (/app/src/agent.ts:88:20)',
  'Caused by: RefundRefused: order 1042 is too old',
  '    at issueRefund (file:///app/src/refund.ts:41:11)',
  '    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)',
].join('\n');

const usage = (total_tokens: number, total_cost: number) => ({ usage_metadata: { total_tokens, total_cost } });
const model = { metadata: { ls_model_name: 'gpt-4.1-mini' } };

/** A request whose root has no payloads: 1,000 ms, of which 700 are model calls and 100 another tool. */
const trace = [
  run(1, {
    name: 'POST /chat',
    at: 0,
    ms: 1_000,
    extra: { metadata: { 'http.response.status_code': 422, recorded_by: ['http'] } },
  }),
  run(2, {
    parent: 1,
    name: 'agent',
    at: 0,
    ms: 950,
    inputs: {
      messages: [
        { role: 'system', content: 'You are kind.' },
        { role: 'user', content: 'Refund order 1042' },
      ],
    },
    outputs: { text: 'It is **too old**.', finishReason: 'stop', steps: 2 },
    extra: { metadata: { user_id: 'ada', thread_id: 't-1' } },
  }),
  run(3, { parent: 2, name: 'think', run_type: 'llm', at: 0, ms: 300, outputs: usage(300, 0.003), extra: model }),
  run(4, {
    parent: 2,
    name: 'issue_refund',
    run_type: 'tool',
    at: 300,
    ms: 100,
    inputs: { orderId: 1042, reason: 'broken' },
    error: ERROR,
  }),
  run(5, {
    parent: 2,
    name: 'lookup',
    run_type: 'tool',
    at: 400,
    ms: 1,
    inputs: { id: '1042' },
    outputs: { output: { total: 42 } },
  }),
  run(6, { parent: 2, name: 'write', run_type: 'llm', at: 500, ms: 400, outputs: usage(100, 0.001), extra: model }),
];
const TRACE = `/?trace=${idOf(1)}`;
const NARROW = { width: 390, height: 844 };

const textOf = async (page: Page, name: string): Promise<string> =>
  (await page.getByRole('region', { name, exact: true }).textContent()) ?? '';

test('the root of a request is shown as the question, the tools and the answer of the runs below it', async () => {
  const { page, see } = await openPage(trace, { path: TRACE });
  await see('lookup');
  await page.getByText('→ { total: 42 }').waitFor();
  await expect
    .poll(() => textOf(page, 'asked'))
    .toBe('askedRefund order 1042system prompt, 3 wordssystemYou are kind.');
  expect(await textOf(page, 'did')).toContain('issue_refund(orderId: 1042, reason: "broken")');
  expect(await textOf(page, 'did')).toContain('lookup("1042")');
  await page.getByRole('region', { name: 'answered' }).locator('strong', { hasText: 'too old' }).waitFor();
  await page.getByText('422, 2 steps, finish reason stop').waitFor();
  const facts = await page.locator('.panel > .facts').textContent();
  expect(facts).toBe('Modelgpt-4.1-mini ×2Tokens400Cost$0.0040UseradaThreadt-1');
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  await page.getByRole('region', { name: 'Inputs' }).getByText('messages:').waitFor();
  await page.getByRole('button', { name: 'Conversation' }).click();
  await page.getByRole('button', { name: 'issue_refund', exact: true }).click();
  await page.getByRole('article', { name: 'Run issue_refund' }).waitFor();
});

test('the header of a trace says what failed below its root, and leads there', async () => {
  const { page } = await openPage(trace, { path: TRACE });
  await page.getByRole('button', { name: '1 failed below: order 1042 is too old' }).click();
  await page.getByRole('article', { name: 'Run issue_refund' }).waitFor();
});

test('a failure shows its deepest cause, the chain, the own frames, and the command that makes a test', async () => {
  const { page } = await openPage(trace, { path: `${TRACE}&run=${idOf(4)}` });
  const failure = page.getByRole('region', { name: 'Error' });
  await failure.locator('.headline', { hasText: 'order 1042 is too old' }).waitFor();
  expect(await failure.locator('.chain li').allTextContents()).toEqual([
    'causeRefundRefused: order 1042 is too old',
    'led toHttpError: POST /refunds answered 422',
    'led toToolError: issue_refund failed',
  ]);
  expect(await failure.locator('.frames:visible li').allTextContents()).toEqual([
    'issueRefund /app/src/refund.ts:41:11',
    'runTool /app/src/agent.ts:88:20',
  ]);
  await failure.getByText('2 frames in node_modules and node:').click();
  expect(await failure.locator('.frames:visible li').count()).toBe(4);
  await failure.getByText(`npx runspan test ${idOf(1)}`).waitFor();
});

test('the tree has tokens and costs with those below, marks the slowest path, and says where time and money went', async () => {
  const { page } = await openPage(trace, { path: TRACE });
  const row = (name: string) => page.getByRole('row', { name });
  await row('write').waitFor();
  expect(await row('agent').locator('.number').allTextContents()).toEqual(['400', '$0.0040']);
  expect(await page.locator('.slow .run-name').allTextContents()).toEqual(['POST /chat', 'agent', 'write']);
  expect(await row('write').locator('.length').textContent()).toBe('400 ms · 40 %');
  expect(await textOf(page, 'Where the time went')).toBe(
    'Where the time wentmodel calls 700 ms 70 %tools 101 ms 10 %between 199 ms 20 %',
  );
  expect(await textOf(page, 'Where the money went')).toBe(
    'Where the money wentcall 1: think $0.0030 75 %call 2: write $0.0010 25 %',
  );
});

test('the page of a trace has no violation of WCAG, for the root, a model call, a tool and a failure', async () => {
  const { page, go } = await openPage(trace, { path: TRACE, colorScheme: 'light' });
  for (const [id, ready] of [
    [1, '.talk'],
    [3, '.facts'],
    [4, '.failure'],
    [5, '.json'],
  ] as const) {
    for (const viewport of [{ width: 1440, height: 900 }, NARROW]) {
      await page.setViewportSize(viewport);
      await go(`${TRACE}&run=${idOf(id)}`);
      await page.locator(`.panel ${ready}`).first().waitFor();
      await expectAccessible(page, { id, viewport });
    }
  }
});

test('a narrow screen leads from the steps to the conversation and to the failure', async () => {
  const { page } = await openPage(trace, { path: TRACE, viewport: NARROW });
  await page.getByRole('treegrid').waitFor();
  expect((await page.locator('.tree-row').first().boundingBox())?.height).toBe(55);
  await page.getByRole('button', { name: 'Conversation' }).first().click();
  await page.getByRole('region', { name: 'asked' }).waitFor();
  expect(await page.getByRole('treegrid').isVisible()).toBe(false);
  await page.getByRole('button', { name: 'The failure' }).click();
  await page.getByRole('article', { name: 'Run issue_refund' }).waitFor();
  await page.getByRole('button', { name: 'Steps' }).click();
  await page.getByRole('treegrid').waitFor();
});

test('a tool that only the messages tell of has a row, a step, and a panel that leads to both model calls', async () => {
  const asked = { role: 'user', content: 'Where is order 1042?' };
  const called = {
    role: 'assistant',
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'lookup', arguments: '{"orderId":1042}' } }],
  };
  const result = { role: 'tool', tool_call_id: 'call_1', content: '{"status":"lost"}' };
  const call = { parent: 1, run_type: 'llm', ms: 100, name: 'openai' };
  const { page } = await openPage(
    [
      run(1, { name: 'agent', at: 0, ms: 500, inputs: { question: 'Where?' }, outputs: { answer: 'Lost' } }),
      run(2, { ...call, at: 0, inputs: { messages: [asked] }, outputs: { choices: [{ message: called }] } }),
      run(3, { ...call, at: 250, inputs: { messages: [asked, called, result] }, outputs: { content: 'It is lost.' } }),
    ],
    { path: TRACE },
  );
  await page.getByText('→ lost').waitFor();
  expect(await textOf(page, 'did')).toContain('lookup(1042)from the messages≤ 150 ms');
  const row = page.getByRole('row', { name: 'lookup' });
  expect(await row.locator('.length').textContent()).toBe('≤ 150 ms');
  await row.click();
  const panel = page.getByRole('article', { name: 'Tool lookup' });
  await panel.getByRole('region', { name: 'Inputs' }).getByText('{ orderId: 1042 }').waitFor();
  await panel.getByRole('region', { name: 'Outputs' }).getByText('{ status: "lost" }').waitFor();
  await panel.getByRole('button', { name: 'Model call that got the result' }).click();
  await page.getByRole('region', { name: 'Outputs' }).getByText('It is lost.').waitFor();
});
