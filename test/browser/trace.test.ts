import type { Page } from 'playwright-core';
import { DEFAULT_SCOPE } from 'runspan/receiver';
import { expect, test } from 'vitest';
import type { EndReason } from '#src/run/record.ts';
import { openPage, rowCount } from './page.ts';
import { idOf, run } from './runs.ts';

function largeTrace(count: number) {
  const operations = [run(1, { name: 'root', inputs: { question: 'Why?' }, ms: count })];
  for (let index = 2; index <= count; index++) {
    const step = index - ((index - 2) % 50);
    operations.push(run(index, { parent: step === index ? 1 : step, ms: 3 }));
  }
  return operations;
}

const ended = (reason: EndReason) => ({ extra: { runspan_end_reason: reason } });
const small = [
  run(1, { name: 'agent', ms: 1_000 }),
  run(2, { parent: 1, name: 'plan', ms: 100 }),
  run(3, {
    parent: 2,
    name: 'think',
    run_type: 'llm',
    ms: 50,
    inputs: { messages: [{ role: 'user', content: 'Find the needle' }] },
    outputs: { content: 'Found **it**\n\n```js\nconst n = 1;\n```\n\n```unknown\nplain\n```' },
  }),
  run(4, { parent: 1, name: 'act', run_type: 'tool', ms: 200, error: 'ToolError: broken\n    at act (app.js:1:1)' }),
  run(5, { parent: 1, name: 'wait' }),
  run(6, { parent: 1, name: 'lost', ms: 5, ...ended('interrupted'), error: 'Interrupted: SIGTERM' }),
  run(7, { parent: 1, name: 'left', ms: 5, ...ended('cancelled'), error: 'AbortError: stop' }),
  run(8, { parent: 1, name: 'half', ms: 5, ...ended('incomplete'), error: 'Incomplete: its program went on' }),
];
const TRACE = `/?trace=${idOf(1)}`;

test('a trace of 10,000 runs has fewer than 100 rows in the document, and fetches one payload', async () => {
  const { page, requests, see } = await openPage(largeTrace(10_000), { path: TRACE });
  await see('10,000 runs');
  await see('Why?');
  expect(await rowCount(page)).toBeLessThan(100);
  await page.locator('.tree-rows').evaluate((element) => element.scrollTo({ top: 1e7 }));
  await see('run 10000');
  expect(await rowCount(page)).toBeLessThan(100);
  const paths = requests.map((request) => new URL(request.url()).pathname);
  expect(paths.filter((path) => /\/(inputs|outputs|events)$/.test(path))).toEqual([`/query/runs/${idOf(1)}/inputs`]);
});

test('a payload of 20 MB is fetched when its run is selected, and shown in part', async () => {
  const items = Array.from({ length: 20_000 }, (_, index) => ({ index, text: 'x'.repeat(1_000) }));
  const { page, requests, see } = await openPage(
    [
      run(1, { ms: 9, inputs: { question: 'Why?' }, outputs: { answer: 'So' } }),
      run(2, { parent: 1, ms: 3, inputs: { items }, outputs: { text: 'y'.repeat(5_000_000) } }),
    ],
    { path: TRACE },
  );
  await see('run 2');
  await see('So');
  const fetched = () =>
    new Set(requests.filter((one) => one.url().includes(`${idOf(2)}/`)).map((one) => one.url().slice(-7)));
  expect(fetched()).toEqual(new Set());
  await page.keyboard.press('j');
  await page.getByText('items:').waitFor();
  expect(await rowCount(page)).toBeLessThan(100);
  await page.getByText('Show more').first().waitFor();
  expect(await page.locator('main').evaluate((element) => (element.textContent ?? '').length)).toBeLessThan(100_000);
  expect(fetched()).toEqual(new Set(['/inputs', 'outputs']));
});

test('the status of a run is a word', async () => {
  const { page } = await openPage(small, { path: TRACE });
  const statuses = { act: 'error', wait: 'pending', lost: 'interrupted', left: 'cancelled', half: 'incomplete' };
  for (const [name, status] of Object.entries(statuses)) {
    await page.getByRole('row', { name }).getByText(status, { exact: true }).waitFor();
  }
});

