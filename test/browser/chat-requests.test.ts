import { expect, test } from 'vitest';
import { expectToFit } from './axe.ts';
import { openChat } from './chat-page.ts';

test('a request in any other form is shown, and answered with text or JSON', async () => {
  const { chat, page, answers } = await openChat({ asks: true });
  const card = page.getByRole('article', { name: 'Request of the agent' });
  for (const [answer, received] of [
    ['a heron', '"a heron"'],
    ['{"bird": "stork"}', '{"bird":"stork"}'],
  ] as const) {
    await chat.say('Hello');
    await card.getByText('"question": "Which bird?"').waitFor();
    await card.getByRole('textbox', { name: 'Your answer, as text or JSON' }).fill(answer);
    await card.getByRole('button', { name: 'Send answer' }).click();
    await chat.answered(answers.getByText(`The answer is ${received}.`));
  }
});

test('each of several actions is decided, and a decision can be changed until the last one', async () => {
  const { chat, page, answers } = await openChat({ asks: true });
  const card = page.getByRole('article', { name: 'Request of the agent' });
  const [approve, reject] = ['Approve', 'Reject'].map((name) => card.getByRole('button', { name, exact: true }));
  const decisions = async (): Promise<string | null> => answers.last().textContent();
  await chat.say('act');
  await card.getByText('Decide on all 2 actions. If you reject one action, none is run.').waitFor();
  await reject?.first().click();
  await card.getByRole('button', { name: 'Reject', pressed: true }).waitFor();
  await approve?.first().click();
  expect(await card.getByRole('button', { name: 'Reject', pressed: true }).count()).toBe(0);
  await approve?.last().click();
  await chat.settled();
  await expect.poll(decisions).toContain('{"decisions":[{"type":"approve"},{"type":"approve"}]}');
  await chat.say('act');
  await approve?.first().click();
  await reject?.last().click();
  await chat.settled();
  await expect.poll(decisions).toContain('declined another action, so this action was not run."},{"type":"reject"');
});

test('a hidden page closes its stream, and is up to date when it is shown again', async () => {
  const { chat, page, answers } = await openChat();
  await chat.ask('hello');
  const closed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/stream'));
  const show = (isHidden: boolean) =>
    page.evaluate(`{
      Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }`);
  await show(true);
  await closed;
  const id = page.url().split('/').at(-1);
  await chat.model({ say: 'Meanwhile.' });
  const params = { input: { messages: [{ role: 'user', content: 'And then?' }] } };
  const data = { id: 1, method: 'run.start', params };
  await page.request.post(`${chat.url}/api/threads/${id}/commands`, { data });
  const state = async () => (await page.request.get(`${chat.url}/api/threads/${id}/state`)).text();
  await expect.poll(state).toContain('Meanwhile.');
  expect(await answers.getByText('Meanwhile.').count()).toBe(0);
  await show(false);
  await answers.getByText('Meanwhile.').waitFor();
  expect(await page.getByText('Reconnecting').count()).toBe(0);
});

test('an answer and its code are copied, and a wide table scrolls', async () => {
  const { chat, page, answers } = await openChat({
    permissions: ['clipboard-read', 'clipboard-write'],
    viewport: { width: 390, height: 800 },
  });
  const row = `|${' a column that is wide |'.repeat(8)}`;
  const text = `Run this:\n\n\`\`\`\nnpm start\n\`\`\`\n\n${row}\n|${'--:|'.repeat(8)}\n${row}`;
  await chat.model({ say: text });
  await chat.say('How?');
  await answers.getByRole('table').waitFor();
  await chat.settled();
  const clipboard = () => page.evaluate('navigator.clipboard.readText()');
  await page.getByRole('button', { name: 'Copy code' }).click();
  await expect.poll(clipboard).toBe('npm start');
  await page.getByRole('button', { name: 'Copy answer' }).click();
  await expect.poll(clipboard).toBe(text);
  const sizes = await page
    .getByRole('region', { name: 'Table' })
    .evaluate((table) => [table.scrollWidth, table.clientWidth]);
  expect(sizes[0]).toBeGreaterThan(sizes[1] ?? 0);
  await expectToFit(page, 'chat');
});
