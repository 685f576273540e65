import { exporterFor } from '../export/create-exporter.ts';
import { Ledger } from '../export/ledger.ts';
import { resolveSettings } from '../export/settings.ts';
import type { SpoolInvocation } from './spool-arguments.ts';
import { counted } from './terminal-text.ts';

/** Without a run that is delivered or given up for so long, the service is taken to be away. */
const PATIENCE_MS = 30_000;

/**
 * Delivers what dead processes have left for the configured service; gives the exit code, which is 0 when nothing is left.
 * Throws when no service is configured.
 */
export async function sendSpool({ dir, endpoint }: SpoolInvocation, print: (text: string) => void): Promise<number> {
  const settings = resolveSettings({
    tracing: true,
    durability: 'spill',
    ...(dir !== undefined && { spoolDir: dir }),
    ...(endpoint !== undefined && { endpoint: endpoint.href }),
  });
  if (settings === undefined) throw new Error('nowhere to send to; set RUNSPAN_ENDPOINT, or give --endpoint');
  const exporter = exporterFor(settings, new Ledger(), () => {});
  exporter.recover();
  for (let before = -1, settled = 0; settled > before; ) {
    before = settled;
    const { ok } = await exporter.finish({ timeoutMs: PATIENCE_MS });
    const { sent, dropped } = exporter.stats();
    if (ok) break;
    settled = sent + dropped;
  }
  await exporter.close({ timeoutMs: 0 });
  const { recovered, sent, dropped, spooled, lastError } = exporter.stats();
  if (recovered === 0) print(`nothing waits for ${settings.endpoint.origin}\n`);
  else print(`delivered ${sent} of ${counted(recovered, 'run')} to ${settings.endpoint.origin}\n`);
  if (dropped > 0) print(`${counted(dropped, 'run')} given up\n`);
  if (spooled > 0) print(`the rest still waits${lastError === undefined ? '' : `: ${lastError.message}`}\n`);
  return sent === recovered ? 0 : 1;
}
