import { join } from 'node:path';
import { AT_ONCE, greetingOf, startChat } from '../../examples/chat/test/support/chat-program.mjs';

/** Takes screenshots of the chat answering questions about runspan's documents. Returns their names. */
export async function shootChat(browser, folder) {
  const chat = startChat(AT_ONCE);
  try {
    const { url } = await greetingOf(chat);
    const settings = { viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' };
    const context = await browser.newContext({ ...settings, colorScheme: 'light' });
    const page = await context.newPage();
    await page.goto(url);
    await ask(page, 'What happens when the service is away?');
    await newConversation(page);
    await ask(page, 'Compare the spool and secrets');
    await page.getByRole('button', { name: 'Good answer' }).click();
    await page.getByRole('textbox', { name: 'Comment on the answer' }).waitFor();
    await page.getByRole('button', { name: 'History', exact: true }).click();
    await page.getByText('checkpoints').waitFor();
    await page.screenshot({ path: join(folder, 'chat-light.png') });
    const thread = page.url();

    await page.emulateMedia({ colorScheme: 'dark' });
    await page.getByRole('button', { name: 'Close the history' }).click();
    await ask(page, 'Save a note: secrets never reach the spool', 'Save this note?');
    await page.screenshot({ path: join(folder, 'chat-dark.png') });
    await page.getByRole('button', { name: 'Approve' }).click();
    await settled(page);

    const phone = await browser.newContext({ viewport: { width: 390, height: 800 }, reducedMotion: 'reduce' });
    const small = await phone.newPage();
    await small.goto(thread);
    await small.getByText('Saved').last().waitFor();
    await small.screenshot({ path: join(folder, 'chat-mobile.png') });
    await phone.close();
    await context.close();
    return ['chat-light.png', 'chat-dark.png', 'chat-mobile.png'];
  } finally {
    chat.kill();
  }
}

async function newConversation(page) {
  await page.getByRole('link', { name: 'New conversation' }).click();
  await page.getByRole('heading', { name: 'What would you like to know?' }).waitFor();
}

/** Asks a question, and waits for the end of the answer or for a text. */
async function ask(page, question, text) {
  const composer = page.getByRole('textbox', { name: 'Message', exact: true });
  await composer.fill(question);
  await composer.press('Enter');
  if (text === undefined) await settled(page);
  else await page.getByText(text).first().waitFor();
}

async function settled(page) {
  await page.getByRole('button', { name: 'Retry' }).waitFor();
}
