import { pathToFileURL } from 'node:url';
import type { BrowserContextOptions, Page, Request } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { connected } from './connected.ts';

/** A file in the browser. */
export interface OpenedFile {
  readonly path: string;
  readonly page: Page;
  readonly requests: readonly Request[];
  /** Errors on the page. The test fails if any are left when it ends. */
  readonly complaints: string[];
}

/** Opens a file without a server. The test fails if the page throws or violates its security policy. */
export async function openFile(path: string, context: BrowserContextOptions = {}): Promise<OpenedFile> {
  const opened = await (await connected()).newContext({ viewport: { width: 1280, height: 800 }, ...context });
  const page = await opened.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(`${error}`));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  onTestFinished(async () => {
    await opened.close();
    expect(complaints).toEqual([]);
  });
  const requests: Request[] = [];
  page.on('request', (request) => requests.push(request));
  await page.goto(`${pathToFileURL(path)}`);
  return { path, page, requests, complaints };
}
