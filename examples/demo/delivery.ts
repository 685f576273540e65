import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createExporter, startRun } from 'runspan';
import type { DemoContext } from './context.ts';
import { deliver } from './ingestion.ts';

/** What happens to runs if the platform has no batches, is down, or the program is killed. */
export async function delivery(context: DemoContext): Promise<void> {
  const { platform, check } = context;
  platform.next(/^POST \/runs\/multipart$/, () => ({ status: 404, body: { detail: 'Not Found' } }));
  const { requests } = await deliver(context, 'fallback');
  check('an exporter falls back to simple requests', [requests.multipart, requests.simple > 0], [1, true]);

  platform.setFaults({ fail: { status: 503, times: 2 } });
  const { lastError } = await deliver(context, 'outage');
  check('the outage is reported', lastError?.message.includes('503'));
  await killed(context);
}

const KEPT = 50;

/** A program that records runs, which the platform does not accept, and then waits. */
const program = (packageUrl: string): string => `import { traceable } from '${packageUrl}';
for (let n = 0; n < ${KEPT}; n++) traceable(() => n, { name: 'kept' })();
process.stdout.write('recorded');
setInterval(() => {}, 1_000);`;

/** Kills a program before its runs are delivered. The next program with runs finds those on disk after 10 s, and sends them. */
async function killed({ platform, service, packageUrl, check }: DemoContext): Promise<void> {
  const spoolDir = mkdtempSync(join(tmpdir(), 'runspan-demo-'));
  const env = {
    ...process.env,
    RUNSPAN_ENDPOINT: service.endpoint,
    RUNSPAN_API_KEY: service.apiKey,
    RUNSPAN_WORKSPACE_ID: service.workspaceId,
    RUNSPAN_PROTOCOL: 'runs',
    RUNSPAN_TRACING: 'true',
    RUNSPAN_SAMPLE_RATE: '1',
    RUNSPAN_PROJECT: 'killed',
    RUNSPAN_DURABILITY: 'write-ahead',
    RUNSPAN_SPOOL_DIR: spoolDir,
    RUNSPAN_LOG: 'silent',
  };
  platform.setFaults({ fail: { status: 503 } });
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program(packageUrl)], { env, stdio: 'pipe' });
  const ended = once(child, 'exit');
  const printed = await Promise.race([once(child.stdout, 'data'), ended]);
  child.kill('SIGKILL');
  await ended;
  check('the program recorded its runs', String(printed[0]), 'recorded');
  check('none of them has arrived', (await platform.runs({ project: 'killed' })).length, 0);
  platform.setFaults({});
  const exporter = createExporter({ ...service, project: 'killed', durability: 'write-ahead', spoolDir });
  startRun({ name: 'after', exporter }).end();
  for (const endMs = performance.now() + 20_000; performance.now() < endMs && exporter.stats().sent <= KEPT; )
    await new Promise((resolve) => setTimeout(resolve, 50));
  const { recovered, sent } = exporter.stats();
  await exporter.close();
  rmSync(spoolDir, { recursive: true });
  check('the runs of the killed program are found and sent', [recovered, sent], [KEPT, KEPT + 1]);
  check('each of them has arrived once', (await platform.runs({ project: 'killed' })).length, KEPT + 1);
}
