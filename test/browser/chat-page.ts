import type { BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { inject } from 'vitest';
import { newPage } from './connected.ts';

interface ChatOptions extends BrowserContextOptions {
  readonly traced?: boolean;
  readonly asks?: boolean;
  readonly eventsMax?: number;
}

/** Opens a chat of its own, with the parts of its page that tests use most. */
export async function openChat({ traced = false, asks = false, eventsMax, ...options }: ChatOptions = {}) {
  const opened = await post('/chats', { traced, asks, eventsMax });
  const started = (await opened.json()) as { id: number; url: string; viewer_url: string };
  // Chromium draws the animation of a working agent 60 times per second. Tests let requests fail on purpose.
  const { page, context } = await newPage({ reducedMotion: 'reduce', ...options }, /^Failed to load resource/);
  await page.goto(started.url);
  const control = async (what: string, body = {}) => void (await post(`/chats/${started.id}/${what}`, body));
  const chat = new ChatPage({ page, context }, started, control);
  const { url, composer, answers } = chat;
  return { chat, page, context, url, composer, answers };
}

async function post(path: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(inject('chats') + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path} got ${answer.status}`);
  return answer;
}

interface ModelScript {
  /** The agent whose answers wait for `release`. */
  readonly hold?: 'supervisor' | 'researcher' | 'writer';
  /**
   * How many chunks the held agent sends before it waits.
   * @default 2
   */
  readonly holdPieces?: number;
  readonly fail?: number;
  /** The supervisor's answer to everything, and its chunk size in characters. */
  readonly say?: string;
  readonly pieceChars?: number;
}

class ChatPage {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly url: string;
  readonly viewerUrl: string | null;
  readonly #control: (what: string, body?: object) => Promise<void>;

  constructor(
    { page, context }: Pick<ChatPage, 'page' | 'context'>,
    chat: { readonly url: string; readonly viewer_url: string | null },
    control: (what: string, body?: object) => Promise<void>,
  ) {
    this.page = page;
    this.context = context;
    this.url = chat.url;
    this.viewerUrl = chat.viewer_url;
    this.#control = control;
  }

  get composer(): Locator {
    return this.page.getByRole('textbox', { name: 'Message', exact: true });
  }

  get answers(): Locator {
    return this.page.getByRole('article', { name: 'Answer' });
  }

  model(script: ModelScript): Promise<void> {
    return this.#control('model', script);
  }

  release(): Promise<void> {
    return this.#control('release');
  }

  cut(): Promise<void> {
    return this.#control('cut');
  }

  flush(): Promise<void> {
    return this.#control('flush');
  }

  async say(text: string): Promise<void> {
    await this.composer.fill(text);
    await this.composer.press('Enter');
  }

  /** Asks about herons, and comes back in the middle of the answer, which the model holds. */
  async startAnswer(): Promise<void> {
    await this.model({ hold: 'supervisor' });
    await this.say('heron');
    await this.answers.getByText('Let me', { exact: true }).waitFor();
  }

  async ask(text: string): Promise<void> {
    await this.say(text);
    await this.settled();
  }

  /** Waits for an answer, and for the end of its run. */
  async answered(answer: Locator): Promise<void> {
    await answer.waitFor();
    await this.settled();
  }

  async settled(): Promise<void> {
    await this.page.getByRole('button', { name: 'Send' }).waitFor();
    await this.page.getByText('Working', { exact: true }).waitFor({ state: 'detached' });
  }
}
