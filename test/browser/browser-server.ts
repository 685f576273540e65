import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { chromiumOptions } from '../../scripts/chromium.mjs';
import { root } from '../support/folders.ts';

const PROGRAM = join(root, 'examples/chat/build/test/programs/page-server.js');

declare module 'vitest' {
  interface ProvidedContext {
    /** WebSocket endpoint of the browser. */
    browser: string;
    /** URL of the program that starts chats. */
    chats: string;
  }
}

/** Starts one browser, and one program that starts chats, for all tests. */
export default async function setUp({ provide }: TestProject): Promise<() => Promise<void>> {
  const program = spawn(process.execPath, [PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] });
  const url = await createInterface({ input: program.stdout })[Symbol.asyncIterator]().next();
  if (url.done) throw new Error(`${PROGRAM} did not start; build the chat with \`node scripts/build-chat.mjs\``);
  const server = await chromium.launchServer(chromiumOptions());
  provide('browser', server.wsEndpoint());
  provide('chats', url.value);
  return async () => {
    program.stdin.end();
    await server.close();
  };
}
