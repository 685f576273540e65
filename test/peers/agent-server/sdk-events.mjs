// What the platform's own SDK reads of a thread, by the same protocol.
import { Client } from '@langchain/langgraph-sdk';

/** The ids of the events of a thread, up to the one with this id. */
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
