import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import { gate } from '../support/gate.ts';
import { openChat } from './chat-page.ts';

/** The answer of the built-in rules. */
const HERON =
  'On "heron": The heron is a tall bird. It stands still in shallow water and waits for fish. (river.md, "heron")';

test('the first message starts a conversation, and its answer streams', async () => {
  const { chat, page, composer, answers } = await openChat();
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() >= 400 && response.url().includes('/threads/')) refused.push(response.url());
  });
  await page.getByRole('button', { name: 'History', exact: true }).click();
  await chat.model({ hold: 'supervisor' });
  await chat.say('heron');
  await page.getByRole('article', { name: 'You' }).getByText('heron').waitFor();
  await answers.getByText('Let me', { exact: true }).waitFor();
  expect(page.url()).toMatch(/#\/t\/[\da-f-]{36}$/);
  expect(await composer.inputValue()).toBe('');
  await chat.release();
  await chat.answered(answers.getByText(HERON).last());
  expect(await answers.getByText('Let me').allTextContents()).toEqual(['Let me look that up.']);
  expect(await composer.evaluate((element) => element.matches(':focus'))).toBe(true);
  await page.getByRole('navigation').getByRole('link', { name: 'heron', exact: true }).waitFor();
  await expect.poll(() => page.title()).toBe('heron');
  expect(await page.getByRole('status').allTextContents()).toContain(`Answer: ${HERON}`);
  // The page does not request a thread that the server cannot know.
  await page
    .getByRole('complementary', { name: 'History' })
    .getByRole('button', { name: 'Branch from here' })
    .waitFor();
  expect(refused).toEqual([]);
});

test('subagents are shown while they work, with their tasks, tools and texts', async () => {
  const { chat, page } = await openChat();
  await chat.model({ hold: 'researcher' });
  await chat.say('Compare heron and otter');
  const cards = page.getByRole('article', { name: 'Subagent researcher' });
  await cards.nth(1).getByText('working').first().waitFor();
  expect(await cards.count()).toBe(2);
  expect(await cards.nth(0).getByText('heron').count()).toBeGreaterThan(0);
  expect(await cards.nth(0).getByText('done').count()).toBe(0);
  await cards.nth(0).getByText('search_docs').click();
  expect(await cards.nth(0).getByRole('group', { name: 'Tool input' }).textContent()).toContain('"heron"');
  await chat.release();
  await page.getByRole('article', { name: 'Subagent writer' }).getByText('done').waitFor();
  await chat.settled();
  // A finished subagent is collapsed.
  expect(await cards.nth(0).getByText(HERON).isVisible()).toBe(false);
  await cards.nth(0).locator('summary').first().click();
  await cards.nth(0).getByText(HERON).waitFor();
  expect(await cards.nth(0).getByRole('group', { name: 'Tool output' }).textContent()).toMatch(/^\[1\] river.md/);
});

test('a stopped subagent stays stopped while a later question is answered', async () => {
  const { chat, page, answers } = await openChat();
  await chat.model({ hold: 'researcher' });
  await chat.say('Compare heron and otter');
  const card = page.getByRole('article', { name: 'Subagent researcher' }).first();
  await card.getByText('working').first().waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('Stopped.', { exact: true }).waitFor();
  await chat.release();
  await chat.model({ hold: 'supervisor' });
  await chat.say('hello');
  await answers.last().getByText('Hello.').waitFor();
  expect(await card.getByText('stopped').count()).toBeGreaterThan(0);
  expect(await card.getByText('working').count()).toBe(0);
  await chat.release();
});

test('a subagent that is stopped during its call shows its name', async () => {
  const { chat, page } = await openChat();
  // The answer has five words before its first call.
  await chat.model({ hold: 'supervisor', holdPieces: 6 });
  await chat.say('Compare heron and otter');
  const card = page.getByRole('article', { name: 'Subagent researcher' });
  await card.getByText('heron').waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await card.getByText('stopped').waitFor();
  await chat.release();
});

