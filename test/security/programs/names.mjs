// A receiver and an exporter in one process that may not write to any file. Prints the names that the receiver returns.

import { configure, shutdown, startRun } from '../../../dist/index.js';
import { createReceiver } from '../../../dist/receiver.js';

const names = JSON.parse(process.argv[2]);
const receiver = await createReceiver();
configure({ endpoint: receiver.url });
const run = startRun({ name: names.join('') });
for (const name of names) run.attach(name, new Blob([name]), 'text/plain');
run.end();
await shutdown();
const [stored] = await receiver.runs();
console.log(JSON.stringify(stored?.attachments?.map(({ name }) => name) ?? []));
await receiver.close();
