import { expect, test } from 'vitest';
import { chatPages } from './chat-page.ts';

const openChat = chatPages();

test('a turn that failed keeps its reason and its trace when another follows, and when the page is loaded anew', async () => {
  const chat = await openChat({ traced: true });
  const { page, answers } = chat;
  await chat.model({ fail: 1 });
  await chat.say('heron');
  await page.getByRole('group', { name: 'Outcome' }).getByText('The model is on strike.').waitFor();
  const traces = page.getByRole('link', { name: 'Trace' });
  const failed = await traces.getAttribute('href');
  expect(await page.getByRole('button', { name: 'Good answer' }).count()).toBe(0);
  await chat.say('hello');
  await answers.getByText('Hello.').waitFor();
  await chat.settled();
  const turn = page.locator('li.turn').first();
  for (const load of [() => page.getByRole('heading', { level: 1 }).waitFor(), () => page.reload()]) {
    await load();
    await turn.getByText('The answer failed. The model is on strike.').waitFor();
    expect(await turn.getByRole('link', { name: 'Trace' }).getAttribute('href')).toBe(failed);
    await expect.poll(() => traces.count()).toBe(2);
    expect(await page.getByText('The answer failed.').count()).toBe(1);
  }
});
