// Shared by the OpenTelemetry programs: a tracer provider whose spans are recorded as runs.
import { RunSpanProcessor } from 'runspan/otel';
import { recordRuns } from 'runspan/testing';
import { load } from './otel/load.mjs';

const { NodeTracerProvider } = await load('@opentelemetry/sdk-trace-node');

/** Records spans. Call `print` at the end. SPANS=1 prints each span's attributes on standard error. */
export function recording() {
  const recorder = recordRuns();
  const onEnd = ({ name, attributes }) => console.error(name, attributes);
  const spy = { onStart() {}, onEnd, async forceFlush() {}, async shutdown() {} };
  const spanProcessors = [new RunSpanProcessor({ shouldExport: 'all' }), ...(process.env.SPANS === '1' ? [spy] : [])];
  const provider = new NodeTracerProvider({ spanProcessors });
  provider.register();
  const print = () => process.stdout.write(JSON.stringify(recorder.runs));
  return { provider, print };
}
