// Mistakes in context, options, sampling and propagation, each of which has to make a test fail.
const traceable = 'src/instrument/traceable.ts';
const run = 'src/run/run.ts';
const propagation = 'src/run/propagation.ts';

export const defects = [
  {
    title: 'children do not take over tags',
    file: run,
    find: 'tags: withTags(inherited.tags, options.tags, sink),',
    replace: 'tags: withTags(undefined, options.tags, sink),',
    tests: ['test/run/inheritance.test.ts'],
  },
  {
    title: 'what set adds reaches children through the map that they share',
    file: 'src/run/metadata.ts',
    find: 'const metadata = new Map(present);',
    replace: 'const metadata = (present ?? new Map()) as Map<string, string>;',
    tests: ['test/run/inheritance.test.ts'],
  },
  {
    title: 'a run inside withExporter goes where its parent went',
    file: run,
    find: 'if (exporter !== undefined) return exporter;',
    replace: '',
    tests: ['test/run/inheritance.test.ts'],
  },
  {
    title: 'a function that is wrapped twice makes two runs',
    file: traceable,
    find: 'known?.fn ?? (fn as unknown as Callable)',
    replace: 'fn as unknown as Callable',
    tests: ['test/instrument/traceable-with.test.ts'],
  },
  {
    title: 'with takes the place of the metadata of the function',
    file: 'src/instrument/plan.ts',
    find: '({ ...plan.metadata, ...over.metadata })',
    replace: '(over.metadata)',
    tests: ['test/instrument/traceable-with.test.ts'],
  },
  {
    title: 'what is below a trace that is left out is asked about again',
    file: run,
    find: 'if (parent?.sampled === false) return LEFT_OUT;',
    replace: '',
    tests: ['test/run/sampling.test.ts'],
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
    find: "guard('sampler', () => sampler(start))",
    replace: 'sampler(start)',
    tests: ['test/run/sampling.test.ts'],
  },
  {
    title: 'inputs are made before a trace is left out',
    file: traceable,
    find: 'const verdict = verdictOn(plan, parent, sink);',
    replace: 'inputsJson(plan, args, sink, undefined); const verdict = verdictOn(plan, parent, sink);',
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
    title: 'headers that cannot be read throw',
    file: propagation,
    find: '    // Headers that cannot be read tell of nothing.',
    replace: '    throw new Error();',
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
    file: 'src/otel/run-span-processor.ts',
    find: 'if (leftOut !== undefined) {',
    replace: 'if (leftOut === null) {',
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
];
