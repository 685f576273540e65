import { type Browser, chromium } from 'playwright-core';
import { inject } from 'vitest';

let browser: Promise<Browser> | undefined;

/** Returns the connection of this worker to the browser. It lasts for all test files of the worker. */
export function connected(): Promise<Browser> {
  browser ??= chromium.connect(inject('browser'));
  return browser;
}
