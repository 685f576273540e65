import { type Browser, chromium } from 'playwright-core';
import { inject } from 'vitest';

let browser: Promise<Browser> | undefined;

/** Returns this worker's connection to the browser, which all of the worker's test files share. */
export function connected(): Promise<Browser> {
  browser ??= chromium.connect(inject('browser'));
  return browser;
}
