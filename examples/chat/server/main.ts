import { fileURLToPath } from 'node:url';
import { createSupervisor } from './agent/agent.ts';
import { loadDocuments } from './agent/documents.ts';
import { chooseModel } from './agent/model.ts';
import { createChat, maskOf } from './chat.ts';
import { hostNames, isLoopback, listen, urlOf } from './http/host.ts';
import { readSettings, type Settings, SettingsError, USAGE } from './settings.ts';
import { openStorage } from './storage/storage.ts';
import { openTraces } from './traces.ts';

/** Open parts, in the order in which they are closed. */
const open: { close(): Promise<void> }[] = [];

try {
  const settings = readSettings(process.argv.slice(2), process.env);
  if (settings === undefined) process.stdout.write(USAGE);
  else await start(settings);
} catch (error) {
  process.stderr.write(`chat: ${(error as Error).message}\n`);
  await close(error instanceof SettingsError ? 2 : 1);
}

/** Puts the application together. Every part can be replaced here. */
async function start(settings: Settings): Promise<void> {
  const { host, port, data, wordDelayMs, docs } = settings;
  const secrets = [process.env.OPENAI_API_KEY, process.env.RUNSPAN_API_KEY, passwordOf(settings.postgres)];
  const mask = maskOf(secrets);
  const log = (line: string): void => void process.stderr.write(`chat: ${mask(line)}\n`);
  const storage = await openStorage(settings);
  open.push(storage.store);
  const traces = await openTraces({ ...settings, env: process.env });
  open.push(traces);
  const { model, name, isLocal } = chooseModel(process.env, wordDelayMs);
  const agent = createSupervisor({ model, documents: loadDocuments(docs), data, checkpointer: storage.checkpointer });
  const chat = await createChat({
    agent,
    storage,
    callbacks: traces.callbacks,
    traces: traces.service,
    model: { name, is_local: isLocal },
    allowedHosts: [...hostNames(host), ...settings.allowedHosts],
    secrets,
    log,
    page: fileURLToPath(new URL('../page/', import.meta.url)),
  });
  // The chat closes the storage.
  open[0] = chat;
  const server = await listen(chat.app, host, port, log);
  console.log(`chat:   ${urlOf(server, host)}`);
  console.log(
    `traces: ${traces.service === undefined ? 'off' : (traces.service.viewerUrl ?? 'sent to RUNSPAN_ENDPOINT')}`,
  );
  if (!isLoopback(host)) console.log('There is no sign-in. Put one in front of this address.');
  if (!isLocal) console.log(`model:  ${name}`);
  else console.log('No model configured; answers come from built-in rules. Set OPENAI_API_KEY or OPENAI_BASE_URL.');
  let isClosing = false;
  const stop = (): void => {
    // A second signal ends the process at once.
    if (isClosing) process.exit(130);
    isClosing = true;
    server.close();
    void close(0);
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
}

async function close(code: number): Promise<never> {
  for (const part of open) await part.close().catch((error: Error) => process.stderr.write(`chat: ${error.message}\n`));
  process.exit(code);
}

function passwordOf(url: string | undefined): string | undefined {
  return url !== undefined && URL.canParse(url) ? decodeURIComponent(new URL(url).password) : undefined;
}
