// Mistakes that give something away or let somebody in, each of which has to make a test fail.
const service = 'src/export/service-settings.ts';
const client = 'src/http/client.ts';
const diagnostics = 'src/base/diagnostics.ts';

export const defects = [
  {
    title: 'lines repeat the keys that they are given',
    file: diagnostics,
    find: "for (const value of concealed) shown = shown.replaceAll(value, '[Redacted]');",
    replace: '',
    tests: ['test/base/diagnostics.test.ts'],
  },
  {
    title: 'lines show user and password of addresses',
    file: diagnostics,
    find: "let shown = message.replace(/(?<=:\\/\\/)[^\\s/?#@]{1,1024}@/g, '[Redacted]@');",
    replace: 'let shown = message;',
    tests: ['test/base/diagnostics.test.ts'],
  },
  {
    title: 'a header of the application takes the place of the key',
    file: service,
    find: "  ['x-api-key', 'apiKey'],\n",
    replace: '',
    tests: ['test/security/headers.test.ts'],
  },
  {
    title: 'header values may hold line breaks',
    file: service,
    find: '/^[\\t\\x20-\\x7e]*$/.test(value)',
    replace: '/^[\\t\\x20-\\x7e]*/.test(value)',
    tests: ['test/security/headers.test.ts'],
  },
  {
    title: 'all requests have the same boundary',
    file: 'src/export/multipart-transport.ts',
    find: "randomBytes(16).toString('hex')",
    replace: "Buffer.alloc(randomBytes(16).length).toString('hex')",
    tests: ['test/security/multipart-names.test.ts'],
  },
  {
    title: 'redirects are followed by a dispatcher that can',
    file: client,
    find: 'maxRedirections: 0,',
    replace: '',
    tests: ['test/security/redirects.test.ts'],
  },
  {
    title: 'names that begin with a loopback address are taken for this machine',
    file: 'src/base/options.ts',
    find: "(isIPv4(name) && name.startsWith('127.'))",
    replace: "(isIPv4(name) || name.startsWith('127.'))",
    tests: ['test/security/transport.test.ts'],
  },
  {
    title: 'nobody is told that certificates are not checked',
    file: service,
    find: "env('NODE_TLS_REJECT_UNAUTHORIZED') === '0'",
    replace: "env('NODE_TLS_REJECT_UNAUTHORIZED') === 'no'",
    tests: ['test/security/transport.test.ts'],
  },
  {
    title: 'answers are read to their end',
    file: client,
    find: 'if (bytes < ANSWER_BYTES_MAX) return;',
    replace: 'return;',
    tests: ['test/security/answers.test.ts'],
  },
  {
    title: 'a service may ask for batches of any size',
    file: 'src/export/service-info.ts',
    find: '? Math.min(max, Math.max(min, Math.floor(value)))',
    replace: '? Math.max(min, Math.floor(value)) + 0 * max',
    tests: ['test/security/answers.test.ts'],
  },
  {
    title: 'pages of other origins may write into the receiver',
    file: 'src/receiver/access.ts',
    find: 'if (origin !== undefined && !this',
    replace: "if (origin === 'nobody' && !this",
    tests: ['test/security/receiver.test.ts'],
  },
  {
    title: 'the header of a part takes time by the square of its white space',
    file: 'src/receiver/multipart-batch.ts',
    find: '/(?<!\\s)\\s*;\\s*length=[^;]*/i',
    replace: '/\\s*;\\s*length=[^;]*/i',
    tests: ['test/security/patterns.test.ts'],
  },
  {
    title: 'a sampler is asked about the traces that it starts itself',
    file: 'src/run/sampling.ts',
    find: '() => untraced(sampler, start)',
    replace: '() => sampler(start)',
    tests: ['test/security/callbacks.test.ts'],
  },
  {
    title: 'a traced log function makes runs of the lines about its runs',
    file: 'src/runspan.ts',
    find: '(exporters.size === 0 ? call() : untraced(call))',
    replace: '(exporters.size === 0 ? call() : call())',
    tests: ['test/security/callbacks.test.ts'],
  },
  {
    title: 'a traced `onDrop` is called for the runs of its calls',
    file: 'src/export/drop-notice.ts',
    find: 'untraced(onDrop, reason, run)',
    replace: 'onDrop(reason, run)',
    tests: ['test/security/callbacks.test.ts'],
  },
];
