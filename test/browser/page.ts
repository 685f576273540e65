import { type Browser, type BrowserContextOptions, chromium, type Page, type Request } from 'playwright-core';
import { afterAll, expect, inject, onTestFinished } from 'vitest';
import {
  createReceiver,
  MemoryStore,
  type Receiver,
  type ReceiverOptions,
  type RunOperation,
} from '../../src/receiver.ts';

let browser: Promise<Browser> | undefined;
afterAll(async () => (await browser)?.close());

/** A page on a receiver of its own, with what it has asked for and what has gone wrong in it. */
export interface Opened {
  readonly page: Page;
  readonly receiver: Receiver;
  readonly store: MemoryStore;
  readonly requests: readonly Request[];
  /** What is wrong with the page: anything in it at the end fails the test. */
  readonly complaints: string[];
  /** Opens a path of the receiver, or it anew. */
  go(path: string): Promise<void>;
}

/** Opens the page with these runs; the test fails if anything on it threw, or was refused by its policy. */
export async function openPage(
  operations: readonly RunOperation[],
  {
    path = '/',
    receiver: options,
    ...context
  }: { path?: string; receiver?: ReceiverOptions } & BrowserContextOptions = {},
): Promise<Opened> {
  const store = new MemoryStore({ runsMax: 1_000_000, bytesMax: 2 ** 31 });
  await store.apply(operations);
  const receiver = await createReceiver({ store, ...options });
  browser ??= chromium.connect(inject('browser'));
  const opened = await (await browser).newContext({ viewport: { width: 1280, height: 800 }, ...context });
  const page = await opened.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(`${error}`));
  page.on('console', (message) => {
    // What the receiver refuses the page has to tell its reader; here it is no fault of it.
    if (message.type() === 'error' && !/the server responded with a status of 4/.test(message.text()))
      complaints.push(message.text());
  });
  onTestFinished(async () => {
    await opened.close();
    await receiver.close();
    expect(complaints).toEqual([]);
  });
  const requests: Request[] = [];
  page.on('request', (request) => requests.push(request));
  const go = async (to: string): Promise<void> => {
    await page.goto(receiver.url + to);
  };
  await go(path);
  return { page, receiver, store, requests, complaints, go };
}

/** Elements with the role of a row, anywhere in the document. */
export async function rowCount(page: Page): Promise<number> {
  return page.locator('[role=row], li, tr').count();
}
