// Mistakes in what the attributes of spans mean, each of which has to make a test fail.
const traceloop = 'src/otel/traceloop.ts';
const traceloopMessages = 'src/otel/traceloop-messages.ts';

export const defects = [
  {
    title: 'a span that names a model is a call of one, whatever Traceloop says',
    file: 'src/otel/genai.ts',
    find: 'OPERATIONS.get(String(attributes[OPERATION])) ?? {}',
    replace:
      "OPERATIONS.get(String(attributes[OPERATION])) ?? (attributes['gen_ai.request.model'] ? { runType: 'llm' } : {})",
    tests: ['test/otel/traceloop.test.ts'],
  },
  {
    title: 'the one object that a function of Traceloop was called with stays below kwargs',
    file: traceloopMessages,
    find: 'if (args.length === 0) return kwargs === undefined ? {} : kwargs;',
    replace: '',
    tests: ['test/otel/traceloop.test.ts'],
  },
  {
    title: 'the JSON text of an attribute is sent for what was taken out of it',
    file: 'src/otel/vocabulary.ts',
    find: ' && isVerbatim(read)',
    replace: '',
    tests: ['test/otel/traceloop.test.ts'],
  },
  {
    title: "calls of tools in Traceloop's completions keep their flat form",
    file: traceloopMessages,
    find: 'function: defined({ name, arguments: given })',
    replace: 'name, arguments: given',
    tests: ['test/otel/traceloop.test.ts'],
  },
  {
    title: 'the headers of a request go to the metadata',
    file: traceloop,
    find: "'llm.headers', ",
    replace: '',
    tests: ['test/otel/traceloop.test.ts'],
  },
  {
    title: 'association properties keep the name of their convention',
    file: traceloop,
    find: "    ['traceloop.association.properties', WHOLE, associations, 'below'],\n",
    replace: '',
    tests: ['test/otel/traceloop.test.ts'],
  },
  {
    title: 'every workflow around a span is its name',
    file: traceloop,
    find: "const isUnnamed = kind === 'workflow' && ",
    replace: 'const isUnnamed = ',
    tests: ['test/otel/traceloop.test.ts'],
  },
  {
    title: 'vectors of a vector database are recorded',
    file: 'src/otel/vector-events.ts',
    find: 'defined({ ...rest, dimensions: dimensionsOf(vector) })',
    replace: 'defined({ ...rest, vector })',
    tests: ['test/otel/vector-events.test.ts'],
  },
  {
    title: 'of the matches of a vector database only the last is kept',
    file: 'src/otel/vector-events.ts',
    find: 'if (Array.isArray(before) && Array.isArray(value)) before.push(...value);\n      else ',
    replace: '',
    tests: ['test/otel/vector-events.test.ts'],
  },
  {
    title: 'a failed observation of Langfuse has no error',
    file: 'src/otel/span-error.ts',
    find: 'return langfuseError(span.attributes);',
    replace: 'return undefined;',
    tests: ['test/otel/span-error.test.ts'],
  },
  {
    title: "kinds of Langfuse's tokens count as tokens of their own",
    file: 'src/otel/langfuse.ts',
    find: "else if (kind === undefined) usage[name] = tokens;\n    else details[side as 'input' | 'output'][DETAILS.get(kind) ?? kind] = tokens;",
    replace: 'else usage[name] = tokens;',
    tests: ['test/otel/langfuse.test.ts'],
  },
];
