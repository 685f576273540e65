import { expect, test } from 'vitest';
import { expectToFit } from './axe.ts';
import { openChat } from './chat-page.ts';

const HIT = 'globalThis.hits=(globalThis.hits||0)+1';

const HOSTILE = [
  `<script>${HIT}</script>`,
  `"><img src=x onerror="${HIT}"><svg onload="${HIT}"></svg>`,
  `[a link](javascript:${HIT}) <javascript:${HIT}> ![x](javascript:${HIT}) [b](data:text/html;base64,PHNjcmlwdD4=)`,
  `<style>* { display: none }</style><iframe srcdoc="<script>parent.${HIT}</script>"></iframe>`,
  'gpj\u202eexe \u2066hidden\u2069 \u200bzero \u001b[31mred',
  `| <b onmouseover=${HIT}>x</b> |\n|---|\n| <img src=x onerror=${HIT}> |`,
  `${'>'.repeat(500)} deep ${'['.repeat(500)}`,
  'constructor and toString',
].join('\n\n');

test('hostile text runs nothing, sends no request, and shows its hidden characters', async () => {
  const { chat, page, answers } = await openChat();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).origin));
  await chat.model({ say: HOSTILE });
  await chat.say(HOSTILE);
  await chat.answered(answers.getByText('constructor and toString'));
  // In an answer and a question.
  await answers.locator('.hidden-character', { hasText: '\\u202e' }).waitFor();
  await page.getByRole('article', { name: 'You' }).locator('.hidden-character', { hasText: '\\u202e' }).waitFor();
  expect(await page.getByRole('link', { name: 'a link' }).count()).toBe(0);

  // In a request, in the input and in the output of a tool.
  await chat.model({ say: '' });
  await chat.say(`Save a note: ${HOSTILE}`);
  const card = page.getByRole('article', { name: 'Request of the agent' });
  expect(await card.getByRole('textbox').first().inputValue()).toContain(HIT);
  await card.getByRole('button', { name: 'Approve' }).click();
  await answers.last().getByText('Saved until').last().waitFor();
  await chat.settled();
  await answers.last().getByText('save_note').click();

  // In the task of a subagent and in the history.
  await chat.say(HOSTILE);
  await page.getByRole('article', { name: 'Subagent researcher' }).waitFor();
  await chat.settled();
  await page.getByRole('article', { name: 'Subagent researcher' }).locator('summary').first().click();
  await page.getByRole('button', { name: 'History', exact: true }).click();
  await page.getByRole('button', { name: 'Branch from here' }).nth(2).waitFor();
  await page.reload();
  await page.getByRole('article', { name: 'Subagent researcher' }).waitFor();

  expect(await page.evaluate('globalThis.hits ?? 0')).toBe(0);
  expect(new Set(asked)).toEqual(new Set([new URL(chat.url).origin]));
  const links = await page.locator('a[href]').evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''));
  expect(links.filter((link) => !/^(https?:|#)/.test(link))).toEqual([]);
  expect(await page.locator('main').isVisible()).toBe(true);
});

test('a word of 1 MiB is shown in part and fits the page', async () => {
  const { chat, page, answers } = await openChat();
  await chat.model({ say: 'x'.repeat(2 ** 20) });
  await chat.say('y'.repeat(900_000));
  await chat.answered(answers.getByText('Show more'));
  expect((await answers.textContent())?.length).toBeLessThan(20_000);
  await expectToFit(page, 'chat');
  await answers.getByRole('button', { name: 'Show more' }).click();
  expect((await answers.textContent())?.length).toBeGreaterThan(80_000);
});