test('Escape stops an answer, which keeps its text and can be tried again', async () => {
  const { chat, page, answers, composer } = await openChat();
  await chat.startAnswer();
  let cancels = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/cancel')) cancels += 1;
  });
  // During the composition of a character, Escape cancels the character.
  await composer.dispatchEvent('keydown', { key: 'Escape', isComposing: true });
  await page.evaluate(() => fetch('/api/info').then(({ ok }) => ok));
  expect(cancels).toBe(0);
  await page.keyboard.press('Escape');
  await page.getByText('Stopped.', { exact: true }).waitFor();
  expect(await answers.textContent()).toBe('Let me');
  await chat.release();
  await page.getByRole('button', { name: 'Try again' }).click();
  await chat.answered(answers.getByText(HERON).last());
  expect(await answers.count()).toBe(1);
  expect(await page.getByText('Stopped.', { exact: true }).count()).toBe(0);
  expect(await page.getByRole('article', { name: 'You' }).count()).toBe(1);
});

test('a run can be stopped before the server has accepted it', async () => {
  const { chat, page, answers } = await openChat();
  await chat.model({ hold: 'supervisor' });
  const isWanted = gate();
  await page.route('**/commands', async (route) => {
    await isWanted;
    await route.continue();
  });
  await chat.say('heron');
  await page.getByRole('button', { name: 'Stop' }).click();
  isWanted.open();
  await page.getByText('Stopped.', { exact: true }).waitFor();
  expect(await answers.count()).toBeLessThanOrEqual(1);
});

test('a page that is reloaded during an answer shows the whole answer once', async () => {
  const { chat, page, answers, context } = await openChat();
  await chat.model({ hold: 'writer' });
  await chat.say('Compare heron and otter');
  await page.getByRole('article', { name: 'Subagent writer' }).getByText('On "heron":', { exact: true }).waitFor();
  const before = await answers.textContent();
  await page.reload();
  await page.getByRole('article', { name: 'Subagent writer' }).getByText('On "heron":', { exact: true }).waitFor();
  expect(await answers.textContent()).toBe(before);
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  // Another page shows the same.
  const other = await context.newPage();
  await other.goto(page.url());
  const otherAnswer = other.getByRole('article', { name: 'Answer' });
  await expect.poll(() => otherAnswer.textContent()).toBe(before);
  await chat.release();
  await chat.settled();
  const whole = (await answers.textContent()) ?? '';
  await expect.poll(() => otherAnswer.textContent()).toBe(whole);
  await page.reload();
  await expect.poll(() => answers.textContent()).toBe(whole);
  expect(whole.match(/Let me look that up\./g)).toHaveLength(1);
});

