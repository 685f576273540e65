import { fileURLToPath } from 'node:url';
import { serve } from '@hono/node-server';
import { createExporter, withExporter } from 'runspan';
import { readDocuments } from '../../ask-docs/documents.ts';
import { Retriever } from '../../ask-docs/retriever.ts';
import { createAgent } from './agent/agent.ts';
import { chosenModel } from './agent/model.ts';
import { noteKeeper } from './agent/notes.ts';
import { createChat } from './chat.ts';
import { isLoopback } from './http/loopback-hosts.ts';
import { maskOf, passwordsOf } from './secrets.ts';
import { readSettings, type Settings, SettingsError, USAGE } from './settings.ts';
import { chooseStorage } from './storage/storage.ts';
import { openTraces } from './tracing/traces.ts';

try {
  const settings = readSettings(process.argv.slice(2), process.env);
  if (settings === undefined) process.stdout.write(USAGE);
  else await start(settings);
} catch (error) {
  process.stderr.write(`chat: ${(error as Error).message}\n${error instanceof SettingsError ? `\n${USAGE}` : ''}`);
  process.exit(error instanceof SettingsError ? 2 : 1);
}

/** Puts the application together; every part can be replaced here. */
async function start(settings: Settings): Promise<void> {
  const { host, port, data, wordDelayMs } = settings;
  const { OPENAI_API_KEY, RUNSPAN_API_KEY } = process.env;
  const passwords = [settings.postgres, settings.redis].flatMap(passwordsOf);
  const mask = maskOf([OPENAI_API_KEY, RUNSPAN_API_KEY, ...passwords]);
  const traces = await openTraces({ ...settings, env: process.env });
  const storage = await chooseStorage(settings);
  const { model, name, isLocal } = chosenModel(process.env, wordDelayMs);
  const documents = indexed(settings.docs ?? ownDocumentation());
  const agent = createAgent({ model, documents, saveNote: noteKeeper(data), checkpointer: storage.checkpointer });
  const chat = await createChat({
    agent,
    storage,
    callbacks: traces.callbacks,
    traces: traces.service,
    model: { name, is_local: isLocal },
    host,
    log: (line) => process.stderr.write(`chat: ${mask(line)}\n`),
    page: fileURLToPath(new URL('../../page/', import.meta.url)),
  });
  const server = serve({ fetch: chat.app.fetch, port, hostname: host }, (address) => {
    const shown = host.includes(':') ? `[${host}]` : host;
    console.log(`chat:   http://${shown}:${address.port}`);
    console.log(
      `traces: ${traces.service === undefined ? 'none' : (traces.service.viewerUrl ?? 'where RUNSPAN_ENDPOINT says')}`,
    );
    if (!isLoopback(host)) console.log('There is no sign-in: put one before this address.');
    if (!isLocal) console.log(`model:  ${name}`);
    else console.log('No model is configured: answers are made by rules. Set OPENAI_API_KEY, or OPENAI_BASE_URL.');
  });
  let isClosing = false;
  const close = async (code: number): Promise<void> => {
    // A second signal ends it at once.
    if (isClosing) process.exit(130);
    isClosing = true;
    server.close();
    for (const part of [chat, traces]) {
      await part.close().catch((error: Error) => process.stderr.write(`chat: ${error.message}\n`));
    }
    process.exit(code);
  };
  server.on('error', (error: NodeJS.ErrnoException) => {
    const reason =
      error.code === 'EADDRINUSE' ? `port ${port} is taken; choose another one with --port` : error.message;
    process.stderr.write(`chat: ${reason}\n`);
    void close(1);
  });
  process.on('SIGINT', () => void close(0));
  process.on('SIGTERM', () => void close(0));
}

/** It is done once for all, and no trace of anybody's: the functions are those of an application that does it for each question. */
function indexed(folder: string): Retriever {
  return withExporter(createExporter({ tracing: false }), () => Retriever.over(readDocuments(folder)));
}

/** That of runspan, which comes with the package. */
function ownDocumentation(): string {
  return fileURLToPath(new URL('./docs/', import.meta.resolve('runspan/package.json')));
}
