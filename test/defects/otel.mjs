// Mistakes in what the attributes of spans mean, each of which has to make a test fail.
const openInference = 'src/otel/openinference.ts';
const http = 'src/otel/http.ts';

export const defects = [
  {
    title: 'what OpenInference says of reasoning is taken for text',
    file: 'src/otel/openinference-messages.ts',
    find: "if (type === 'reasoning') return defined({ type, reasoning: words, ...known });\n",
    replace: '',
    tests: ['test/otel/openinference.test.ts'],
  },
  {
    title: 'calls of tools among the content of a message are lost',
    file: 'src/otel/openinference-messages.ts',
    find: 'if (isObject(tool_call)) return { ...toolUseOf(tool_call), ...known };\n',
    replace: '',
    tests: ['test/otel/openinference.test.ts'],
  },
  {
    title: 'vectors that are no list go to the metadata',
    file: openInference,
    find: 'if (Array.isArray(vector)) return { dimensions: vector.length };',
    replace:
      'if (Array.isArray(vector)) return { dimensions: vector.length };\n  if (vector !== REDACTED) return { vector };',
    tests: ['test/otel/openinference.test.ts'],
  },
  {
    title: 'the model that was asked is said to have answered',
    file: openInference,
    find: 'return asked === undefined || asked === value ? NOTHING_NEW : text(value);',
    replace: 'return text(value);',
    tests: ['test/otel/openinference.test.ts'],
  },
  {
    title: 'a URL keeps its password',
    file: http,
    find: "['url.full', 'url', withoutCredentials],",
    replace: "['url.full', 'url', text],",
    tests: ['test/otel/http.test.ts'],
  },
  {
    title: 'what is left of a URL goes to the metadata as it is',
    file: 'src/otel/mapping.ts',
    find: 'CLEANED.get(key)?.(value, reader.attributes) ?? value',
    replace: 'value',
    tests: ['test/otel/http.test.ts'],
  },
  {
    title: 'the name of a run has the URL though inputs are hidden',
    file: 'src/otel/mapping.ts',
    find: 'if (!hideInputs) rename ??= kind.rename;',
    replace: 'rename ??= kind.rename;',
    tests: ['test/otel/http.test.ts'],
  },
  {
    title: 'the name that an application has given a request is replaced',
    file: 'src/otel/span-run.ts',
    find: 'return own === mapped?.rename?.plain ? mapped.rename.telling : own;',
    replace: 'return mapped?.rename?.telling ?? own;',
    tests: ['test/otel/http.test.ts'],
  },
  {
    title: 'what is written to a vector database is a search',
    file: 'src/otel/database.ts',
    find: '!WRITES.test(operation)',
    replace: 'operation.length > 0',
    tests: ['test/otel/database.test.ts'],
  },
  {
    title: 'every request of MCP is a tool',
    file: 'src/otel/mcp.ts',
    find: "attributes[METHOD] === 'tools/call'",
    replace: 'attributes[METHOD] !== undefined',
    tests: ['test/otel/mcp.test.ts'],
  },
  {
    title: 'the old name of a destination is not read',
    file: 'src/otel/messaging.ts',
    find: "    ['messaging.destination', 'destination', text, 'repeats'],\n",
    replace: '',
    tests: ['test/otel/messaging.test.ts'],
  },
  {
    title: 'an attribute is read that is said to be in no table',
    file: http,
    find: "    ['http.route', 'route', text],",
    replace: "    ['http.route', 'route', text],\n    ['http.host', 'host', text],",
    tests: ['test/package/attribute-matrix.test.ts'],
  },
  {
    title: 'tags are asked for only as a list',
    file: 'src/otel/general-attributes.ts',
    find: "'tags', jsonTexts]",
    replace: "'tags', text]",
    tests: ['test/otel/openinference.test.ts'],
  },
];
