import { expect, test } from 'vitest';
import { openChat } from './chat-page.ts';

test('thumbs and a comment become feedback on the trace of the answer', async () => {
  const { chat, page, answers, context } = await openChat({ traced: true });
  await chat.say('heron');
  await chat.answered(answers.getByText('The heron is a tall bird.').last());
  await page.getByRole('button', { name: 'Bad answer' }).click();
  await page.getByText('Thank you.').waitFor();
  await page.getByRole('button', { name: 'Good answer' }).click();
  await page.getByRole('button', { name: 'Good answer', pressed: true }).waitFor();
  await page.getByRole('textbox', { name: 'Comment on the answer' }).fill('Tall, indeed');
  await page.keyboard.press('Enter');
  await page.getByText('Thank you for the comment.').waitFor();
  await chat.flush();

  const opened = context.waitForEvent('page');
  await page.getByRole('link', { name: 'Trace' }).click();
  const viewer = await opened;
  // The agent is the root, and its subagent is a child.
  const tree = viewer.getByRole('treegrid');
  for (const name of ['chat turn', 'researcher']) await tree.getByText(name, { exact: true }).first().waitFor();
  const feedback = viewer.getByRole('region', { name: 'Feedback' });
  await feedback.getByText('user_score').waitFor();
  expect(await feedback.getByRole('listitem').count()).toBe(1);
  expect(await feedback.getByRole('listitem').textContent()).toMatch(/user_score1.*Tall, indeed/);
});

test('a changed rating keeps its comment, survives a reload, and can be removed', async () => {
  const { chat, page, answers } = await openChat({ traced: true });
  await chat.say('heron');
  await chat.answered(answers.getByText('The heron is a tall bird.').last());
  const href = await page.getByRole('link', { name: 'Trace' }).getAttribute('href');
  const run = new URL(href ?? '').searchParams.get('run');
  const said = async (): Promise<unknown[]> => {
    const all = (await (await fetch(`${chat.viewerUrl}/feedback?run=${run}`)).json()) as Record<string, unknown>[];
    return all.map(({ score, comment }) => [score, comment]);
  };
  await page.getByRole('button', { name: 'Good answer' }).click();
  await page.getByRole('textbox', { name: 'Comment on the answer' }).fill('Tall, indeed');
  await page.keyboard.press('Enter');
  await page.getByText('Thank you for the comment.').waitFor();
  await page.getByRole('button', { name: 'Bad answer' }).click();
  await page.getByRole('button', { name: 'Bad answer', pressed: true }).waitFor();
  expect(await said()).toEqual([[-1, 'Tall, indeed']]);

  await page.reload();
  await page.getByRole('button', { name: 'Bad answer', pressed: true }).waitFor();
  await page.getByRole('button', { name: 'Good answer', pressed: false }).click();
  expect(await page.getByRole('textbox', { name: 'Comment on the answer' }).inputValue()).toBe('Tall, indeed');
  expect(await said()).toEqual([[1, 'Tall, indeed']]);

  await page.getByRole('button', { name: 'Good answer', pressed: true }).click();
  await page.getByText('Rating removed.').waitFor();
  expect(await said()).toEqual([[undefined, undefined]]);
  await page.reload();
  await page.getByRole('button', { name: 'Bad answer', pressed: false }).waitFor();
  expect(await page.getByRole('button', { name: 'Good answer', pressed: false }).count()).toBe(1);
});

test('the page leaves tracing to the server: it sets no trace header and sends no data about its turns', async () => {
  const { chat, page } = await openChat({ traced: true });
  const sent: string[] = [];
  page.on('request', (request) => {
    const isNamed = 'runspan-trace' in request.headers();
    if (request.method() === 'POST') sent.push(`${new URL(request.url()).pathname.split('/').at(-1)} ${isNamed}`);
  });
  await chat.ask('hello');
  await page.getByRole('link', { name: 'Trace' }).waitFor();
  await page.reload();
  expect(new Set(sent)).toEqual(new Set(['stream false', 'commands false']));
});

test('without tracing, the page shows no ratings and no trace links, and the console stays clean', async () => {
  const { chat, page } = await openChat();
  const lines: string[] = [];
  page.on('console', (message) => lines.push(message.text()));
  await chat.ask('hello');
  await chat.say('heron');
  await chat.answered(chat.answers.getByText('The heron is a tall bird.').last());
  expect(lines).toEqual([]);
  expect(await page.getByRole('link', { name: 'Trace' }).count()).toBe(0);
  expect(await page.getByRole('button', { name: /Good|Bad/ }).count()).toBe(0);
});