test('the tree shows the outer record of a call with all that is known of it, and the others on request', async () => {
  const usage = { outputs: { usage_metadata: { total_tokens: 10 } }, run_type: 'llm', ms: 90 };
  const from = (source: string) => ({
    ...usage,
    extra: { metadata: { recorded_by: [source], response_id: 'resp_1' } },
  });
  const runs = [
    run(1, { name: 'agent', ms: 1_000 }),
    run(2, { parent: 1, name: 'langchain', ...from('langchain') }),
    run(3, { parent: 2, name: 'openai', ...from('wrapOpenAI'), error: 'Error: broken' }),
    run(5, { parent: 3, name: 'log' }),
    run(4, { parent: 1, name: 'beside', ...from('fetch'), inputs: { input: 'What is up?' } }),
  ];
  const { page, see } = await openPage(runs, { path: TRACE });
  await see('10 tokens');
  expect(await page.getByText('error', { exact: false }).count()).toBe(1);
  expect(await names(page)).toEqual(['agent', 'langchain', 'log']);
  await page.getByRole('row', { name: 'langchain' }).click();
  await see('What is up?');
  await page.getByTitle('Show or hide the other records of this call wrapOpenAI, fetch').click();
  await expect.poll(() => names(page)).toEqual(['agent', 'langchain', 'openai', 'beside', 'log']);
  await page.getByRole('button', { name: '+2 records' }).click();
  await expect.poll(() => names(page)).toEqual(['agent', 'langchain', 'log']);
});

const names = (page: Page): Promise<string[]> => page.locator('.run-name').allTextContents();

test('steps and metadata of a framework are hidden until the user shows them, and the choice is kept', async () => {
  const metadata = { ls_provider: 'openai', langgraph_step: 1, plan: 'pro' };
  const runs = [
    run(1, { name: 'agent', ms: 900, extra: { metadata } }),
    run(2, { parent: 1, name: '__start__', ms: 1 }),
    run(3, { parent: 1, name: 'RunnableLambda', ms: 50 }),
    run(4, { parent: 3, name: 'model', run_type: 'llm', ms: 40 }),
    run(5, { parent: 1, name: 'RunnableLambda', ms: 5, error: 'Error: no' }),
  ];
  const { page, see } = await openPage(runs, { path: TRACE });
  await page.getByText('1 key · 2 internal keys').click();
  await see('plan');
  expect(await names(page)).toEqual(['agent', 'model', 'RunnableLambda']);
  expect(await page.getByRole('row', { name: 'model' }).getAttribute('aria-level')).toBe('2');
  expect(await page.getByText('ls_provider').count()).toBe(0);
  await page.getByRole('button', { name: '+2 internal keys' }).click();
  await see('langgraph_step');
  await expect.poll(() => names(page)).toEqual(['agent', '__start__', 'RunnableLambda', 'model', 'RunnableLambda']);
  expect(await page.getByRole('row', { name: 'model' }).getAttribute('aria-level')).toBe('3');
  await page.reload();
  await page.getByText('Metadata').click();
  await see('ls_provider');
  await page.getByRole('button', { name: '+2 internal steps' }).click();
  await expect.poll(() => names(page)).toEqual(['agent', 'model', 'RunnableLambda']);
  await page.getByRole('searchbox').fill('__start__');
  await expect.poll(() => names(page)).toEqual(['agent', '__start__']);
});

test('equal calls that follow each other are one row, until the user shows them', async () => {
  const runs = [run(1, { name: 'agent', ms: 900 })];
  for (let index = 2; index <= 61; index++) runs.push(run(index, { parent: 1, name: 'embed', ms: 3 }));
  runs.push(
    run(70, { parent: 1, name: 'embed', ms: 3, error: 'Error: no' }),
    run(71, { parent: 1, name: 'act', ms: 3 }),
  );
  const { page } = await openPage(runs, { path: TRACE });
  const count = () => page.getByRole('treegrid').getAttribute('aria-rowcount');
  await page.getByRole('button', { name: '× 60' }).waitFor();
  expect(await names(page)).toEqual(['agent', 'embed', 'embed', 'act']);
  await page.getByRole('button', { name: '× 60' }).click();
  await expect.poll(count).toBe('63');
  await page.getByRole('button', { name: '× 60' }).click();
  await expect.poll(count).toBe('4');
});

