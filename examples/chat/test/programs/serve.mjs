// Starts the compiled chat on a free port and prints its address. The argument is JSON with the storage, its limits,
// and whether the model stops responding after one word.
import { once } from 'node:events';
import { serve } from '@hono/node-server';
import { createSupervisor } from '../../build/server/agent/agent.js';
import { Documents } from '../../build/server/agent/documents.js';
import { LocalModel } from '../../build/server/agent/local-model.js';
import { createChat } from '../../build/server/chat.js';
import { openStorage } from '../../build/server/storage/storage.js';

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

const { choice, limits, isEndless } = JSON.parse(process.argv[2]);
const storage = await openStorage(choice, limits);
const model = isEndless ? new EndlessModel() : new LocalModel();
const agent = createSupervisor({ model, documents: new Documents([]), checkpointer: storage.checkpointer });
const chat = await createChat({ agent, storage });
serve({ fetch: chat.app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`http://127.0.0.1:${port}/api`);
});
