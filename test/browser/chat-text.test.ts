import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import { openChat } from './chat-page.ts';

const SHALOM = 'שלום עולם';

test('right-to-left text is laid out from right to left', async () => {
  const { chat, page, answers, composer } = await openChat();
  await chat.model({
    say: `# ${SHALOM}\n\n${SHALOM}\n\nHello.\n\n- ${SHALOM}\n- one\n\n| ${SHALOM} |\n|---|\n| two |`,
  });
  await composer.fill(SHALOM);
  const isFromRight = (place: Locator): Promise<boolean> => place.evaluate((element) => element.matches(':dir(rtl)'));
  expect(await isFromRight(composer)).toBe(true);
  await composer.press('Enter');
  await chat.answered(answers.getByText('two'));
  const pieces = answers.locator('p, li, th, td');
  const fromRight = await pieces.evaluateAll((all) => all.map((one) => one.matches(':dir(rtl)')));
  expect(fromRight).toEqual([true, true, false, true, false, true, false]);
  const question = page.getByRole('article', { name: 'You' });
  expect(await isFromRight(question.locator('p'))).toBe(true);
  await question.getByRole('button', { name: 'Edit message' }).click();
  const editor = page.getByRole('textbox', { name: 'Edit message' });
  expect(await isFromRight(editor)).toBe(true);
});

test('an invisible message is not sent', async () => {
  const { chat, page, composer } = await openChat();
  const send = page.getByRole('button', { name: 'Send' });
  await chat.say('\u200b\u200d\ufeff \u2060');
  expect(await send.isDisabled()).toBe(true);
  expect(await page.getByRole('article', { name: 'You' }).count()).toBe(0);
  await composer.fill('\u200bx');
  expect(await send.isDisabled()).toBe(false);
});

test('a text that is too long for a message is cut with a note', async () => {
  const { page, composer } = await openChat();
  await composer.evaluate((area: { value: string }) => {
    area.value = 'word '.repeat(199_999);
  });
  await composer.press('End');
  await page.keyboard.insertText('123456');
  await page.getByRole('alert').getByText('A message can have at most 1,000,000 characters.').waitFor();
  expect((await composer.inputValue()).length).toBe(1_000_000);
});

test('the button for more text is separate from the last word', async () => {
  const { chat, page } = await openChat();
  await chat.say('y'.repeat(20_000));
  const question = page.getByRole('article', { name: 'You' });
  await expect.poll(() => question.textContent()).toMatch(/y Show more \(3,616 characters left\)/);
});