test.each([
  ['a text', { answer: '**bold** words' }],
  ['a text with short fields', { role: 'assistant', answer: '**bold** words, and many more of them' }],
  ['a list of messages', { messages: [{ role: 'assistant', content: '**bold** words' }] }],
])('the answer of a trace is shown as Markdown if it is %s, and as JSON on request', async (_, outputs) => {
  const { page } = await openPage([run(1, { ms: 9, outputs })], { path: TRACE });
  await page.getByRole('region', { name: 'answered' }).locator('strong', { hasText: 'bold' }).waitFor();
  await page.getByRole('button', { name: 'JSON' }).click();
  await page.getByRole('region', { name: 'Outputs' }).getByText('**bold** words').waitFor();
});

test('an answer with other data, and the output of a step, are shown as JSON', async () => {
  const answer = { sources: [{ title: 'a long title' }, { title: 'another title' }] };
  const runs = [
    run(1, { ms: 9, outputs: answer }),
    run(2, { parent: 1, run_type: 'tool', ms: 3, outputs: { a: '**b**' } }),
  ];
  const { page } = await openPage(runs, { path: TRACE });
  const isJson = () =>
    page.getByRole('region', { name: 'Outputs' }).getByRole('button', { name: 'JSON' }).getAttribute('aria-pressed');
  await page.getByRole('region', { name: 'answered' }).locator('.json').waitFor();
  await page.keyboard.press('j');
  await page.getByText('"**b**"').waitFor();
  expect(await isJson()).toBe('true');
});

test('keys move through the tree, and collapse and expand it', async () => {
  const { page, see } = await openPage(small, { path: TRACE });
  await see('think');
  const press = async (key: string, selected: number): Promise<void> => {
    await page.keyboard.press(key);
    await expect
      .poll(() => page.getByRole('treegrid').getAttribute('aria-activedescendant'))
      .toBe(`line-${idOf(selected)}`);
  };
  await press('j', 2);
  await press('h', 2);
  await expect.poll(() => page.getByText('think', { exact: true }).count()).toBe(0);
  expect(await page.locator(`#line-${idOf(2)}`).getAttribute('aria-expanded')).toBe('false');
  await press('l', 2);
  await press('l', 3);
  expect(await page.locator(`#line-${idOf(3)}`).getAttribute('aria-level')).toBe('3');
  await press('h', 2);
  await press('n', 4);
  await see('ToolError: broken');
  await see('act app.js:1:1');
});

test('the tree can be narrowed to errors, and to a text whose hits are counted, selected and marked', async () => {
  const { page, see } = await openPage(small, { path: TRACE });
  await see('think');
  await page.keyboard.press('e');
  await expect.poll(() => names(page)).toEqual(['agent', 'act', 'lost', 'half']);
  await page.keyboard.press('e');
  await page.keyboard.press('/');
  await page.keyboard.type('needle');
  await expect.poll(() => names(page)).toEqual(['agent', 'plan', 'think']);
  await see('1 hit');
  await page.keyboard.press('Enter');
  await see('1 of 1 hit');
  await see('Find the needle');
  await expect.poll(() => page.evaluate(`[...CSS.highlights.get('hit')].map(String)`)).toEqual(['needle']);
});

test('a model call is a conversation, as Markdown with highlighted code or as plain text', async () => {
  const { page, store, see } = await openPage(small, { path: `${TRACE}&run=${idOf(3)}` });
  await see('Find the needle');
  await page.locator('strong', { hasText: 'it' }).waitFor();
  await page.locator('pre .code-keyword', { hasText: 'const' }).waitFor();
  expect(await page.locator('pre', { hasText: 'plain' }).locator('span').count()).toBe(0);
  await store.apply(DEFAULT_SCOPE, [run(20, { parent: 1, name: 'newcomer', ms: 1 })]);
  await see('newcomer');
  await page.keyboard.press('m');
  await page.getByText('Found **it**').waitFor();
  await page.getByRole('button', { name: 'JSON' }).first().click();
  await page.getByText('messages:').waitFor();
});

test('a payload that is not visible is not fetched', async () => {
  const { page, requests, see } = await openPage(small, { path: TRACE, viewport: { width: 390, height: 800 } });
  const payloads = () => requests.filter((request) => request.url().endsWith('puts')).length;
  await see('think');
  await page.locator('.panel .facts').waitFor({ state: 'attached' });
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
  expect(payloads()).toBe(0);
  await page.getByText('think', { exact: true }).click();
  await see('Find the needle');
  expect(payloads()).toBe(2);
});

