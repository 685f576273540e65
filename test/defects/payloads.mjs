// Mistakes in payloads, redaction and attachments, each of which has to make a test fail.

export const defects = [
  {
    title: 'metadata is not searched',
    file: 'src/run/metadata.ts',
    find: 'metadataJson(key, value, rules)',
    replace: 'metadataJson(key, value, { ...rules, redaction: undefined })',
    tests: ['test/payload/redact.test.ts', 'test/run/run.test.ts', 'test/run/propagation.test.ts'],
  },
  {
    title: 'tags and metadata are handed down to runs that go elsewhere',
    file: 'src/run/run.ts',
    find: '&& handle.sink !== sink;',
    replace: '&& handle.sink === undefined;',
    tests: ['test/run/inheritance.test.ts'],
  },
];
