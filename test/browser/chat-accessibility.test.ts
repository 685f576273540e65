import { expect, test } from 'vitest';
import { expectAccessible } from './axe.ts';
import { openChat } from './chat-page.ts';

test.each([
  [['light', 'dark'], 1280],
  [['light'], 390],
] as const)('no view has accessibility problems or overflows, in %j at a width of %i', async (colorSchemes, width) => {
  const { chat, page, answers } = await openChat({ traced: true, viewport: { width, height: 800 } });
  const check = (view: string): Promise<void> => expectAccessible(page, view, colorSchemes);
  await page.getByText('No model is configured').waitFor();
  await check('nothing yet');
  await chat.model({ hold: 'writer' });
  await chat.say('Compare heron and otter');
  await page.getByRole('article', { name: 'Subagent writer' }).getByText('On "heron":', { exact: true }).waitFor();
  await page.getByRole('article', { name: 'Subagent researcher' }).first().locator('summary').first().click();
  await page.getByText('search_docs').first().click();
  await check('subagents at work');
  await chat.release();
  await chat.settled();
  await page.getByRole('button', { name: 'Good answer' }).click();
  await page.getByRole('textbox', { name: 'Comment on the answer' }).waitFor();
  await check('an answer that is rated');
  await chat.say('Save a note: x');
  await page.getByRole('article', { name: 'Request of the agent' }).waitFor();
  await check('an approval');
  await page.getByRole('button', { name: 'Reject' }).click();
  await answers.getByText('The user declined').last().waitFor();
  await chat.model({ fail: 1 });
  await chat.say('heron');
  await page.getByRole('group', { name: 'Outcome' }).waitFor();
  await page.getByRole('button', { name: 'Edit message' }).first().click();
  await check('a failure, and a message that is changed');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'History', exact: true }).click();
  await page.getByText('checkpoints').first().click();
  await check('the history');
  await page.getByRole('button', { name: 'Branch from here' }).last().click();
  await page.getByRole('group', { name: 'Earlier point' }).waitFor();
  await check('an earlier point');
  // On a narrow screen, the history closes when a point is chosen.
  const close = page.getByRole('button', { name: 'Close the history' });
  if (width < 768) expect(await close.count()).toBe(0);
  else await close.click();
  if (width < 768) await page.getByRole('button', { name: 'Conversations', exact: true }).click();
  await page.getByRole('button', { name: /^Delete/ }).click();
  await page.getByRole('dialog').waitFor();
  await check('what is to be deleted');
});

test('the keyboard reaches every action', async () => {
  const { chat, page, answers } = await openChat();
  const { keyboard } = page;
  const reach = async (name: string | RegExp, key = 'Tab'): Promise<void> => {
    const wanted = page.locator(':focus').and(page.getByRole('button', { name }).or(page.getByRole('link', { name })));
    for (let steps = 0; steps < 40 && (await wanted.count()) === 0; steps++) await keyboard.press(key);
    expect(await wanted.count()).toBe(1);
  };
  await chat.composer.and(page.locator(':focus')).waitFor();
  await keyboard.type('hello');
  await keyboard.press('Shift+Enter');
  await keyboard.type('you');
  expect(await chat.composer.inputValue()).toBe('hello\nyou');
  await keyboard.press('Enter');
  await chat.answered(answers.getByText('Hello.'));
  await keyboard.type('Save a note: x');
  await keyboard.press('Enter');
  await page.getByRole('article', { name: 'Request of the agent' }).waitFor();
  await reach('Approve', 'Shift+Tab');
  await keyboard.press('Enter');
  await chat.answered(answers.getByText('Saved until the chat ends: x').last());

  await reach('Edit message', 'Shift+Tab');
  await keyboard.press('Enter');
  await keyboard.press('Escape');
  expect(await page.locator(':focus').getAttribute('aria-label')).toBe('Edit message');
  await reach('History', 'Shift+Tab');
  await keyboard.press('Enter');
  await page.getByRole('complementary').getByText('hello you').waitFor();
  await reach('Branch from here');
  await keyboard.press('Enter');
  await keyboard.press('Escape');
  expect(await page.getByRole('complementary').count()).toBe(0);
  expect(await page.locator(':focus').getAttribute('aria-label')).toBe('History');
  await reach('Delete hello you', 'Shift+Tab');
  await keyboard.press('Enter');
  // The safe button comes first.
  const cancel = page.getByRole('dialog').getByRole('button', { name: 'Cancel' });
  await cancel.and(page.locator(':focus')).waitFor();
  await keyboard.press('Escape');
  // A closed dialog has no role any more, but stays in the page until its `close` event.
  await page.locator('dialog').waitFor({ state: 'detached' });
  expect(await page.locator(':focus').getAttribute('aria-label')).toBe('Delete hello you');
  await keyboard.press('Enter');
  // The button of the list has a name that begins with the same word.
  await page.getByRole('button', { name: 'Delete', exact: true }).waitFor();
  await reach(/^Delete$/, 'Shift+Tab');
  await keyboard.press('Enter');
  await page.getByText('Your conversations will appear here.').waitFor();
  await chat.composer.and(page.locator(':focus')).waitFor();
});