test('two runs are compared line by line', async () => {
  const { page, see } = await openPage(small, { path: `${TRACE}&run=${idOf(3)}` });
  await see('Find the needle');
  await page.keyboard.press('c');
  await page.getByText('Compare think with').waitFor();
  await page.keyboard.press('k');
  await page.getByRole('heading', { name: 'plan' }).waitFor();
  await page.keyboard.press('c');
  await page.locator('.diff-removed', { hasText: 'Find the needle' }).waitFor();
  expect(new URL(page.url()).searchParams.get('base')).toBe(idOf(3));
  await page.keyboard.press('Escape');
  await page.getByRole('treegrid').waitFor();
  await page.goForward();
  await page.getByRole('link', { name: 'plan' }).click();
  await page.getByRole('treegrid').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('grid', { name: 'Runs' }).waitFor();
});

test('a comparison of two traces returns to the list with Escape or the button', async () => {
  const { page } = await openPage([run(1, { ms: 5 }), run(2, { ms: 5 })]);
  await page.getByText('run 2', { exact: true }).waitFor();
  const compare = async () => {
    for (const key of ['j', 'c', 'k', 'c']) await page.keyboard.press(key);
    await page.getByRole('region', { name: 'Comparison of two runs' }).waitFor();
  };
  await page.keyboard.press('j');
  await compare();
  await page.keyboard.press('Escape');
  await page.getByRole('grid', { name: 'Traces' }).waitFor();
  await compare();
  await page.getByRole('button', { name: 'Back' }).click();
  await page.getByRole('grid', { name: 'Traces' }).waitFor();
});

test.each([
  [`?view=compare&base=${idOf(2)}`, 'The URL does not name a second run.'],
  [`?view=compare&run=${idOf(2)}`, 'The URL does not name a first run.'],
  [`?view=compare&base=${idOf(2)}&run=zz`, 'The id in the URL is not valid.'],
  ['?trace=zz', 'The id in the URL is not valid.'],
])('the invalid address %s is explained, and Escape opens the list', async (path, text) => {
  const { page, see } = await openPage(small, { path: `/${path}` });
  await see(text);
  await page.keyboard.press('Escape');
  await page.getByRole('grid', { name: 'Traces' }).waitFor();
});

test('a run without a duration has one label on its axis', async () => {
  const { page } = await openPage([run(1, { ms: 0 })], { path: `/?trace=${idOf(1)}` });
  await page.getByRole('treegrid').waitFor();
  expect(await page.locator('.ticks span').allTextContents()).toEqual(['0 ms']);
});

test('statistics apply the filter, follow the theme, and link to the runs of a group', async () => {
  const { page } = await openPage(small, { path: '/?view=statistics&q=type%3Atool' });
  await page.getByRole('img', { name: /^Runs\. errors: at most 1/ }).waitFor();
  const pixels = () =>
    page
      .locator('.chart canvas')
      .first()
      .evaluate((canvas) => (canvas as unknown as { toDataURL: () => string }).toDataURL());
  const before = await pixels();
  await page.getByRole('button', { name: 'Theme: system' }).click();
  await expect.poll(pixels).not.toBe(before);
  await page.getByRole('link', { name: 'act' }).click();
  await page.getByRole('grid', { name: 'Runs' }).waitFor();
  expect(new URL(page.url()).searchParams.get('q')).toBe('type:tool name:act');
});

test('the statistics open with the last 24 hours, and the other views show all time again', async () => {
  const { page } = await openPage(small);
  const filterIn = () => new URL(page.url()).searchParams.get('q');
  const time = page.getByRole('button', { name: /^Time: / });
  await page.getByRole('link', { name: 'Statistics' }).click();
  await page.getByRole('heading', { name: 'No matches' }).waitFor();
  expect([filterIn(), await time.textContent()]).toEqual(['since:24h', 'Last 24 hours']);
  await page.getByRole('link', { name: 'Traces' }).click();
  await page.getByRole('grid', { name: 'Traces' }).waitFor();
  expect([filterIn(), await time.textContent()]).toEqual([null, 'All time']);
});

