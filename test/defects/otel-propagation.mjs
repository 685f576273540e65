// Mistakes in how runs travel with OpenTelemetry, and in how calls that two see are recorded, each of which has to make a
// test fail.
const propagator = 'src/otel/run-propagator.ts';
const propagatorTests = ['test/otel/run-propagator.test.ts'];
const bothWorlds = ['test/otel/both-worlds.test.ts'];

export const defects = [
  {
    title: 'headers are written where tracing is suppressed',
    file: propagator,
    find: '      if (context.getValue(SUPPRESS_TRACING) === true) return;\n',
    replace: '',
    tests: propagatorTests,
  },
  {
    title: 'the baggage of others is overwritten',
    file: propagator,
    find: 'const baggage = baggageOf(told, members);',
    replace: 'const baggage = baggageOf(told, []);',
    tests: propagatorTests,
  },
  {
    title: 'tags and metadata are sent to everybody',
    file: propagator,
    find: 'this.#withMetadata ? run : { ...run, tags: undefined, metadata: undefined }',
    replace: 'this.#withMetadata || run.sampled ? run : { ...run, tags: undefined, metadata: undefined }',
    tests: propagatorTests,
  },
  {
    title: 'a deep run fills the headers that a server takes',
    file: propagator,
    find: 'const ORDER_MAX = 4_096;',
    replace: 'const ORDER_MAX = 8_192;',
    tests: propagatorTests,
  },
  {
    title: 'headers of strangers are believed',
    file: propagator,
    find: "if (typeof answer === 'boolean') return answer;",
    replace: 'return answer !== false;',
    tests: propagatorTests,
  },
  {
    title: 'the run of an earlier message is the parent of a span that another has brought',
    file: 'src/otel/extracted-run.ts',
    find: 'return this.#spanId === undefined || this.#spanId === span?.spanId;',
    replace: 'return this.#spanId === undefined || span !== undefined;',
    tests: propagatorTests,
  },
  {
    title: 'spans take no notice of the run that came with their parent',
    file: 'src/otel/run-span-processor.ts',
    find: 'const sink = extracted && (this.#options.exporter ?? currentSink());',
    replace: 'const sink = extracted && this.#options.exporter;',
    tests: propagatorTests,
  },
  {
    title: 'wrapped functions take no notice of the run that came with a remote span',
    file: 'src/otel/active-spans.ts',
    find: '  return remoteContextOf(extractedFor(within, span));\n',
    replace: '  void within;\n  return undefined;\n',
    tests: propagatorTests,
  },
  {
    title: 'a header that came twice is no place in a trace',
    file: 'src/run/propagation.ts',
    find: 'return more.length === 0 && inner',
    replace: 'return more.length < 0 && inner',
    tests: propagatorTests,
  },
  {
    title: 'a span inside of the run of a wrapped client is recorded again, and its tokens count twice',
    file: 'src/otel/span-model-call.ts',
    find: 'return above !== undefined && isSameCall(above, spanModelCall(span));',
    replace: 'return above === null;',
    tests: bothWorlds,
  },
  {
    title: 'a call goes unrecorded inside of the run of an earlier one that has ended',
    file: 'src/run/run.ts',
    find: '    this.modelCall = undefined;\n',
    replace: '',
    tests: bothWorlds,
  },
  {
    title: 'a failed call that an instrumentation has asked for leaves a rejection of ours unhandled',
    file: 'src/integrations/api-promise.ts',
    find: '  if (promise.parsedPromise !== undefined) responded.catch(() => {});\n',
    replace: '',
    tests: ['test/integrations/api-promise.test.ts'],
  },
];
