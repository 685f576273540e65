// Mistakes in what spans become, each of which has to make a test fail.
const aiSdk = 'src/otel/ai-sdk.ts';
const aiSdkTests = ['test/otel/ai-sdk.test.ts'];
const traceloop = 'src/otel/traceloop.ts';
const traceloopMessages = 'src/otel/traceloop-messages.ts';

export const defects = [
  {
    title: "the spans of Vercel's AI SDK are read by the GenAI conventions first",
    file: 'src/otel/mapping.ts',
    find: '  aiSdk,\n  genAi,\n',
    replace: '  genAi,\n  aiSdk,\n',
    tests: aiSdkTests,
  },
  {
    title: 'headers of the requests of the AI SDK are metadata',
    file: aiSdk,
    find: "  ['ai.request.headers', WHOLE, nothing, 'below'],\n",
    replace: '',
    tests: aiSdkTests,
  },
  {
    title: 'vectors of the AI SDK are recorded',
    file: aiSdk,
    find: "['ai.embeddings', 'embeddings', dimensions],",
    replace: "['ai.embeddings', 'embeddings', eachJson],",
    tests: aiSdkTests,
  },
  {
    title: "tokens of Anthropic's cache are missing where the AI SDK does not add them",
    file: 'src/otel/ai-sdk-usage.ts',
    find: 'return told + (read ?? 0) +',
    replace: 'return told + 0 * (read ?? 0) +',
    tests: aiSdkTests,
  },
  {
    title: 'an object of the AI SDK is told as a message of the function around the model',
    file: aiSdk,
    find: 'return STEPS.has(stepOf(attributes[OPERATION])) ? undefined : anyJson(value);',
    replace: 'return undefined;',
    tests: aiSdkTests,
  },
  {
    title: 'JSON text stands for what has been made of it',
    file: 'src/otel/vocabulary.ts',
    find: ' && isVerbatim(read)',
    replace: '',
    tests: aiSdkTests,
  },
  {
    title: 'an attribute with a row of its own goes with those below a prefix',
    file: 'src/otel/row-index.ts',
    find: ' || this.#places.has(key)',
    replace: '',
    tests: aiSdkTests,
  },
  {
    title: "the AI SDK's own event stays beside the first token",
    file: 'src/otel/span-events.ts',
    find: 'events.filter(({ name }) => name !== FIRST_CHUNK_EVENT)',
    replace: 'events',
    tests: aiSdkTests,
  },
  {
    title: 'a failed call of the AI SDK counts as cancelled',
    file: 'src/otel/cancelled-call.ts',
    find: '  if (status.code !== 0) return false;\n',
    replace: '',
    tests: ['test/otel/cancelled-call.test.ts'],
  },
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
