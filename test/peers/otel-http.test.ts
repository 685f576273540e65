// HTTP between two processes through OpenTelemetry's own instrumentations of node:http and of fetch. A span of theirs is named
// after the method (https://opentelemetry.io/docs/specs/semconv/http/http-spans/#name), its run after the place too.
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { createReceiver } from '#src/receiver.ts';
import type { RunRecord } from '#src/run/record.ts';
import { runNode, startNode } from '../support/program.ts';

const program = fileURLToPath(new URL('./otel-http-program.mjs', import.meta.url));

interface Answer {
  readonly pages: string[];
  readonly baggage?: string;
  readonly repeated: number;
}

interface Traced {
  readonly answers: readonly Answer[];
  readonly runs: readonly RunRecord[];
}

async function traced(client: string, server = client): Promise<Traced> {
  const receiver = await createReceiver({ strict: true });
  try {
    const env = { RUNSPAN_ENDPOINT: receiver.url };
    const served = startNode([program, 'server', server], env);
    const [address = ''] = await served.printed(/http:\S+/);
    const asked = await runNode([program, 'client', client, address], env);
    served.child.stdin?.end();
    expect({ code: asked.code, stderr: asked.stderr }).toEqual({ code: 0, stderr: '' });
    expect(await served.ended).toMatchObject({ code: 0, stderr: '' });
    return { answers: JSON.parse(asked.stdout) as Answer[], runs: await receiver.runs() };
  } finally {
    await receiver.close();
  }
}

const otel = ({ extra }: RunRecord) => extra?.metadata?.otel as Record<string, unknown> | undefined;

/** The runs of functions below a span have only the ids of the span. */
const isSpan = (run: RunRecord): boolean => otel(run)?.kind !== undefined;

/** Name and kind of span of each run, indented, below its parent. */
function drawn(runs: readonly RunRecord[], parent?: string, indent = ''): string[] {
  return runs
    .filter(({ parent_run_id }) => parent_run_id === parent)
    .sort((a, b) => (a.dotted_order < b.dotted_order ? -1 : 1))
    .flatMap((run) => [
      `${indent}${run.name.replace(/127\.0\.0\.1:\d+/, 'host')}${isSpan(run) ? ` ${otel(run)?.kind}` : ''}`,
      ...drawn(runs, run.id, `${indent}  `),
    ]);
}

const request = ['  GET host/ CLIENT', '    GET / SERVER', '      search'];

describe('with our propagator in both processes', () => {
  let answers: readonly Answer[];
  let runs: readonly RunRecord[];
  beforeAll(async () => {
    ({ answers, runs } = await traced('runs'));
  });

  test('the spans of both are one trace, down to what the server has traced', () => {
    expect(answers.map(({ pages }) => pages)).toEqual([
      ['the page on tea'],
      ['the page on coffee'],
      ['the page on water'],
    ]);
    expect(drawn(runs)).toEqual(['work', ...request, ...request, '  by hand', ...request.map((line) => `  ${line}`)]);
    const [root] = runs.filter(({ parent_run_id }) => parent_run_id === undefined);
    for (const { trace_id, session_name, tags, extra } of runs) {
      expect({ trace_id, session_name, tags }).toEqual({ trace_id: root?.id, session_name: 'shop', tags: ['a'] });
      expect(extra?.metadata).toMatchObject({ user: 'ada' });
    }
    // Each of them is of the trace, and below the span, that traceparent tells of.
    for (const server of runs.filter((run) => otel(run)?.kind === 'SERVER')) {
      const client = runs.find(({ id }) => id === server.parent_run_id) as RunRecord;
      expect(otel(server)).toMatchObject({
        trace_id: otel(client)?.trace_id,
        parent_span_id: otel(client)?.span_id,
        parent_is_remote: true,
      });
    }
  });

  test('the baggage of the application arrives beside ours', () => {
    const ours = /runspan-project=shop,runspan-tags=%5B%22a%22%5D,runspan-metadata=%7B%22user%22%3A%22ada%22%7D/;
    const [byFetch, byHttp, byHand] = answers.map(({ baggage }) => baggage);
    expect(byFetch).toMatch(/^tenant=blue,/);
    expect(byFetch).toMatch(ours);
    expect(byHttp).toMatch(ours);
    expect(byHand).toMatch(/tenant=blue/);
    // Given by hand and by the propagator.
    expect(answers.map(({ repeated }) => repeated)).toEqual([1, 1, 2]);
  });
});

// test/otel/run-propagator.isolated.test.ts has the other reasons why a server may not continue the trace.
test('if the client sends traceparent alone, each request is a trace of its own, whose root keeps the ids of OpenTelemetry', async () => {
  const { runs } = await traced('w3c', 'runs');
  const clients = runs.filter((run) => otel(run)?.kind === 'CLIENT');
  expect(clients).toHaveLength(2);
  const roots = runs.filter(({ parent_run_id }) => parent_run_id === undefined);
  expect(roots.map(({ name }) => name).sort()).toEqual(['GET /', 'GET /', 'work']);
  const served = roots.filter(({ name }) => name === 'GET /');
  expect(served.flatMap((root) => drawn(runs, root.id))).toEqual(['search', 'search']);
  const remoteOf = (run: RunRecord) => [otel(run)?.trace_id, otel(run)?.parent_span_id, otel(run)?.parent_is_remote];
  const idsOf = (run: RunRecord) => [otel(run)?.trace_id, otel(run)?.span_id, true];
  expect(served.map(remoteOf).sort()).toEqual(clients.map(idsOf).sort());
});
