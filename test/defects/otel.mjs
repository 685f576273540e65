// Mistakes in what spans and log records become, each of which has to make a test fail.
const genai = 'test/otel/genai.test.ts';

export const defects = [
  {
    title: 'GenAI: the answer of a tool is read under one of its two names',
    file: 'src/otel/genai-messages.ts',
    find: 'content: response ?? result,',
    replace: 'content: response,',
    tests: [genai],
  },
  {
    title: 'GenAI: inline media stays a bare base64 text, which is never attached',
    file: 'src/otel/genai-messages.ts',
    find: 'return mediaOf(part, dataUri(content, part.mime_type));',
    replace: 'return mediaOf(part, content);',
    tests: [genai, 'test/otel/span-run.test.ts'],
  },
  {
    title: 'GenAI: what is written into a memory counts as found there',
    file: 'src/otel/genai.ts',
    find: "return attributes[OPERATION] === 'search_memory' ? genAiDocuments(value) : undefined;",
    replace: 'return genAiDocuments(value);',
    tests: [genai],
  },
  {
    title: 'events: a message of which nothing but the role is told is a message',
    file: 'src/otel/message-events.ts',
    find: 'if (content === undefined && calls === undefined) return undefined;',
    replace: '',
    tests: ['test/otel/message-events.test.ts'],
  },
  {
    title: 'events: what an event has told stays in the events too',
    file: 'src/otel/message-events.ts',
    find: '?.every((name) => used.has(name)) !== true',
    replace: '?.every((name) => used.has(name)) !== false',
    tests: ['test/otel/message-events.test.ts'],
  },
  {
    title: 'events: what was told beside the attributes is metadata where they say it themselves',
    file: 'src/otel/mapping.ts',
    find: '  for (const key of own) reader.use(key);\n',
    replace: '',
    tests: ['test/otel/message-events.test.ts'],
  },
  {
    title: 'langsmith: the summed usage of a chain is read as usage of its own',
    file: 'src/otel/mapping.ts',
    find: "kind.runType === 'chain' ? undefined : usageOf",
    replace: "kind.runType === 'none' ? undefined : usageOf",
    tests: ['test/otel/langsmith.test.ts'],
  },
  {
    title: 'langsmith: headers of a request are metadata',
    file: 'src/otel/langsmith.ts',
    find: "    'langsmith.request.headers',\n",
    replace: '',
    tests: ['test/otel/langsmith.test.ts'],
  },
  {
    title: 'langsmith: a failed run whose span is OK has no error',
    file: 'src/otel/span-error.ts',
    find: "span.attributes[LANGSMITH] === 'true'",
    replace: "span.attributes[LANGSMITH] === 'never'",
    tests: ['test/otel/span-error.test.ts'],
  },
  {
    title: 'log records: what the application changes later is recorded',
    file: 'src/otel/log-messages.ts',
    find: 'addTold(this.attributes, this.#copy(values, 0) as Attributes);',
    replace: 'addTold(this.attributes, (this.#copy(values, 0), values));',
    tests: ['test/otel/log-messages.test.ts', 'test/otel/run-log-record-processor.test.ts'],
  },
  {
    title: 'log records: those of one span have no bound',
    file: 'src/otel/log-messages.ts',
    find: 'if (this.#nodesLeft <= 0 || this.#bytesLeft <= 0) this.#leftOut++;',
    replace: 'if (this.#nodesLeft === -1 && this.#bytesLeft === -1) this.#leftOut++;',
    tests: ['test/otel/log-messages.test.ts', 'test/otel/run-log-record-processor.test.ts'],
  },
  {
    title: 'log records: they reach the first processor alone that has the span',
    file: 'src/otel/active-spans.ts',
    find: '    if (entry !== undefined) entries.push(entry);\n',
    replace: '    if (entry !== undefined) return [entry];\n',
    tests: ['test/otel/run-log-record-processor.test.ts'],
  },
];
