import { context, propagation, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { traceable } from '#src/index.ts';
import { RunSpanProcessor, type RunSpanProcessorOptions } from '#src/otel.ts';
import { recordRuns } from '#src/testing.ts';
import { forAll } from '../support/campaign.ts';
import { environmentOf } from '../support/environment.ts';
import { logLines } from '../support/log-lines.ts';
import { setUp } from './set-up.ts';

type Attributes = Readonly<Record<string, unknown>>;

/** Returns the metadata, without `otel`, that spans of these resources get from one processor. */
function metadataOf(resources: readonly Attributes[], options: RunSpanProcessorOptions = {}): Attributes[] {
  const recorder = recordRuns();
  const processor = new RunSpanProcessor({ shouldExport: 'all', exporter: recorder.exporter, ...options });
  for (const [at, attributes] of resources.entries()) {
    const provider = new BasicTracerProvider({ spanProcessors: [processor], resource: { attributes } as never });
    for (const name of ['a', 'b']) provider.getTracer('t').startSpan(`${at} ${name}`).end();
  }
  recorder.stop();
  const runs = recorder.runs.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  return runs.map(({ extra }) => {
    const { otel: _, ...metadata } = extra?.metadata ?? {};
    return metadata;
  });
}

const RESOURCE = {
  'service.name': 'shop',
  'service.namespace': 'eu',
  'service.instance.id': '7',
  'deployment.environment.name': 'staging',
  'host.name': 'box',
  'k8s.pod.name': 'shop-1',
};
const OTHERS = { 'host.arch': 'amd64', 'process.pid': 1, 'telemetry.sdk.language': 'nodejs' };

test('service, deployment, host and Kubernetes are metadata by default', () => {
  expect(metadataOf([{ ...OTHERS, ...RESOURCE }])).toEqual([RESOURCE, RESOURCE]);
});

test('the metadata has the attributes that `resource` names, and no others', () => {
  const word = fc.constantFrom('a', 'b', 'host', 'k8s');
  const name = fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => words.join('.'));
  const pattern = fc.tuple(name, fc.boolean()).map(([text, isPrefix]) => (isPrefix ? `${text}.*` : text));
  forAll(
    100,
    [fc.array(fc.dictionary(name, fc.string({ minLength: 1 })), { minLength: 1, maxLength: 3 }), fc.array(pattern)],
    (resources, names) => {
      const expected = resources.map((attributes) =>
        Object.fromEntries(
          Object.entries(attributes).filter(([key]) =>
            names.some((one) => key === one || (one.endsWith('.*') && key.startsWith(one.slice(0, -1)))),
          ),
        ),
      );
      expect(metadataOf(resources, { resource: names })).toEqual(expected.flatMap((one) => [one, one]));
    },
  );
});

describe("OpenTelemetry's variables", () => {
  test('set the attributes that a resource lacks', () => {
    environmentOf({ OTEL_SERVICE_NAME: 'shop', OTEL_RESOURCE_ATTRIBUTES: 'service.version=7,k8s.pod.name=a,team=x' });
    const known = { 'service.name': 'shop', 'service.version': '7', 'k8s.pod.name': 'a' };
    expect(metadataOf([{}, { 'service.name': 'unknown_service:node', 'service.version': '8' }])).toEqual([
      known,
      known,
      { ...known, 'service.version': '8' },
      { ...known, 'service.version': '8' },
    ]);
  });

  test('do not replace the name in the resource', () => {
    environmentOf({ OTEL_SERVICE_NAME: 'other' });
    expect(metadataOf([{ 'service.name': 'shop' }])[0]).toEqual({ 'service.name': 'shop' });
  });
});

test('the default service name of an SDK is never metadata', () => {
  expect(metadataOf([{ 'service.name': 'unknown_service' }, { 'service.name': 'unknown_service:node' }])).toEqual(
    Array(4).fill({}),
  );
});

test.each([['service'], [[1]], [['']]])(
  'the default names are used if `resource` is %j, and one line says so',
  (resource) => {
    const lines = logLines();
    expect(metadataOf([RESOURCE], { resource: resource as never })[0]).toEqual(RESOURCE);
    expect(lines).toEqual([expect.stringContaining('expected `resource` to be a list of names')]);
  },
);

describe('baggage', () => {
  const carried = propagation.createBaggage({
    'session.id': { value: 'chat-1' },
    'user.id': { value: 'ada' },
    tenant: { value: 'acme' },
    secret: { value: 'x' },
  });

  test('entries that `baggage` names are metadata of spans and of functions below', async () => {
    const { tracer, recorder } = setUp({
      processors: [
        new RunSpanProcessor({ shouldExport: 'all', baggage: ['session.id', 'user.id', 'tenant', 'missing'] }),
      ],
    });
    const given = propagation.setBaggage(ROOT_CONTEXT, carried);
    const span = tracer.startSpan('a', {}, given);
    const inner = traceable(() => {}, { name: 'inner' });
    context.with(trace.setSpan(given, span), () => inner());
    span.end();
    const expected = { 'session.id': 'chat-1', thread_id: 'chat-1', 'user.id': 'ada', user_id: 'ada', tenant: 'acme' };
    expect(recorder.runs).toHaveLength(2);
    for (const { extra } of recorder.runs) {
      expect(extra?.metadata).toMatchObject(expected);
      expect(extra?.metadata).not.toHaveProperty('secret');
      expect(extra?.metadata).not.toHaveProperty('missing');
    }
  });

  test('metadata of a function above takes precedence', async () => {
    const { tracer, recorder } = setUp({
      processors: [new RunSpanProcessor({ shouldExport: 'all', baggage: ['user.id'] })],
    });
    const outer = traceable(() => tracer.startSpan('a', {}, propagation.setBaggage(context.active(), carried)).end(), {
      name: 'outer',
      metadata: { user_id: 'grace' },
    });
    outer();
    const run = recorder.runs.find(({ name }) => name === 'a');
    expect(run?.extra?.metadata).toMatchObject({ user_id: 'grace', 'user.id': 'ada' });
  });

  test('is not recorded by default', () => {
    const { tracer, recorder } = setUp();
    tracer.startSpan('a', {}, propagation.setBaggage(ROOT_CONTEXT, carried)).end();
    expect(Object.keys(recorder.runs[0]?.extra?.metadata ?? {})).toEqual(['otel']);
  });
});