test('conversations are listed, opened again, and deleted after a confirmation', async () => {
  const { chat, page, answers, composer } = await openChat();
  const nav = page.getByRole('navigation');
  await chat.ask('hello');
  await nav.getByRole('link', { name: 'New conversation' }).click();
  await page.getByRole('heading', { name: 'What would you like to know?' }).waitFor();
  expect(await composer.evaluate((element) => element.matches(':focus'))).toBe(true);
  await chat.say('heron');
  await answers.getByText(HERON).last().waitFor();
  await expect.poll(() => page.getByRole('status').allTextContents()).toContain(`Answer: ${HERON}`);
  await nav.getByRole('link', { name: 'hello', exact: true }).click();
  await answers.getByText('Hello. Ask about the documents').waitFor();
  expect(await page.getByRole('status').allTextContents()).not.toContain(`Answer: ${HERON}`);
  expect(await nav.locator('[aria-current=page]').allTextContents()).toEqual(['hello']);
  await page.goBack();
  await answers.getByText(HERON).last().waitFor();
  expect(await nav.locator('[aria-current=page]').allTextContents()).toEqual(['heron']);

  await nav.getByRole('button', { name: 'Delete heron' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  expect(await nav.getByRole('listitem').count()).toBe(2);
  await nav.getByRole('button', { name: 'Delete heron' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { name: 'What would you like to know?' }).waitFor();
  await page.reload();
  await nav.getByRole('link', { name: 'hello', exact: true }).waitFor();
  expect(await nav.getByRole('listitem').count()).toBe(1);
});

test('an unsent message stays in its conversation, also after a reload', async () => {
  const { chat, page, composer } = await openChat();
  const nav = page.getByRole('navigation');
  await chat.ask('hello');
  expect(await composer.inputValue()).toBe('');
  await composer.fill('half a question');
  await nav.getByRole('link', { name: 'New conversation' }).click();
  await page.getByRole('heading', { name: 'What would you like to know?' }).waitFor();
  expect(await composer.inputValue()).toBe('');
  await composer.fill('another one');
  await page.reload();
  await expect.poll(() => composer.inputValue()).toBe('another one');
  await nav.getByRole('link', { name: 'hello', exact: true }).click();
  await expect.poll(() => composer.inputValue()).toBe('half a question');
  await composer.press('Enter');
  await chat.settled();
  await page.reload();
  await chat.answers.last().waitFor();
  expect(await composer.inputValue()).toBe('');
  await page.goBack();
  await expect.poll(() => composer.inputValue()).toBe('another one');
});

test('more than a hundred conversations are listed on request', async () => {
  const { page, url } = await openChat();
  for (let count = 0; count < 101; count++) await page.request.post(`${url}/api/threads/t${count}/state`, { data: {} });
  await page.reload();
  const nav = page.getByRole('navigation');
  const rows = nav.getByRole('listitem');
  await expect.poll(() => rows.count()).toBe(100);
  await nav.getByRole('button', { name: 'Show more conversations' }).click();
  await expect.poll(() => rows.count()).toBe(101);
  expect(await nav.getByRole('button', { name: 'Show more conversations' }).count()).toBe(0);
});

test('a request is approved with another text, or rejected with a reason that the agent reads', async () => {
  const { chat, page, answers } = await openChat();
  await chat.say('Save a note: buy milk');
  const card = page.getByRole('article', { name: 'Request of the agent' });
  await card.waitFor();
  expect(await page.getByRole('status').allTextContents()).toContain('The agent asks for your decision.');
  // A reload keeps the request.
  await page.reload();
  expect(await card.getByRole('textbox').first().inputValue()).toBe('buy milk');
  await card.getByRole('textbox', { name: 'save_note: text (editable)' }).fill('buy bread');
  expect(await card.getByRole('button', { name: 'Approve', exact: true }).count()).toBe(0);
  await card.getByRole('button', { name: 'Approve with changes' }).click();
  await chat.answered(answers.getByText('Saved until the chat ends: buy bread').last());
  expect(await card.count()).toBe(0);
  await chat.say('Save a note: buy eggs');
  await card.getByRole('textbox', { name: 'Reason for the rejection' }).fill('No eggs');
  await card.getByRole('button', { name: 'Reject' }).click();
  await chat.answered(answers.getByText('The user declined: No eggs').last());
  const calls = page.locator('summary').filter({ hasText: 'save_note' });
  // The page learns from the state that the action was declined.
  await expect.poll(() => calls.allTextContents()).toEqual(['save_notebuy breaddone', 'save_notebuy eggsdeclined']);
  await page.reload();
  await expect.poll(() => calls.last().textContent()).toBe('save_notebuy eggsdeclined');
  expect(await calls.first().textContent()).toBe('save_notebuy breaddone');
});

test('a request gets the focus unless the user writes, and Enter explains what is missing', async () => {
  const { chat, page, composer } = await openChat();
  const card = page.getByRole('article', { name: 'Request of the agent' });
  const hasFocus = (place: Locator) => place.evaluate((element) => element.matches(':focus'));
  await chat.say('Save a note: buy milk');
  await card.waitFor();
  expect(await hasFocus(card)).toBe(true);
  // Keys that are pressed by habit do not decide anything.
  await page.keyboard.type('x');
  await page.keyboard.press('Enter');
  expect(await card.getByRole('textbox').first().inputValue()).toBe('buy milk');
  await composer.press('Enter');
  const hint = 'The agent is waiting for your decision above.';
  await page.locator('form').getByText(hint).waitFor();
  expect(await page.getByRole('status').allTextContents()).toContain(hint);
  await card.getByRole('button', { name: 'Reject' }).click();
  await chat.answered(chat.answers.getByText('The user declined').last());
  expect(await page.locator('form').getByText(hint).count()).toBe(0);
  expect(await hasFocus(composer)).toBe(true);

  await chat.model({ hold: 'supervisor', say: '' });
  await chat.say('heron');
  await chat.answers.getByText('Let me', { exact: true }).waitFor();
  await chat.say('And then?');
  const working = 'The agent is still answering. Wait for the answer, or press Stop.';
  await page.locator('form').getByText(working).waitFor();
  expect(await page.getByRole('status').allTextContents()).toContain(working);
  expect(await composer.inputValue()).toBe('And then?');
  await chat.release();
  await chat.settled();
  expect(await page.locator('form').getByText(working).count()).toBe(0);
  expect(await composer.inputValue()).toBe('And then?');
  // The focus stays in a form that contains a draft.
  await page.request.post(`${chat.url}/api/threads/${page.url().split('/').at(-1)}/commands`, {
    data: { id: 1, method: 'run.start', params: { input: { messages: [{ role: 'user', content: 'Note: eggs' }] } } },
  });
  await card.waitFor();
  expect(await hasFocus(composer)).toBe(true);
});

test('a request that was decided on another page is shown as decided', async () => {
  const { chat, page, context, answers } = await openChat();
  await chat.say('Save a note: buy milk');
  const card = page.getByRole('article', { name: 'Request of the agent' });
  await card.waitFor();
  const other = await context.newPage();
  await other.goto(page.url());
  await page.route('**/commands', async (route) => {
    await other.getByRole('button', { name: 'Approve' }).click();
    await other.getByRole('button', { name: 'Retry' }).waitFor();
    await route.continue();
  });
  await card.getByRole('button', { name: 'Reject' }).click();
  await page.getByRole('alert').getByText('This request was answered elsewhere.', { exact: true }).waitFor();
  await answers.getByText('Saved until the chat ends: buy milk').last().waitFor();
  expect(await card.count()).toBe(0);
});

test('a retry and an edited message are branches, and the history leads to each of them', async () => {
  const { chat, page, answers } = await openChat();
  await chat.ask('hello');
  await chat.say('heron');
  await answers.getByText(HERON).last().waitFor();
  await chat.model({ say: 'Another answer.' });
  await page.getByRole('button', { name: 'Retry' }).click();
  await chat.answered(answers.getByText('Another answer.'));
  expect(await answers.count()).toBe(2);
  expect(await page.getByText(HERON).count()).toBe(0);

  await chat.model({ say: 'An answer to what was changed.' });
  await page.getByRole('button', { name: 'Edit message' }).last().click();
  await page.getByRole('textbox', { name: 'Edit message' }).fill('otter');
  await page.keyboard.press('Enter');
  await chat.answered(answers.getByText('An answer to what was changed.'));
  const questions = page.getByRole('article', { name: 'You' });
  expect(await questions.allTextContents()).toEqual(['hello', 'otter']);

  await page.getByRole('button', { name: 'History', exact: true }).click();
  const history = page.getByRole('complementary', { name: 'History' });
  await history.getByText('version 1 of 3').waitFor();
  const first = history.getByRole('listitem').filter({ hasText: 'version 1 of 3' });
  // The history marks the other branches.
  const left = history.getByRole('listitem').filter({ hasText: 'another branch' });
  expect(await left.locator('.past-question').allTextContents()).toEqual(['heron', 'heron']);
  const current = history.locator('[aria-current=true]');
  expect(await current.locator('.past-question').allTextContents()).toEqual(['otter']);
  await current.getByText('version 3 of 3').waitFor();
  await first.getByRole('button', { name: 'Branch from here' }).click();
  await page.getByRole('group', { name: 'Earlier point' }).waitFor();
  expect(await questions.allTextContents()).toEqual(['hello', 'heron']);
  await answers.getByText(HERON).last().waitFor();
  await page.getByRole('button', { name: 'Back to latest' }).click();
  expect(await questions.allTextContents()).toEqual(['hello', 'otter']);
  await first.getByRole('button', { name: 'Branch from here' }).click();
  await chat.model({ say: 'From there.' });
  await chat.say('And then?');
  await chat.answered(answers.getByText('From there.'));
  expect(await questions.allTextContents()).toEqual(['hello', 'heron', 'And then?']);
  await page.reload();
  await answers.getByText('From there.').waitFor();
  expect(await questions.allTextContents()).toEqual(['hello', 'heron', 'And then?']);
});

test('a double click sends one command', async () => {
  const { chat, page, answers } = await openChat();
  await chat.ask('hello');
  let commands = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/commands')) commands += 1;
  });
  await page.getByRole('button', { name: 'Retry' }).dblclick();
  await chat.settled();
  await page.getByRole('button', { name: 'Retry' }).waitFor();
  expect(commands).toBe(1);
  await page.getByRole('button', { name: 'Edit message' }).click();
  const area = page.getByRole('textbox', { name: 'Edit message' });
  await area.fill('heron');
  await Promise.all([page.keyboard.press('Enter'), page.keyboard.press('Enter')]);
  await chat.answered(answers.getByText(HERON).last());
  expect(commands).toBe(2);
});

test('earlier points are listed once after a double click', async () => {
  const { page, url } = await openChat();
  for (let count = 0; count < 60; count++) {
    const values = { messages: [{ type: 'human', id: `h${count}`, content: `question ${count}` }] };
    await page.request.post(`${url}/api/threads/long/state`, { data: { values } });
  }
  await page.goto(`${url}/#/t/long`);
  await page.getByRole('button', { name: 'History', exact: true }).click();
  const points = page.getByRole('complementary').getByRole('button', { name: 'Branch from here' });
  await expect.poll(() => points.count()).toBe(50);
  await page.getByRole('button', { name: 'Show earlier', exact: true }).dblclick();
  await expect.poll(() => points.count()).toBe(60);
});

test('a failed run shows its reason and can be tried again', async () => {
  const { chat, page, answers } = await openChat();
  await chat.model({ fail: 1 });
  await chat.say('heron');
  const outcome = page.getByRole('group', { name: 'Outcome' });
  await outcome.getByText('The model is on strike.').waitFor();
  await page.reload();
  await outcome.getByText('The model is on strike.').waitFor();
  await page.getByRole('button', { name: 'Try again' }).click();
  await chat.answered(answers.getByText(HERON).last());
  expect(await outcome.count()).toBe(0);
  expect(await page.getByRole('article', { name: 'You' }).count()).toBe(1);
});

test('a broken connection is restored, and the answer continues', async () => {
  const { chat, page, answers, context } = await openChat();
  await chat.startAnswer();
  await context.setOffline(true);
  await chat.cut();
  await page.getByText('Reconnecting').waitFor();
  await chat.release();
  await context.setOffline(false);
  await chat.answered(answers.getByText(HERON).last());
  await page.getByText('Reconnecting').waitFor({ state: 'detached' });
  expect(await answers.getByText('Let me').allTextContents()).toEqual(['Let me look that up.']);
});

test('a message that cannot be sent returns to the form', async () => {
  const { chat, page, composer, context } = await openChat();
  await context.setOffline(true);
  await chat.say('heron');
  await page.getByText('The server does not respond.').waitFor();
  expect(await composer.inputValue()).toBe('heron');
  await context.setOffline(false);
  await page.getByText('The server does not respond.').waitFor({ state: 'detached' });
  await composer.press('Enter');
  await page.getByText(HERON).last().waitFor();
});

test('a conversation with more events than the log keeps is shown completely', async () => {
  const { chat, page, answers } = await openChat({ eventsMax: 500 });
  const words = Array.from({ length: 4_000 }, (_, index) => `w${index}`).join(' ');
  await chat.model({ say: words, pieceChars: 6 });
  await chat.say('all of them');
  await chat.answered(answers.getByText('w100 '));
  // The view followed the answer.
  const left = 'element => element.scrollHeight - element.scrollTop - element.clientHeight';
  expect(await page.evaluate(`(${left})(document.querySelector('.scroller'))`)).toBeLessThan(2);
  await page.reload();
  await page.getByRole('button', { name: 'Retry' }).waitFor();
  for (let more = page.getByText('Show more'); (await more.count()) > 0; ) await more.click();
  expect(await answers.textContent()).toBe(words);
});

test('an invalid address is explained and leads to a new conversation', async () => {
  const { chat, page } = await openChat();
  for (const id of [encodeURIComponent('a b'), '../../etc', '%00', 'x'.repeat(129), 'x'.repeat(5_000)]) {
    await page.goto(`${chat.url}/#/t/${id}`);
    await page.getByRole('alert').getByText('This conversation does not exist.').waitFor();
    expect(await page.getByText('Reconnecting').count()).toBe(0);
    expect(await page.getByRole('alert').count()).toBe(1);
    await page.getByRole('link', { name: 'Start a new one' }).click();
    await page.getByRole('heading', { name: 'What would you like to know?' }).waitFor();
  }
  await chat.say('hello');
  await chat.answers.getByText('Hello. Ask about the documents').waitFor();
});

test('a retry at an earlier point starts a branch there', async () => {
  const { chat, page, answers } = await openChat();
  await chat.ask('hello');
  await chat.say('heron');
  await chat.answered(answers.getByText(HERON).last());
  await page.getByRole('button', { name: 'History', exact: true }).click();
  await page.getByRole('button', { name: 'Branch from here' }).last().click();
  await page.getByRole('group', { name: 'Earlier point' }).waitFor();
  await chat.model({ say: 'Hello again.' });
  await page.getByRole('button', { name: 'Retry' }).click();
  await chat.answered(answers.getByText('Hello again.'));
  expect(await page.getByRole('article', { name: 'You' }).allTextContents()).toEqual(['hello']);
});

test('a conversation that was deleted on another page is not silently created again', async () => {
  const { chat, page, composer } = await openChat();
  await chat.ask('hello');
  const address = page.url();
  const remove = () => page.request.delete(`${chat.url}/api/threads/${address.split('/').at(-1)}`);
  const gone = page.getByRole('alert').getByText('This conversation no longer exists on the server.');
  await remove();
  await chat.say('And then?');
  await gone.waitFor();
  expect(await page.getByRole('article', { name: 'You' }).allTextContents()).toEqual(['hello']);
  expect(await (await page.request.get(`${chat.url}/api/threads`)).json()).toEqual([]);
  await page.getByRole('link', { name: 'Start a new one' }).click();
  await page.getByRole('heading', { name: 'What would you like to know?' }).waitFor();
  expect(await composer.inputValue()).toBe('And then?');
  await chat.model({ say: 'It begins anew.' });
  await composer.press('Enter');
  await chat.answered(chat.answers.getByText('It begins anew.'));
  expect(page.url()).not.toBe(address);
  // A page that gets the focus again checks its conversation.
  await page.request.delete(`${chat.url}/api/threads/${page.url().split('/').at(-1)}`);
  await page.evaluate("dispatchEvent(new Event('focus'))");
  await gone.waitFor();
  await expect.poll(() => page.getByRole('navigation').getByRole('listitem').count()).toBe(0);
});

test('a conversation that was deleted while the server was away is reported', async () => {
  const { chat, page } = await openChat();
  await chat.startAnswer();
  await chat.context.setOffline(true);
  const id = page.url().split('/').at(-1);
  expect((await fetch(`${chat.url}/api/threads/${id}`, { method: 'DELETE' })).status).toBe(204);
  await chat.cut();
  await page.getByText('Reconnecting').waitFor();
  await chat.context.setOffline(false);
  await page.getByText('This conversation no longer exists on the server.').waitFor();
  await chat.settled();
});
