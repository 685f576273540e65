import { expect, it, onTestFinished } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import { createPlatform } from '#src/testing.ts';
import { runNode } from '../support/program.ts';
import { startAgents } from './agent-server/agents.ts';

it('the example deploy-and-rate deploys, waits, asks, and gives feedback that is seen on the trace', async () => {
  const receiver = await createReceiver();
  onTestFinished(() => receiver.close());
  const keys = { 'key-of-the-control-plane': ['workspace-1'] };
  const controlPlane = await createPlatform({ keys, hosting: 'self-hosted' });
  onTestFinished(() => controlPlane.close());
  controlPlane.setStatuses(['DEPLOYING', 'DEPLOYED']);
  const agents = await startAgents(receiver.url);
  onTestFinished(() => agents.stop());

  const { code, stdout, stderr } = await runNode(['examples/deploy-and-rate/main.js'], {
    RUNSPAN_ENDPOINT: receiver.url,
    CONTROL_PLANE_URL: controlPlane.url,
    CONTROL_PLANE_KEY: 'key-of-the-control-plane',
    AGENT_URL: agents.url,
    AGENT_KEY: 'key-of-the-agent',
  });

  expect([code, stderr]).toEqual([0, '']);
  const [traceId = '', runId = ''] = [...stdout.matchAll(/\?trace=(\S+)/g)].map(([, id]) => id);
  const addresses = [`the call:  ${receiver.url}/?trace=${traceId}`, `the agent: ${receiver.url}/?trace=${runId}`];
  expect(stdout).toBe(['DEPLOYING', 'DEPLOYED', 'It is sunny in Kiel.', ...addresses, ''].join('\n'));
  const [answer, stream] = await receiver.trace(traceId);
  expect(answer).toMatchObject({ name: 'answer', outputs: { text: 'It is sunny in Kiel.' } });
  expect(stream).toMatchObject({
    name: 'runs.stream',
    parent_run_id: answer?.id,
    extra: { metadata: { agent_run_id: runId } },
  });
  // The server reports its runs in the background.
  await expect.poll(() => receiver.trace(runId), { timeout: 20_000 }).not.toEqual([]);
  const given = await fetch(`${receiver.url}/feedback?run=${runId}`);
  expect(await given.json()).toMatchObject([{ key: 'helpful', score: 1, comment: 'That helped.' }]);
});
