import { AgentServer, submitFeedback } from 'runspan/clients';
import type { RunDetails } from 'runspan/receiver';
import { type DemoContext, queried } from './context.ts';

/** Streams a run of the deployment that the first part has created, with two feedback keys. */
export async function agentServer({ platform, ids, check }: DemoContext): Promise<void> {
  const agents = new AgentServer({ url: `${platform.url}/agents/${ids.deployment_id}`, apiKey: platform.apiKey });
  const { items } = await agents.assistants.search({ limit: 1 });
  check('the assistant is found', items[0]?.graph_id, 'agent');
  check('the reference is a page', (await agents.docs()).startsWith('<!doctype html>'));
  const { thread_id: threadId } = await agents.threads.create();
  const stream = await agents.runs.stream(threadId, {
    assistant_id: 'agent',
    input: { messages: [{ type: 'human', content: 'Tea?' }] },
    stream_mode: 'updates',
    feedback_keys: ['liked', 'correct'],
  });
  const events: string[] = [];
  for await (const { event } of stream) events.push(event);
  check(
    'the updates and the feedback URLs are streamed',
    [events.includes('updates'), events.at(-1)],
    [true, 'feedback'],
  );
  const urls = await stream.feedback();
  check('each key has a URL', Object.keys(urls).sort(), ['correct', 'liked']);
  Object.assign(ids, { thread_id: threadId, run_id: stream.runId, liked: urls.liked, correct: urls.correct });
  await agents.close();
}

/** Sends feedback on the streamed run in both ways. */
export async function feedback({ platform, ids, check }: DemoContext): Promise<void> {
  const { liked = '', correct = '', run_id: runId = '' } = ids;
  ids.token_id = liked.split('/').at(-1) ?? '';
  await submitFeedback(liked, { score: 1, comment: 'Thanks', metadata: { page: 2 } });
  await submitFeedback(correct, { score: 0, correction: { answer: 'Coffee.' } }, { method: 'GET' });
  const { feedback: stored } = await queried<RunDetails>(platform, `/query/runs/${runId}`);
  const given = stored?.map(({ key, score, comment, metadata, correction }) => [
    key,
    score,
    comment ?? metadata ?? correction,
  ]);
  check('the feedback of both requests is on the run', given?.sort(), [
    ['correct', 0, { answer: 'Coffee.' }],
    ['liked', 1, 'Thanks'],
  ]);
}
