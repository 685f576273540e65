import type { ServerResponse } from 'node:http';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { type Respond, startRecorded } from '../cli/recorded-call.ts';
import { expectAccessible } from './axe.ts';
import { newPage } from './connected.ts';
import { idOf } from './runs.ts';

const SYSTEM = { role: 'system', content: 'Be kind to [Redacted].' };
const tool_calls = [{ id: 'c', type: 'function', function: { name: 'find', arguments: '{"q":1}' } }];
const ASIDE = [
  { role: 'assistant', tool_calls },
  { role: 'tool', tool_call_id: 'c', content: 'wet' },
];
const asking = (text: string) => ({ role: 'user', content: [{ type: 'text', text }] });
const SETTINGS = { model: 'small', stream: true, temperature: 0.5, tools: [{ type: 'custom', name: 'find' }] };
const REQUEST = { ...SETTINGS, seed: 1, messages: [SYSTEM, asking('Is it\r\nraining?'), ...ASIDE] };
const TEXT = 'messages.1.content.0.text';

const eventOf = (delta: object, usage?: object): string => {
  const chunk = { id: 'x', object: 'chat.completion.chunk', model: 'small', choices: [{ index: 0, delta }], usage };
  return `data: ${JSON.stringify(chunk)}\n\n`;
};

/** Opens the editor of a recorded call. Its service sends the first words at once, and the last ones when told to. */
async function openEditor() {
  const open: ServerResponse[] = [];
  const outputs = { choices: [{ message: { role: 'assistant', content: 'Yes, all day.' } }] };
  const respond: Respond = ({ model }, response) => {
    if (model === 'bad') return response.writeHead(404).end('{"error":{"message":"no such model"}}');
    response.setHeader('content-type', 'text/event-stream');
    response.write(eventOf({ role: 'assistant', content: 'Yes, all ' }));
    // The text so far is reported when more of the response arrives.
    const pings = setInterval(() => response.write(': ping\n\n'), 20);
    response.on('close', () => clearInterval(pings));
    return open.push(response);
  };
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  const answer = (content: string): void => {
    for (const response of open.splice(0)) response.end(`${eventOf({ content }, usage)}data: [DONE]\n\n`);
  };
  const { service, receiver } = await startRecorded({ request: REQUEST, outputs, respond });
  const { page } = await newPage({ viewport: { width: 1440, height: 900 } }, /status of 4/);
  await page.goto(`${receiver.url}/?trace=${idOf(1)}&run=${idOf(1)}`);
  const click = (name: string) => page.getByRole('button', { name, exact: true }).click();
  await click('Run again');
  await page.getByLabel(TEXT).waitFor();
  const answered = (at: number) => page.getByRole('region', { name: `Answer ${at}`, exact: true });
  const sent = () => service.seen.map(({ body }) => JSON.parse(body));
  return { page, receiver, sent, open, answer, click, answered };
}

async function checkScreens(page: Page): Promise<void> {
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await expectAccessible(page, width, ['light']);
  }
}

test('an edited text is the only change of the request, and its answer is compared while the old run stays', async () => {
  const { page, receiver, sent, answer, click, answered } = await openEditor();
  const before = await receiver.runs({ filter: `run:${idOf(1)}` });
  expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Run again');
  await page.getByLabel(TEXT).fill('Will it\n"snow"?');
  await click('Run');
  await answered(1).getByText('Yes, all').waitFor();
  answer('week.');
  await answered(1).getByText('3 input tokens').waitFor();
  await answered(1).locator('ins').waitFor();
  expect(sent()).toEqual([{ ...REQUEST, messages: [SYSTEM, asking('Will it\r\n"snow"?'), ...ASIDE] }]);
  expect(await answered(1).locator(':is(del, ins)').allTextContents()).toEqual(['day', 'week']);
  for (const text of ['not what they replace: [Redacted]', 'Copy changed texts']) await page.getByText(text).waitFor();
  await checkScreens(page);
  await page.keyboard.press('Escape');
  const reruns = page.getByRole('region', { name: 'Reruns' });
  await reruns.getByText('success').waitFor();
  expect(await receiver.runs({ filter: `run:${idOf(1)}` })).toEqual(before);
  await checkScreens(page);
  await reruns.getByRole('link', { name: 'Compare' }).click();
  await page.getByText(/only in the second/).waitFor();
  await page.goBack();
  await click('Run again');
  expect(await page.getByLabel(TEXT).inputValue()).toBe('Will it\n"snow"?');
});

test('each sample has its answer, and its error is that of the service', async () => {
  const { page, sent, answer, click, answered } = await openEditor();
  // No difference is shown from an answer that cannot be read.
  await page.route(/\/outputs$/, (route) => route.fulfill({ status: 404 }));
  await page.getByLabel('Samples').fill('2');
  await page.getByLabel('temperature').fill('0');
  await page.getByLabel('seed').fill('');
  await click('Run');
  await answered(2).getByText('Yes, all').waitFor();
  answer('day.');
  for (const at of [1, 2]) await answered(at).getByText('success').waitFor();
  for (const at of [1, 2]) expect(await answered(at).locator('.plain').textContent()).toBe('Yes, all day.');
  const { seed: _, ...changed } = { ...REQUEST, temperature: 0 };
  expect(sent()).toEqual([changed, changed]);
  await page.getByLabel('model').fill('bad');
  await click('Run');
  await answered(2).getByRole('alert').getByText('no such model').waitFor();
  // A field that was emptied is filled after the return to the page.
  await page.keyboard.press('Escape');
  await click('Run again');
  await page.getByLabel('seed').fill('2');
  await click('Run');
  await expect.poll(() => sent().at(-1)).toEqual({ ...changed, model: 'bad', seed: 2 });
});

test('Stop ends the request of the service, and a request that is no JSON cannot be sent', async () => {
  const { page, open, click, answered } = await openEditor();
  for (const value of ['0', '0.5']) await page.getByLabel('temperature').fill(value);
  await click('Run');
  await answered(1).getByText('Yes, all').waitFor();
  await click('Stop');
  await answered(1).getByText('Stopped').waitFor();
  expect(await page.getByText('still sends the old request').count()).toBe(0);
  await expect.poll(() => open.map(({ destroyed }) => destroyed)).toEqual([true]);
  await click('JSON');
  const json = page.getByLabel('request', { exact: true });
  expect(JSON.parse(await json.inputValue())).toEqual(REQUEST);
  await json.fill('{"model":');
  await page.getByRole('alert').getByText('This is not valid').waitFor();
  expect(await page.getByRole('button', { name: 'Run', exact: true }).isDisabled()).toBe(true);
  await checkScreens(page);
  await json.fill('{"model":"small","messages":[{"role":"user","content":"Tea?"}]}');
  await click('Messages');
  expect(await page.getByLabel('messages.0.content').inputValue()).toBe('Tea?');
});
