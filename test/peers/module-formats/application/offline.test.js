// Run by Jest with its default configuration. No service listens at the endpoint.
const { readdirSync } = require('node:fs');
const { join } = require('node:path');
const { configure, shutdown, traceable } = require('runspan');

const endpoint = 'http://127.0.0.1:9';
const greet = traceable(async (name) => ({ text: `Hello ${name}` }), { name: 'greet' });

test('stores runs on disk', async () => {
  const spoolDir = join(__dirname, 'spool');
  configure({ endpoint, durability: 'spill', spoolDir });
  await greet('Ada');
  await shutdown({ timeoutMs: 100 });
  expect(readdirSync(spoolDir, { recursive: true }).filter((path) => path.endsWith('.seg'))).toHaveLength(1);
});

test('ends before its runs are sent', async () => {
  configure({ endpoint });
  await greet('Ada');
});