test('statistics are grouped by user and metadata, with root runs, model calls and feedback apart', async () => {
  const ofUser = (user_id: string, plan: string) => ({ extra: { metadata: { user_id, plan } } });
  const call = (ls_model_name: string, total_cost: number) => ({
    run_type: 'llm',
    outputs: { usage_metadata: { total_cost } },
    extra: { metadata: { ls_model_name, user_id: 'ada' } },
  });
  const { page, store } = await openPage(
    [
      run(1, { ms: 5_000, ...ofUser('ada', 'pro') }),
      run(2, { parent: 1, ms: 20, ...call('gpt', 0.5) }),
      run(3, { parent: 1, ms: 20, ...call('mini', 0.25) }),
      run(4, { ms: 40, ...ofUser('bob', 'free') }),
    ],
    { path: '/?view=statistics&by=model' },
  );
  const at = '2026-11-20T07:00:00Z';
  await store.addFeedback(DEFAULT_SCOPE, {
    id: 'f',
    run_id: idOf(1),
    key: 'liked',
    score: 1,
    created_at: at,
    modified_at: at,
  });
  await page.getByRole('img', { name: 'Cost by model. gpt: at most $0.50; mini: at most $0.25' }).waitFor();
  await page.getByRole('button', { name: 'User', exact: true }).click();
  await page.getByRole('img', { name: 'Cost by user. ada: at most $0.50' }).waitFor();
  const rows = page.locator('.groups tbody tr');
  await expect.poll(() => rows.first().textContent()).toMatch(/^ada375 %.*liked 1$/);
  const columns = await page.locator('.groups thead th').allTextContents();
  expect(columns.slice(6, 12)).toEqual(['Traces', 'Trace p50', 'Trace p95', 'Model calls', 'Call p50', 'Call p95']);
  const key = page.getByRole('combobox', { name: 'Metadata key' });
  await key.focus();
  await page.locator('#metadata-keys option[value=plan]').waitFor({ state: 'attached' });
  await key.fill('plan');
  await key.press('Enter');
  await page.getByRole('link', { name: 'pro', exact: true }).click();
  await page.getByRole('grid', { name: 'Runs' }).waitFor();
  expect(new URL(page.url()).searchParams.get('q')).toBe('meta.plan=pro');
});

test('the list, the trace, the run and the statistics show the cost and what caching did, or why there is no cost', async () => {
  const call = (ls_model_name: string, cache_read: number) => ({
    run_type: 'llm',
    ms: 20,
    outputs: { usage_metadata: { input_tokens: 10_000, output_tokens: 0, input_token_details: { cache_read } } },
    extra: { metadata: { ls_provider: 'anthropic', ls_model_name, user_id: 'ada' } },
  });
  const { page, rows, go, see } = await openPage([
    run(1, { ms: 50 }),
    run(2, { parent: 1, ...call('claude-opus-5', 9_000) }),
    run(3, { parent: 1, ...call('my-model', 0) }),
  ]);
  // 9,000 × 0.5 + 1,000 × 5 = 9,500 millionths of a dollar, instead of 10,000 × 5 = 50,000.
  const cell = (text: string) => rows.first().getByRole('gridcell', { name: text, exact: true });
  await cell('$0.0095').waitFor();
  expect(await cell('$0.0095').getAttribute('title')).toBe(
    '20,000 input tokens\n9,000 of them read from a cache\n0 output tokens\ncost $0.0095\ncaching saved $0.041',
  );
  await go(`/?trace=${idOf(1)}&run=${idOf(2)}`);
  const figures = page.locator('.figures');
  await expect.poll(() => figures.textContent()).toMatch(/20,000 tokens.*\$0\.0095/);
  const facts = page.locator('.facts').first();
  await expect.poll(() => facts.textContent()).toMatch(/Cost\$0\.0095Cached90 %/);
  await page.getByTitle('calculated with genai-prices').waitFor();
  await go(`/?trace=${idOf(1)}&run=${idOf(3)}`);
  const reason = 'no price for model "my-model" of anthropic';
  await expect.poll(() => facts.textContent()).toContain(`Costunknown: ${reason}`);
  await page.getByTitle(reason, { exact: true }).waitFor();
  await go('/?view=statistics&by=model');
  await see('Saved by caching');
  await see('1 call without a price');
  await page.getByRole('img', { name: 'Tokens. input: at most 11,000; cached: at most 9,000' }).waitFor();
  await page.getByRole('img', { name: 'Cost by model. claude-opus-5: at most $0.0095' }).waitFor();
  const group = page.locator('.groups tbody tr', { hasText: 'claude-opus-5' });
  await expect.poll(() => group.textContent()).toMatch(/90 %\$0\.041\$0\.0095–100 %$/);
});

