// An end-to-end check: ask-docs answers a question, its runs are sent to a receiver over HTTP, and the number of sent
// runs is compared with the runs in the receiver. Exits with 1 if they differ. With --keep, the receiver stays open so
// that you can view its page.
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { configure, shutdown, stats } from 'runspan';
import { createReceiver, DEFAULT_SCOPE, MemoryStore } from 'runspan/receiver';
import { ask } from '../../examples/ask-docs/build/ask.js';
import { modelFrom } from '../../examples/ask-docs/build/model.js';
import { startTelemetry } from '../../examples/ask-docs/build/telemetry.js';
import { drawTree, treeOptionsFor } from '../../node_modules/.cache/modules/cli/tree.js';
import { faultsOf, WAYS } from './delivery.mjs';

const KEEP = '--keep';
const given = process.argv.slice(2);
const question =
  given.filter((word) => word !== KEEP).join(' ') || 'How do I limit how many promises run at once with p-queue?';
const packages = fileURLToPath(new URL('../../node_modules', import.meta.url));

// Strict mode accepts only the documented interface.
const store = new MemoryStore();
const receiver = await createReceiver({ strict: true, store });
try {
  configure({ endpoint: receiver.url, project: 'demo', tracing: true });
  const telemetry = startTelemetry();

  const { text, by, sources, searched } = await ask(question, packages, modelFrom(process.env));
  console.log(
    `Question: ${question}\n\n${text}\n\nAnswered by ${by}, from ${sources.length} of ${searched} paragraphs:`,
  );
  for (const [index, source] of sources.entries()) console.log(`[${index + 1}] ${source}`);

  await telemetry.shutdown();
  await shutdown();
  const received = await receiver.runs({ project: 'demo' });
  const ledger = stats();
  const outline = (await store.outline(DEFAULT_SCOPE, received[0]?.trace_id)).map((json) => JSON.parse(json));
  console.log(
    `\nThe trace, as the receiver at ${receiver.url} has it:\n\n${drawTree(outline, treeOptionsFor(process.stdout))}\n`,
  );
  for (const [way, names] of Object.entries(WAYS)) console.log(`${way.padEnd(14)}${names.join(', ')}`);
  console.log(`${'run types'.padEnd(14)}${[...new Set(received.map((run) => run.run_type))].join(', ')}`);
  console.log('\nThe ledger of the exporter:', ledger);
  console.log(`Runs that the receiver holds, by its query: ${received.length}\n`);

  const faults = faultsOf(ledger, received);
  for (const fault of faults) console.error(`demo: ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
  else console.log(`All ${ledger.created} runs that were created have been sent over multipart and received.`);
  if (given.includes(KEEP)) {
    console.log(`\nThe page where you can look at it: ${receiver.url}\nIt is there until Ctrl-C.`);
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  }
} catch (error) {
  console.error(`demo: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  // After an error, remaining runs can still be delivered.
  await shutdown();
  await receiver.close();
}
