import { BasicTracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { gate } from '../support/gate.ts';

type Resource = ReadableSpan['resource'];

/** A resource of the SDK whose service is named when the test says so, as by a detector that asks a cloud. */
export function pendingResource() {
  const service = gate<string>();
  const { resource } = new BasicTracerProvider().getTracer('t').startSpan('s') as unknown as ReadableSpan;
  const detected = { getRawAttributes: () => [['service.name', service]], attributes: {} } as unknown as Resource;
  return { resource: resource.merge(detected), service };
}