test('on a narrow screen the conversations are a drawer, which Escape closes', async () => {
  const { chat, page } = await openChat({ viewport: { width: 390, height: 800 } });
  await chat.ask('hello');
  const nav = page.getByRole('navigation', { name: 'Conversations' });
  expect(await nav.count()).toBe(0);
  const menu = page.getByRole('button', { name: 'Conversations', exact: true });
  await menu.click();
  await nav.waitFor();
  expect(await menu.getAttribute('aria-expanded')).toBe('true');
  const start = nav.getByRole('link', { name: 'New conversation' });
  await expect.poll(() => start.evaluate((element) => element.matches(':focus'))).toBe(true);
  await page.keyboard.press('Escape');
  expect(await nav.count()).toBe(0);
  expect(await menu.evaluate((element) => element.matches(':focus'))).toBe(true);
  await menu.click();
  await nav.getByRole('link', { name: 'New conversation' }).click();
  await page.getByRole('heading', { name: 'What would you like to know?' }).waitFor();
  expect(await nav.count()).toBe(0);
});

test('an answer is announced once, when it is complete', async () => {
  const { chat, page, answers } = await openChat();
  await page.evaluate(`{
    globalThis.announced = [];
    const region = document.querySelector('[role=status][aria-live]');
    new MutationObserver(() => announced.push(region.textContent)).observe(region, { childList: true, characterData: true, subtree: true });
  }`);
  await chat.model({ hold: 'supervisor' });
  await chat.say('hello');
  await answers.getByText('Hello. Ask', { exact: true }).waitFor();
  await chat.release();
  await chat.settled();
  expect(await page.evaluate('announced')).toEqual([
    'The agent is working.',
    'Answer: Hello. Ask about the documents, ask to compare two things, or say "save a note: …".',
  ]);
  // No live region contains the answer.
  expect(await answers.evaluateAll((all) => all.some((one) => one.closest('[aria-live], [role=log]') !== null))).toBe(
    false,
  );
});

test('the theme follows the system, or the choice of the user', async () => {
  const { page } = await openChat({ colorScheme: 'dark' });
  const background = (): Promise<unknown> => page.evaluate('getComputedStyle(document.body).backgroundColor');
  const dark = await background();
  await page.getByRole('button', { name: 'Theme: system' }).click();
  expect(await background()).toBe(dark);
  await page.getByRole('button', { name: 'Theme: dark' }).click();
  expect(await background()).not.toBe(dark);
  await page.reload();
  await page.getByRole('button', { name: 'Theme: light' }).waitFor();
  expect(await background()).not.toBe(dark);
});
