// An API key and a service for each tenant. One service is down, which does not affect the other tenant.
import { createExporter, traceable, withExporter } from 'runspan';
import { createReceiver } from 'runspan/receiver';

const services = { acme: await createReceiver(), globex: await createReceiver() };
const exporters = {
  acme: createExporter({ endpoint: services.acme.url, apiKey: 'key-of-acme' }),
  globex: createExporter({ endpoint: services.globex.url, apiKey: 'key-of-globex' }),
};
const answer = traceable(async ({ tenant, n }) => ({ text: `Answer ${n} for ${tenant}` }), { name: 'answer' });

await services.globex.close();
for (let n = 1; n <= 100; n++) {
  for (const [tenant, exporter] of Object.entries(exporters)) {
    await withExporter(exporter, () => answer({ tenant, n }));
  }
}
console.log('acme  ', await exporters.acme.flush(), await ledger('acme'));
console.log('globex', await exporters.globex.flush({ timeoutMs: 500 }), await ledger('globex'));

services.globex = await createReceiver({ port: Number(new URL(services.globex.url).port) });
console.log('globex', await exporters.globex.close(), await ledger('globex'));
await exporters.acme.close();
await Promise.all([services.acme.close(), services.globex.close()]);

/** Returns the exporter's counters, and the number of the tenant's own runs in its service. */
async function ledger(tenant) {
  const { created, sent, dropped } = exporters[tenant].stats();
  const runs = await services[tenant].runs();
  const arrived = runs.filter(({ inputs }) => inputs.tenant === tenant).length;
  return `${created} created, ${sent} sent, ${dropped} dropped, ${arrived} of ${runs.length} arrived`;
}
