// The chat as it is compiled, on a port of its own, with the model without a model, or one that never comes to an end. Takes what the storage is
// chosen by, bounds of sessions, and which model, as JSON, and prints its address.
import { once } from 'node:events';
import { serve } from '@hono/node-server';
import { createAgent } from '../../build/server/agent/agent.js';
import { LocalModel } from '../../build/server/agent/local-model.js';
import { createChat } from '../../build/server/chat.js';
import { Retriever } from '../../build/server/documents/retriever.js';
import { chooseStorage } from '../../build/server/storage/storage.js';

/** Says a word, and then no more. */
class EndlessModel extends LocalModel {
  bindTools() {
    return this;
  }

  async *_streamResponseChunks(messages, options, manager) {
    let words = 0;
    for await (const chunk of super._streamResponseChunks(messages, options, manager)) {
      words += 1;
      if (words === 2) await once(options.signal, 'abort');
      options.signal.throwIfAborted();
      yield chunk;
    }
  }
}

const { choice, limits, isEndless } = JSON.parse(process.argv[2] ?? '{}');
const storage = await chooseStorage(choice, limits);
const agent = createAgent({
  model: isEndless ? new EndlessModel() : new LocalModel(),
  documents: new Retriever([]),
  saveNote: async (text) => `Saved: ${text}`,
  checkpointer: storage.checkpointer,
});
const chat = await createChat({ agent, storage });
serve({ fetch: chat.app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`http://127.0.0.1:${port}/api`);
});
