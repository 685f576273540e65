// Migrates from one service to another with a processor for each: the same spans become the same runs in both.
import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { createExporter } from 'runspan';
import { RunSpanProcessor } from 'runspan/otel';
import { createReceiver } from 'runspan/receiver';

const services = [await createReceiver(), await createReceiver()];
const exporters = services.map(({ url }) => createExporter({ endpoint: url }));
const provider = new TracerProvider({
  spanProcessors: exporters.map((exporter) => new RunSpanProcessor({ exporter, shouldExport: 'all' })),
});
const tracer = provider.getTracer('shop');

for (let n = 1; n <= 3; n++) {
  const order = tracer.startSpan('order', { attributes: { n } });
  tracer.startSpan('pay', {}, trace.setSpan(ROOT_CONTEXT, order)).end();
  order.end();
}
await provider.shutdown();

const [before, after] = await Promise.all(services.map((service) => service.runs()));
const idsOf = (runs) => runs.map(({ id, name }) => `${id} ${name}`).join();
console.log(`${before.length} runs there, ${after.length} here; the same: ${idsOf(before) === idsOf(after)}`);

await Promise.all(exporters.map((exporter) => exporter.close()));
await Promise.all(services.map((service) => service.close()));
