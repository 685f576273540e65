import { expect, test } from 'vitest';
import { openChat } from './chat-page.ts';

test('a failed turn keeps its reason and trace after another turn and after a reload', async () => {
  const { chat, page, answers } = await openChat({ traced: true });
  await chat.model({ fail: 1 });
  await chat.say('heron');
  await page.getByRole('group', { name: 'Outcome' }).getByText('The model is on strike.').waitFor();
  const traces = page.getByRole('link', { name: 'Trace' });
  const failed = await traces.getAttribute('href');
  expect(await page.getByRole('button', { name: 'Good answer' }).count()).toBe(0);
  await chat.say('hello');
  await chat.answered(answers.getByText('Hello.'));
  const turn = page.locator('li.turn').first();
  for (const load of [() => page.getByRole('heading', { level: 1 }).waitFor(), () => page.reload()]) {
    await load();
    await turn.getByText('The answer failed. The model is on strike.').waitFor();
    expect(await turn.getByRole('link', { name: 'Trace' }).getAttribute('href')).toBe(failed);
    await expect.poll(() => traces.count()).toBe(2);
    expect(await page.getByText('The answer failed.').count()).toBe(1);
  }
});

test('a conversation that is deleted during its answer is reported under its title', async () => {
  const { chat, page } = await openChat();
  await chat.startAnswer();
  await page.getByRole('navigation').getByRole('link', { name: 'heron', exact: true }).waitFor();
  expect((await page.request.delete(`${chat.url}/api/threads/${page.url().split('/').at(-1)}`)).status()).toBe(204);
  await page.getByRole('alert').getByText('This conversation no longer exists on the server.').waitFor();
  await page.getByText('Your conversations will appear here.').waitFor();
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('heron');
  expect(await page.getByRole('group', { name: 'Outcome' }).count()).toBe(0);
  await page.getByRole('link', { name: 'Start a new one' }).click();
  await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toBe('New conversation');
});

test('a message that is written while the server is away stays in the form', async () => {
  const { chat, page, composer } = await openChat();
  await chat.startAnswer();
  await chat.context.setOffline(true);
  await chat.cut();
  await page.getByText('Reconnecting').waitFor();
  await chat.say('And then?');
  await page.locator('form').getByText('The server does not respond. Send the message later.').waitFor();
  expect(await composer.inputValue()).toBe('And then?');
  await chat.release();
  await chat.context.setOffline(false);
  await page.getByText('Reconnecting').waitFor({ state: 'detached' });
  await chat.settled();
});

test('an earlier point has a note if the agent waits for a decision', async () => {
  const { chat, page } = await openChat();
  await chat.ask('hello');
  await chat.say('Save a note: buy milk');
  await page.getByRole('article', { name: 'Request of the agent' }).waitFor();
  await page.getByRole('button', { name: 'History', exact: true }).click();
  const first = page.getByRole('complementary').getByRole('listitem').filter({ hasText: 'Hello.' });
  await first.getByRole('button', { name: 'Branch from here' }).click();
  const note = page.getByRole('group', { name: 'Earlier point' });
  await note.getByText('The agent waits for your decision in the latest state').waitFor();
  await page.getByRole('button', { name: 'Back to latest' }).click();
  await page.getByRole('button', { name: 'Reject' }).click();
  await chat.answered(chat.answers.getByText('The user declined').last());
  await first.getByRole('button', { name: 'Branch from here' }).click();
  await note.waitFor();
  expect(await note.getByText('waits for your decision').count()).toBe(0);
});

test('an answer that is empty, cut or refused, and an invalid call are explained', async () => {
  const { chat, page, answers } = await openChat();
  const bad = { type: 'invalid_tool_call', id: 'c', name: 'save_note', args: '{"text":', error: 'Not JSON' };
  const replies: [string, object, string][] = [
    ['empty', { content: [] }, 'The model returned no text.'],
    [
      'cut',
      { content: 'The', response_metadata: { finish_reason: 'length' } },
      'reached the maximum length of the model.',
    ],
    ['refused', { content: 'I refuse.', response_metadata: { finish_reason: 'content_filter' } }, 'The model refused'],
    ['invalid', { content: [bad] }, 'Not JSON'],
  ];
  for (const [id, reply, explanation] of replies) {
    const values = {
      messages: [
        { type: 'human', content: 'Hello' },
        { type: 'ai', ...reply },
      ],
    };
    const { status } = await fetch(`${chat.url}/api/threads/${id}/state`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ values }),
    });
    expect(status).toBe(200);
    await page.goto(`${chat.url}/#/t/${id}`);
    await answers.getByText(explanation).waitFor();
  }
  expect(await answers.locator('summary').textContent()).toContain('failed');
});
