// Runs the programs named by the arguments, one after another, each with its own project.
import { register } from 'node:module';

register('./hooks.mjs', import.meta.url);
const isChanged = process.env.TESTED_PACKAGE === 'runspan/langsmith';
const { Client } = await import(isChanged ? 'runspan/langsmith' : 'langsmith');
const { configure } = await import('runspan');

for (const program of process.argv.slice(2)) {
  process.env.LANGSMITH_PROJECT = program;
  if (isChanged) configure({ project: program });
  const { client } = await import(`./programs/${program}.ts`);
  await (client ?? new Client()).awaitPendingTraceBatches();
}
