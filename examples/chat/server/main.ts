import { fileURLToPath } from 'node:url';
import { createSupervisor } from './agent/agent.ts';
import { loadDocuments } from './agent/documents.ts';
import { chooseModel } from './agent/model.ts';
import { createChat } from './chat.ts';
import { hostNames, isLoopback, listen, urlOf } from './http/host.ts';
import { readSettings, type Settings, SettingsError, USAGE } from './settings.ts';
import { openStorage } from './storage/storage.ts';
import { openTraces } from './traces.ts';

try {
  const settings = readSettings(process.argv.slice(2), process.env);
  if (settings === undefined) process.stdout.write(USAGE);
  else await start(settings);
} catch (error) {
  log((error as Error).message);
  process.exit(error instanceof SettingsError ? 2 : 1);
}

/** Creates the application from its parts. To use a different model, storage or agent, replace it here. */
async function start(settings: Settings): Promise<void> {
  const { host, port, data, wordDelayMs, docs } = settings;
  const storage = await openStorage(settings);
  const traces = await openTraces({ ...settings, env: process.env });
  const { model, name, isLocal } = chooseModel(process.env, wordDelayMs);
  const documents = loadDocuments(docs);
  const agent = createSupervisor({ model, documents, data, checkpointer: storage.checkpointer });
  const chat = await createChat({
    agent,
    storage,
    callbacks: traces.callbacks,
    traces: traces.service,
    model: { name, is_local: isLocal },
    allowedHosts: [...hostNames(host), ...settings.allowedHosts],
    secrets: [process.env.OPENAI_API_KEY, process.env.RUNSPAN_API_KEY, passwordOf(settings.postgres)],
    log,
    page: fileURLToPath(new URL('../page/', import.meta.url)),
  });
  const server = await listen(chat.app, host, port, log);
  console.log(`chat:   ${urlOf(server, host)}`);
  console.log(
    `traces: ${traces.service === undefined ? 'off' : (traces.service.viewerUrl ?? 'sent to RUNSPAN_ENDPOINT')}`,
  );
  if (!isLoopback(host)) console.log('The chat has no sign-in. Put a proxy with sign-in in front of this address.');
  if (!isLocal) console.log(`model:  ${name}`);
  else console.log('No model is configured; answers come from built-in rules. Set OPENAI_API_KEY or OPENAI_BASE_URL.');
  let isClosing = false;
  const stop = async (): Promise<void> => {
    // A second signal ends the process immediately.
    if (isClosing) process.exit(130);
    isClosing = true;
    server.close();
    for (const part of [chat, traces]) await part.close().catch((error: Error) => log(error.message));
    process.exit(0);
  };
  process.on('SIGINT', () => void stop());
  process.on('SIGTERM', () => void stop());
}

function log(line: string): void {
  process.stderr.write(`chat: ${line}\n`);
}

function passwordOf(url: string | undefined): string | undefined {
  return url !== undefined && URL.canParse(url) ? decodeURIComponent(new URL(url).password) : undefined;
}
