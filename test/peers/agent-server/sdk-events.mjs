// Reads a thread with the platform's own SDK, over the same protocol.
import { Client } from '@langchain/langgraph-sdk';

/** Returns the ids of a thread's events, up to this id. */
export async function sdkEventIds(url, threadId, channels, lastId) {
  const client = new Client({ apiUrl: url, apiKey: null });
  const thread = client.threads.stream(threadId, { assistantId: 'agent' });
  const ids = [];
  try {
    for await (const { event_id } of await thread.subscribe({ channels })) {
      ids.push(event_id);
      if (event_id === lastId) break;
    }
  } finally {
    await thread.close();
  }
  return ids;
}
