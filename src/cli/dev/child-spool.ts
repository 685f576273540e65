import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { diagnostics } from '../../base/diagnostics.ts';
import { visible } from '../../base/text.ts';
import { env } from '../../config/environment.ts';
import { resolveSettings } from '../../config/options.ts';
import { exporterFor } from '../../delivery/create-exporter.ts';
import { Ledger } from '../../delivery/ledger.ts';
import { sendOptions, surveySpool } from '../../delivery/spool/survey.ts';
import { runsIn } from '../spool/destination.ts';

const SEND_MAX_MS = 5_000;

interface SpoolTarget {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly programId: string;
}

/**
 * Calls `runCommand` with environment variables for a temporary spool folder. If the command exits with unsent runs,
 * the spool keeps these runs. The spooled runs are then sent to the receiver. Other runs stay in the folder, and one line
 * names the command that sends them. A durability that the user has set stays in effect. If no temporary folder can be
 * created, no runs are spooled.
 */
export async function withSpool<Result>(
  target: SpoolTarget,
  runCommand: (variables: Record<string, string>) => Promise<Result>,
): Promise<Result> {
  if (env('RUNSPAN_DURABILITY') !== undefined) return await runCommand({});
  const spoolDir = await mkdtemp(join(tmpdir(), 'runspan-dev-')).catch(() => undefined);
  if (spoolDir === undefined) return await runCommand({ RUNSPAN_DURABILITY: 'memory' });
  try {
    const result = await runCommand({ RUNSPAN_DURABILITY: 'spill', RUNSPAN_SPOOL_DIR: spoolDir });
    await sendSpool(target, spoolDir);
    return result;
  } finally {
    await removeIfSent(spoolDir);
  }
}

/** Removes the folder, unless it contains runs for an endpoint that the program sets in its code, or unsent runs. */
async function removeIfSent(spoolDir: string): Promise<void> {
  const hashes = surveySpool(spoolDir, Date.now())
    .filter(({ owners }) => runsIn(owners) > 0)
    .map(({ hash }) => hash);
  if (hashes.length === 0) {
    // Errors are ignored, because a background process may still be writing to the folder.
    await rm(spoolDir, { recursive: true, force: true }).catch(() => {});
    return;
  }
  diagnostics.warn(
    `unsent runs of the command wait in ${visible(spoolDir)}; set RUNSPAN_ENDPOINT to their service and run \`runspan spool send ${sendOptions(spoolDir, hashes)}\`.`,
  );
}

/** Sends the spooled runs for the receiver. Runs for an endpoint that a program sets in its code stay on disk. */
async function sendSpool({ url, apiKey, programId }: SpoolTarget, spoolDir: string): Promise<void> {
  const workspaceId = env('RUNSPAN_WORKSPACE_ID');
  const settings = resolveSettings({
    tracing: true,
    endpoint: url,
    apiKey: apiKey ?? env('RUNSPAN_API_KEY') ?? '',
    ...(workspaceId !== undefined && { workspaceId }),
    headers: { 'x-runspan-program': programId },
    durability: 'spill',
    spoolDir,
  });
  if (settings === undefined) return;
  const exporter = exporterFor(settings, new Ledger(), () => {});
  exporter.recover();
  await exporter.finish({ timeoutMs: SEND_MAX_MS });
  await exporter.close({ timeoutMs: 0 });
}
