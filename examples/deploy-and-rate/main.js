// Deploys an agent, asks it a question, and sends a user's rating of the answer to the trace.
import { currentRun, flush, traceable } from 'runspan';
import { AgentServer, ControlPlane, submitFeedback } from 'runspan/clients';
import { createPlatform, outlineOf } from 'runspan/testing';

// Without the URL of a control plane, everything happens on a platform in memory.
const platform = process.env.CONTROL_PLANE_URL ? undefined : await createPlatform({ hosting: 'self-hosted' });
if (platform !== undefined) {
  const { url, agentUrl, apiKey } = platform;
  Object.assign(process.env, { CONTROL_PLANE_URL: url, CONTROL_PLANE_KEY: apiKey, AGENT_URL: agentUrl });
  Object.assign(process.env, { AGENT_KEY: apiKey, RUNSPAN_ENDPOINT: url, RUNSPAN_API_KEY: apiKey });
}
const { CONTROL_PLANE_URL, CONTROL_PLANE_KEY, AGENT_URL, AGENT_KEY, RUNSPAN_ENDPOINT } = process.env;

const controlPlane = new ControlPlane({ baseUrl: CONTROL_PLANE_URL, apiKey: CONTROL_PLANE_KEY });
const { deployment } = await controlPlane.deployments.createAndWait(
  {
    name: 'support',
    source: 'external_container',
    source_config: { custom_url: AGENT_URL },
    source_revision_config: { image_uri: 'registry.example.com/support:1' },
  },
  { onStatus: ({ status }) => console.log(status) },
);

const agent = new AgentServer({ url: deployment.source_config.custom_url, apiKey: AGENT_KEY });

const answer = traceable(async function answer(question) {
  const { thread_id: thread } = await agent.threads.create();
  const stream = await agent.runs.stream(thread, {
    assistant_id: 'agent',
    input: { messages: [{ role: 'user', content: question }] },
    stream_mode: 'values',
    feedback_keys: ['helpful'],
  });
  let text = '';
  for await (const { event, data } of stream) {
    if (event === 'values') text = data.messages.at(-1).content;
  }
  const { helpful } = await stream.feedback();
  return { text, helpful, runId: stream.runId, traceId: currentRun().traceId };
});

const { text, helpful, runId, traceId } = await answer('Where is my parcel?');
console.log(text);
await submitFeedback(helpful, { score: 1, comment: 'That helped.' });
await flush();
if (platform !== undefined) console.log(outlineOf(await platform.runs()));
else {
  console.log(`the call:  ${RUNSPAN_ENDPOINT}/?trace=${traceId}`);
  console.log(`the agent: ${RUNSPAN_ENDPOINT}/?trace=${runId}`);
}

await Promise.all([controlPlane.close(), agent.close(), platform?.close()]);
