import { AT_ONCE, greetingOf, startChat } from '../../examples/chat/test/support/chat-program.mjs';

/** Saves a screenshot of the chat answering questions about runspan's documents. */
export async function shootChat(browser, save) {
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
    await save(page, 'chat-light');
    await context.close();
  } finally {
    chat.kill();
  }
}

async function newConversation(page) {
  await page.getByRole('link', { name: 'New conversation' }).click();
  await page.getByRole('heading', { name: 'What would you like to know?' }).waitFor();
}

/** Asks a question, and waits for the end of the answer. */
async function ask(page, question) {
  const composer = page.getByRole('textbox', { name: 'Message', exact: true });
  await composer.fill(question);
  await composer.press('Enter');
  await page.getByRole('button', { name: 'Retry' }).waitFor();
}
