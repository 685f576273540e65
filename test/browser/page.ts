import type { BrowserContextOptions, Locator, Page, Request } from 'playwright-core';
import { onTestFinished } from 'vitest';
import type { Route } from '#src/receiver/http/route.ts';
import { receiverWith } from '#src/receiver/receiver.ts';
import { DEFAULT_SCOPE, MemoryStore, type Receiver, type ReceiverOptions, type RunOperation } from '#src/receiver.ts';
import { newPage, type OpenedPage } from './connected.ts';

export interface Opened extends Omit<OpenedPage, 'context'> {
  readonly receiver: Receiver;
  readonly store: MemoryStore;
  readonly requests: readonly Request[];
  readonly rows: Locator;
  go(path: string): Promise<void>;
  /** Waits for an element with exactly this text. */
  see(text: string): Promise<void>;
}

/** Opens a receiver's page with these runs. The test fails if the page throws or violates its security policy. */
export async function openPage(
  operations: readonly RunOperation[],
  {
    path = '/',
    receiver: options,
    routes = [],
    ...context
  }: { path?: string; receiver?: ReceiverOptions; routes?: readonly Route[] } & BrowserContextOptions = {},
): Promise<Opened> {
  const store = new MemoryStore({ runsMax: 1_000_000, bytesMax: 2 ** 31 });
  await store.apply(DEFAULT_SCOPE, operations);
  const receiver = await receiverWith({ store, ...options }, { routes });
  onTestFinished(() => receiver.close());
  // The browser also logs responses with a 4xx status, which the page expects.
  const { page, complaints } = await newPage(context, /the server responded with a status of 4/);
  const requests: Request[] = [];
  page.on('request', (request) => requests.push(request));
  const go = async (to: string): Promise<void> => {
    await page.goto(receiver.url + to);
  };
  await go(path);
  const rows = page.locator('.list-rows [role=rowgroup] [role=row]');
  const see = (text: string): Promise<void> => page.getByText(text, { exact: true }).first().waitFor();
  return { page, receiver, store, requests, complaints, rows, go, see };
}

export async function rowCount(page: Page): Promise<number> {
  return page.locator('[role=row], li, tr').count();
}
