import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { chromiumOptions } from '../../scripts/chromium.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the browser of all tests listens. */
    browser: string;
  }
}

/** Starts the browser that all tests share. */
export default async function setUp({ provide }: TestProject): Promise<() => Promise<void>> {
  const server = await chromium.launchServer(chromiumOptions());
  provide('browser', server.wsEndpoint());
  return () => server.close();
}
