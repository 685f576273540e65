import { pathToFileURL } from 'node:url';
import type { BrowserContextOptions, Request } from 'playwright-core';
import { newPage, type OpenedPage } from './connected.ts';

export interface OpenedFile extends Omit<OpenedPage, 'context'> {
  readonly path: string;
  readonly requests: readonly Request[];
}

/** Opens a file without a server. The test fails if the page throws or violates its security policy. */
export async function openFile(path: string, context: BrowserContextOptions = {}): Promise<OpenedFile> {
  const { page, complaints } = await newPage(context);
  const requests: Request[] = [];
  page.on('request', (request) => requests.push(request));
  await page.goto(`${pathToFileURL(path)}`);
  return { path, page, requests, complaints };
}
