// The handlers of docs/serverless.md, called as on their platforms, which stop the process after the response.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { localModel } from '../integrations/local-openai.ts';
import { root } from '../support/folders.ts';
import { moduleText, startProgram } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { guide, projectWith } from './guides.ts';
import { laterNode } from './later-node.ts';

const files = guide('docs/serverless.md').filter(({ file }) => file !== undefined);

const BODY = JSON.stringify({ question: 'Is it raining?', userId: 'ada', threadId: 't1' });

const LAMBDA = `
  const { handler } = await import('./lambda.mjs');
  const { body } = await handler({ body: ${JSON.stringify(BODY)} }, { getRemainingTimeInMillis: () => 30_000 });
`;

const VERCEL = `
  import { waitUntil } from '@vercel/functions';
  const works = [];
  const context = { waitUntil: (work) => works.push(work) };
  globalThis[Symbol.for('@vercel/request-context')] = { get: () => context };
  const { POST } = await import('./api/answer.mjs');
  const request = new Request('https://example.com/api/answer', { method: 'POST', body: ${JSON.stringify(BODY)} });
  const body = await (await POST(request)).text();
  await Promise.all(works);
`;

it.each([
  ['AWS Lambda', LAMBDA],
  ['Vercel', VERCEL],
])('a function on %s has delivered its trace when the process is stopped', async (_, program) => {
  const [model, receiver] = await Promise.all([localModel(), startReceiver()]);
  const project = projectWith(files, join(root, 'test/peers/today'));
  const env = { RUNSPAN_ENDPOINT: receiver.url, OPENAI_BASE_URL: `${model.url}/v1`, OPENAI_API_KEY: 'key' };
  const stop = `process.stdout.write(body, () => process.kill(process.pid, 'SIGKILL'));`;

  const ended = await startProgram([laterNode(), ...moduleText(program + stop)], env, project).ended;
  expect(ended).toMatchObject({ signal: 'SIGKILL', stdout: '{"text":"You said: Is it raining?"}', stderr: '' });
  const runs = await receiver.runs();
  expect(runs.map(({ name, parent_run_id }) => [name, parent_run_id])).toEqual([
    ['answer', undefined],
    ['openai.responses', runs[0]?.id],
  ]);
  for (const { extra, end_time } of runs) {
    expect(extra?.metadata).toMatchObject({ user_id: 'ada', thread_id: 't1' });
    expect(end_time).toBeDefined();
  }
});
