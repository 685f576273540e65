import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { chromiumOptions } from '../../scripts/chromium.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    /** WebSocket endpoint of the browser. */
    browser: string;
  }
}

/** Starts one browser for all tests. */
export default async function setUp({ provide }: TestProject): Promise<() => Promise<void>> {
  const server = await chromium.launchServer(chromiumOptions());
  provide('browser', server.wsEndpoint());
  return () => server.close();
}
