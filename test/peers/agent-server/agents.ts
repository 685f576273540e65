import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../support/folders.ts';

const folder = join(root, 'test/peers/agent-server');

export interface Agents {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts the in-memory agent server in its own process, which reports its runs to this receiver and uses its feedback
 * URLs.
 */
export async function startAgents(receiver: string, port = 0): Promise<Agents> {
  const cwd = mkdtempSync(join(tmpdir(), 'runspan-agents-'));
  const tracing = { LANGSMITH_ENDPOINT: receiver, LANGSMITH_API_KEY: 'lsv2_none', LANGSMITH_TRACING: 'true' };
  const child = fork(join(folder, 'start.mjs'), [join(folder, 'graph.mjs'), String(port)], {
    cwd,
    silent: true,
    env: { PATH: process.env.PATH, HOME: cwd, ...tracing },
  });
  // Reads the server's line for each request, because a full pipe would stop it.
  child.stdout?.resume();
  let trouble = '';
  child.stderr?.on('data', (chunk) => {
    trouble = (trouble + chunk).slice(-4_000);
  });
  const exit = once(child, 'exit');
  const died = exit.then(([code]) => Promise.reject(new Error(`it ended with ${code}: ${trouble}`)));
  const [{ url }] = (await Promise.race([once(child, 'message'), died])) as [{ url: string }];
  died.catch(() => {});
  const stop = async (): Promise<void> => {
    if (child.connected) child.disconnect();
    await exit;
    rmSync(cwd, { recursive: true, force: true });
  };
  return { url, stop };
}