test('the chart of costs names the most expensive run, and the charts cover the time with runs', async () => {
  const steps = ['a', 'b', 'c', 'd', 'e'].flatMap((name) => [name, name, name]);
  const outputs = { usage_metadata: { input_tokens: 7, total_tokens: 7, total_cost: 10 } };
  const runs = [
    ...steps.map((name, index) => run(index + 1, { name, ms: 5, at: index * 60_000 })),
    run(16, { name: 'expensive', run_type: 'llm', ms: 5, at: 15 * 60_000, outputs }),
  ];
  const path = '/?view=statistics&q=since%3A2026-11-10T00:00:00Z+before%3A2026-11-21T00:00:00Z';
  const { page } = await openPage(runs, { path });
  await page.getByRole('img', { name: 'Cost by name. expensive: at most $10.00' }).waitFor();
  expect(await page.locator('.ranked .legend').textContent()).toBe('expensive$10.00');
  expect(await page.locator('.groups tbody th').first().textContent()).toBe('expensive');
  expect(await page.locator('.statistics > header').textContent()).toContain('2026-11-20 07:00 to 2026-11-20 07:15');
  expect(await page.locator('.chart').count()).toBe(4);
});

test('a drag on a chart selects its time range, a double click removes it, and the table selects one bucket', async () => {
  const runs = Array.from({ length: 100 }, (_, index) => run(index + 1, { ms: 5, at: index * 60_000 }));
  const { page } = await openPage(runs, { path: '/?view=statistics' });
  const plot = page.locator('.chart .u-over').first();
  const total = () => page.locator('.cards dd').first().textContent();
  await expect.poll(total).toMatch(/^100 /);
  const { x = 0, y = 0, width = 0 } = (await plot.boundingBox()) ?? {};
  await page.mouse.move(x + width / 2, y + 20);
  await page.locator('.chart').first().getByText('others5').waitFor();
  await page.mouse.down();
  await page.mouse.move(x + (width * 3) / 4, y + 30, { steps: 5 });
  await page.mouse.up();
  await expect.poll(total).toMatch(/^2[4-6] /);
  expect(new URL(page.url()).searchParams.get('q')).toMatch(/^since:2026-11-20T07:50:\S+ before:2026-11-20T08:15:\S+$/);
  await plot.dblclick();
  await expect.poll(total).toMatch(/^100 /);
  await page.getByText('As a table').first().click();
  await page.locator('.chart tbody button').first().click();
  await expect.poll(total).toMatch(/^5 /);
});

test('the panel of a model call tells where its prompt differs from that of an earlier call', async () => {
  const call = (content: string) => ({
    parent: 1,
    run_type: 'llm',
    ms: 5,
    inputs: { messages: [{ role: 'user', content }] },
    outputs: { usage_metadata: { input_tokens: 2_000, output_tokens: 1, input_token_details: { cache_read: 0 } } },
    extra: { metadata: { ls_model_name: 'gpt-5', thread_id: 't' } },
  });
  const runs = [run(1, { ms: 9_000 }), run(2, { ...call('Why?'), at: 10 }), run(3, { ...call('W\u202e?'), at: 5_010 })];
  const { page } = await openPage(runs, { path: `${TRACE}&run=${idOf(3)}` });
  const note = page.getByText('The prompt differs from that of the call 5 s earlier from message 1 (user) on');
  await note.waitFor();
  expect(await note.textContent()).toContain('"Why?" became "W\\u202e?"');
  await note.getByRole('link', { name: 'Compare' }).click();
  await page.getByRole('region', { name: 'Comparison of two runs' }).waitFor();
  await page.goBack();
  await note.getByRole('link', { name: 'Earlier call' }).click();
  await page.getByRole('article', { name: 'Run run 2' }).waitFor();
});
