import { type Exporter, startRun } from '#src/index.ts';
import { environmentOf } from '../support/environment.ts';
import { type ingestServer, ingestServerInTest } from '../support/ingest-server.ts';
import { logLines } from '../support/log-lines.ts';

/** Starts a scripted service until the test finishes. No variable configures tracing, and log lines are recorded. */
export async function service(...given: Parameters<typeof ingestServer>) {
  environmentOf();
  const lines = logLines();
  const server = await ingestServerInTest(...given);
  return { server, lines };
}

export async function sendRun(exporter: Exporter): ReturnType<Exporter['close']> {
  startRun({ name: 'a', exporter }).end();
  return exporter.close({ timeoutMs: 5_000 });
}
