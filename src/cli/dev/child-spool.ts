import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from '../../base/env.ts';
import { exporterFor } from '../../export/create-exporter.ts';
import { Ledger } from '../../export/ledger.ts';
import { resolveSettings } from '../../export/settings.ts';

const SEND_MAX_MS = 5_000;

/**
 * Calls `runCommand` with environment variables that enable a temporary spool folder. If the command exits with unsent
 * runs, the spool keeps them. After the command ends, the spooled runs are sent to the receiver. If the user has set a
 * durability, that setting stays in effect. If no temporary folder can be created, no runs are spooled.
 */
export async function withSpool<Result>(
  { url, apiKey }: { readonly url: string; readonly apiKey: string | undefined },
  runCommand: (variables: Record<string, string>) => Promise<Result>,
): Promise<Result> {
  if (env('RUNSPAN_DURABILITY') !== undefined) return await runCommand({});
  const spoolDir = await mkdtemp(join(tmpdir(), 'runspan-dev-')).catch(() => undefined);
  if (spoolDir === undefined) return await runCommand({});
  try {
    const result = await runCommand({ RUNSPAN_DURABILITY: 'spill', RUNSPAN_SPOOL_DIR: spoolDir });
    await sendSpool(url, apiKey, spoolDir);
    return result;
  } finally {
    // The removal fails if a background process of the command still writes to the folder. The failure is ignored, so
    // the exit code does not change.
    await rm(spoolDir, { recursive: true, force: true }).catch(() => {});
  }
}

/**
 * Sends the spooled runs whose destination is the receiver. Runs for an endpoint that a program sets in its code stay
 * on disk.
 */
async function sendSpool(url: string, apiKey: string | undefined, spoolDir: string): Promise<void> {
  const workspaceId = env('RUNSPAN_WORKSPACE_ID');
  const settings = resolveSettings({
    tracing: true,
    endpoint: url,
    apiKey: apiKey ?? env('RUNSPAN_API_KEY') ?? '',
    ...(workspaceId !== undefined && { workspaceId }),
    durability: 'spill',
    spoolDir,
  });
  if (settings === undefined) return;
  const exporter = exporterFor(settings, new Ledger(), () => {});
  exporter.recover();
  await exporter.finish({ timeoutMs: SEND_MAX_MS });
  await exporter.close({ timeoutMs: 0 });
}
