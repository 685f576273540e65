import { fileURLToPath } from 'node:url';
import { createAgent } from './agent/agent.ts';
import { givenDocuments } from './agent/given-documents.ts';
import { chosenModel } from './agent/model.ts';
import { noteKeeper } from './agent/notes.ts';
import { createChat } from './chat.ts';
import { isLoopback, nameOf } from './http/allowed-hosts.ts';
import { listen, urlOf } from './http/listen.ts';
import { maskOf, passwordsOf } from './secrets.ts';
import { readSettings, type Settings, SettingsError, USAGE } from './settings.ts';
import { chooseStorage } from './storage/storage.ts';
import { openTraces } from './tracing/traces.ts';

/** Parts that are open, in the order in which they are to be closed. */
const open: { close(): Promise<void> }[] = [];

try {
  const settings = readSettings(process.argv.slice(2), process.env);
  if (settings === undefined) process.stdout.write(USAGE);
  else await start(settings);
} catch (error) {
  process.stderr.write(`chat: ${(error as Error).message}\n`);
  await close(error instanceof SettingsError ? 2 : 1);
}

/** Puts the application together; every part can be replaced here. */
async function start(settings: Settings): Promise<void> {
  const { host, port, data, wordDelayMs } = settings;
  const { OPENAI_API_KEY, RUNSPAN_API_KEY } = process.env;
  const passwords = [settings.postgres, settings.redis].flatMap(passwordsOf);
  const mask = maskOf([OPENAI_API_KEY, RUNSPAN_API_KEY, ...passwords]);
  const log = (line: string): void => void process.stderr.write(`chat: ${mask(line)}\n`);
  const storage = await chooseStorage(settings);
  open.push(storage);
  const traces = await openTraces({ ...settings, env: process.env });
  open.push(traces);
  const { model, name, isLocal } = chosenModel(process.env, wordDelayMs);
  const documents = givenDocuments(settings.docs);
  const agent = createAgent({ model, documents, saveNote: noteKeeper(data), checkpointer: storage.checkpointer });
  const chat = await createChat({
    agent,
    storage,
    callbacks: traces.callbacks,
    traces: traces.service,
    model: { name, is_local: isLocal },
    allowedHosts: [...nameOf(host), ...settings.allowedHosts],
    log,
    page: fileURLToPath(new URL('../page/', import.meta.url)),
  });
  // It closes the storage.
  open[0] = chat;
  const server = await listen(chat.app, host, port, log);
  console.log(`chat:   ${urlOf(server, host)}`);
  console.log(
    `traces: ${traces.service === undefined ? 'none' : (traces.service.viewerUrl ?? 'where RUNSPAN_ENDPOINT says')}`,
  );
  if (!isLoopback(host)) console.log('There is no sign-in: put one before this address.');
  if (!isLocal) console.log(`model:  ${name}`);
  else console.log('No model is configured: answers are made by rules. Set OPENAI_API_KEY, or OPENAI_BASE_URL.');
  let isClosing = false;
  const stop = (): void => {
    // A second signal ends it at once.
    if (isClosing) process.exit(130);
    isClosing = true;
    server.close();
    void close(0);
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
}

async function close(code: number): Promise<never> {
  for (const part of open) {
    await part.close().catch((error: Error) => process.stderr.write(`chat: ${error.message}\n`));
  }
  process.exit(code);
}
