import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect, inject, onTestFinished } from 'vitest';

let browser: Promise<Browser> | undefined;

/** Returns this worker's connection to the browser, which all of the worker's test files share. */
function connected(): Promise<Browser> {
  browser ??= chromium.connect(inject('browser'));
  return browser;
}

export interface OpenedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors on the page. The test fails if any are left when it ends. */
  readonly complaints: string[];
}

/** Opens an empty page. Errors in its console that match `expected` are no complaints. */
export async function newPage(options: BrowserContextOptions, expected?: RegExp): Promise<OpenedPage> {
  const context = await (await connected()).newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(`${error}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !expected?.test(message.text())) complaints.push(message.text());
  });
  onTestFinished(async () => {
    await context.close();
    expect(complaints).toEqual([]);
  });
  return { page, context, complaints };
}
