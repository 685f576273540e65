// Feedback on a run.
import { Client } from 'langsmith';
import { getCurrentRunTree, traceable } from 'langsmith/traceable';

export const client = new Client();
const id = await traceable(async () => getCurrentRunTree().id, { name: 'rated', client })();
await client.awaitPendingTraceBatches();
await client.createFeedback(id, 'helpful', {
  feedbackId: '0193b3a0-8888-7000-8000-000000000008',
  sessionId: '0193b3a0-9999-7000-8000-000000000009',
  score: true,
  comment: 'good',
  value: 'yes',
  sourceInfo: { page: 'chat' },
});
await client.createFeedback(id, 'length', { sessionId: '0193b3a0-9999-7000-8000-000000000009', score: 0.5 });
