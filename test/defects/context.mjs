// Mistakes in context, options, sampling and propagation, each of which has to make a test fail.
const traceable = 'src/instrument/traceable.ts';
const run = 'src/run/run.ts';
const propagation = 'src/run/propagation.ts';

export const defects = [
  {
    title: 'a function that is wrapped twice makes two runs',
    file: traceable,
    find: 'known?.fn ?? original',
    replace: 'original',
    tests: ['test/instrument/traceable-with.test.ts'],
  },
  {
    title: 'a trace is left out by chance instead of by its id',
    file: 'src/run/sampling.ts',
    find: 'shareOf(traceId) < rate',
    replace: 'Math.random() < rate',
    tests: ['test/run/sampling.test.ts'],
  },
  {
    title: 'a sampler that throws stops the application',
    file: 'src/run/sampling.ts',
    find: "guard('sampler', () => untraced(sampler, start))",
    replace: 'untraced(sampler, start)',
    tests: ['test/run/sampling.test.ts'],
  },
  {
    title: 'headers of others are believed however long they are',
    file: propagation,
    find: 'if (order === undefined || order.length > ORDER_MAX) continue;',
    replace: 'if (order === undefined) continue;',
    tests: ['test/run/propagation.test.ts'],
  },
  {
    title: 'the baggage of others is lost',
    file: propagation,
    find: "present.filter(({ key }) => !key.startsWith('runspan-'))",
    replace: 'present.slice(0, 0)',
    tests: ['test/run/propagation.test.ts'],
  },
  {
    title: 'langsmith-trace wins over runspan-trace',
    file: propagation,
    find: 'of DIALECTS) {',
    replace: 'of DIALECTS.toReversed()) {',
    tests: ['test/run/propagation.test.ts'],
  },
  {
    title: 'an id derived from text differs from the UUIDv5',
    file: 'src/run/ids.ts',
    find: '& 0x0f) | 0x50',
    replace: '& 0x0f) | 0x40',
    tests: ['test/run/ids.test.ts'],
  },
  {
    title: 'spans of a trace that is left out are recorded',
    file: 'src/otel/begin-span.ts',
    find: 'return sampledOut(span, start) ?? new SpanRun(span, start);',
    replace: 'sampledOut(span, start);\n  return new SpanRun(span, start);',
    tests: ['test/otel/run-span-processor.test.ts'],
  },
  {
    title: 'runs that sampling has left out are not counted',
    file: 'src/export/exporter.ts',
    find: 'this.#stats.sampledOut++;',
    replace: '',
    tests: ['test/runspan.test.ts'],
  },
  {
    title: 'a parent holds on to the runs below it',
    file: run,
    find: '    this.sink = sink;\n',
    replace:
      '    this.sink = sink;\n    const above = parent?.handle as { held?: object[] } | undefined;\n    if (above !== undefined) (above.held ??= []).push(this);\n',
    tests: ['test/heap.test.ts'],
    isBuilt: true,
  },
  {
    title: 'tags that come with headers are not searched',
    file: 'src/run/propagation.ts',
    find: 'tags: withTags(undefined, this.#tags, payload),',
    replace: 'tags: this.#tags,',
    tests: ['test/run/propagation.test.ts'],
  },
  {
    title: 'a second end empties a run that waits in the queue',
    file: 'src/export/exporter.ts',
    find: "if (early === undefined || early.stage === 'settled') releaseRun(run);",
    replace: 'if (early === undefined || run !== undefined) releaseRun(run);',
    tests: ['test/export/exporter.test.ts'],
  },
];
