// Runs that are posted by hand, in this and in another process.
import { Client, RunTree } from 'langsmith';
import { getCurrentRunTree, traceable, withRunTree } from 'langsmith/traceable';

export const client = new Client();
const step = traceable(async (text: string) => getCurrentRunTree().name + text, { name: 'step', tags: ['own'] });

const root = new RunTree({
  name: 'pipeline',
  inputs: { question: 'why' },
  tags: ['by hand'],
  metadata: { version: 2 },
  client,
});
await root.postRun();
const child = root.createChild({
  name: 'call',
  run_type: 'llm',
  inputs: { prompt: 'why' },
  metadata: { size: 'small' },
});
await child.postRun();
child.addEvent({ name: 'new_token', kwargs: { token: 'a' } });
await child.end({ answer: 'because' }, undefined, undefined, { usage_metadata: { total_tokens: 3 } });
await child.patchRun();
const failing = root.createChild({ name: 'failing', run_type: 'tool' });
await failing.postRun();
await failing.end(undefined, 'TypeError: no tool');
await failing.patchRun();
await withRunTree(root, async () => step('!'));
await root.end({ answer: 'because' });
await root.patchRun();

const sent = traceable(async () => getCurrentRunTree().toHeaders(), {
  name: 'sender',
  metadata: { user: 'u1' },
  tags: ['outer'],
});
const headers = await sent();
const remote = RunTree.fromHeaders(headers);
if (remote === undefined) throw new Error('no run in the headers');
await withRunTree(remote, () => step('?'));
await step(remote as never, 'below').catch(() => {});
if (RunTree.fromHeaders({}) !== undefined) throw new Error('a run in no headers');

const id = '0193b3a0-7777-7000-8000-000000000007';
await client.createRun({
  id,
  name: 'created',
  run_type: 'chain',
  project_name: 'run-trees',
  inputs: { a: 1 },
  start_time: 1795159360123,
});
await client.updateRun(id, { outputs: { b: 2 }, end_time: 1795159361000 });

const around = new RunTree({ name: 'around', client });
around.createChild({ name: 'nested' }).createChild({ name: 'innermost' });
const shape = ({ name, child_runs = [] }: { name: string; child_runs?: never[] }): unknown => [
  name,
  child_runs.map(shape),
];
const before = shape(JSON.parse(JSON.stringify(around)));
await around.postRun();
await around.end({ before, after: shape(JSON.parse(JSON.stringify(around))) });
await around.patchRun();
await traceable(
  async () => {
    getCurrentRunTree().metadata = { usage_metadata: { input_tokens: 3, output_tokens: 4, total_tokens: 7 } };
    return { text: 'hi' };
  },
  { name: 'model', run_type: 'llm', client },
)();
