// Options of `traceable`.
import { Client, type RunTree } from 'langsmith';
import { getCurrentRunTree, isTraceableFunction, ROOT, traceable } from 'langsmith/traceable';

export const client = new Client();
const ended: string[] = [];

const redacted = traceable(async (user: { name: string; password: string }) => ({ ...user, id: 1 }), {
  name: 'processed',
  client,
  processInputs: ({ name }) => ({ name }),
  processOutputs: ({ id }) => ({ id }),
});
await redacted({ name: 'ada', password: 'x' });

const configured = traceable(async (text: string, _options: { limit: number; langsmithExtra?: object }) => text, {
  name: 'configured',
  tags: ['always'],
  metadata: { a: 1, b: 1 },
  argsConfigPath: [1, 'langsmithExtra'],
});
await configured('a', { limit: 1, langsmithExtra: { name: 'renamed', tags: ['once'], metadata: { b: 2 } } });
await configured('b', { limit: 2 });

const model = traceable(async (_request: { model: string }) => ({ text: 'hi', usage_metadata: { total_tokens: 3 } }), {
  name: 'model',
  run_type: 'llm',
  getInvocationParams: ({ model }) => ({ ls_provider: 'own', ls_model_name: model, ls_model_type: 'chat' }),
  extra: { metadata: { from: 'extra' } },
});
await model({ model: 'small' });

await traceable(async () => 'done', {
  name: 'hooked',
  id: '0193b3a0-5555-7000-8000-000000000001',
  reference_example_id: '0193b3a0-6666-4000-8000-000000000001',
  on_start: (tree) => {
    if (tree !== undefined) tree.metadata = { started: tree.name };
  },
  on_end: (tree: RunTree) => {
    ended.push(`${tree.name} ${JSON.stringify(tree.outputs)}`);
    tree.metadata = { ended: true };
  },
})();

const quiet = traceable(async () => loud(), { name: 'quiet', tracingEnabled: false });
const loud = traceable(async () => 'below quiet', { name: 'loud' });
await quiet();

const withTree = traceable(
  async (tree: RunTree, text: string) => {
    const child = tree.createChild({ name: 'by hand', run_type: 'tool', inputs: { text } });
    await child.postRun();
    await child.end({ size: text.length });
    await child.patchRun();
    return text;
  },
  { name: 'with tree' },
);
await traceable(
  async () => {
    await withTree(ROOT, 'in a new trace');
    await withTree(getCurrentRunTree(), 'below');
  },
  { name: 'around' },
)();

await traceable(async () => ended, {
  name: 'attached',
  extractAttachments: () => [{ note: ['text/plain', new Uint8Array([104, 105])] }, { a: 1 }],
})();
if (!isTraceableFunction(redacted) || isTraceableFunction(() => {})) throw new Error('isTraceableFunction');
if (getCurrentRunTree(true) !== undefined) throw new Error('a current run');
