// Mistakes in what spans become, each of which has to make a test fail.
const aiSdk = 'src/otel/ai-sdk.ts';
const aiSdkTests = ['test/otel/ai-sdk.test.ts'];

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
];
