// Mistakes in how services are asked, each of which has to make a test fail.
const client = 'src/http/client.ts';
const connections = 'src/http/connections.ts';
const failure = 'src/http/failure.ts';
const answer = 'src/export/answer.ts';
const answerTests = ['test/export/answer.test.ts'];
const limit = 'src/export/batch-limit.ts';
const limitTests = ['test/export/batch-limit.test.ts'];
const info = 'src/export/service-info.ts';
const infoTests = ['test/export/service-info.test.ts'];
const connectionTests = ['test/export/connection-in-trouble.test.ts'];

export const defects = [
  {
    title: 'the whole of an answer is read',
    file: client,
    find: 'if (bytes < ANSWER_BYTES_MAX) return;',
    replace: 'return;',
    tests: ['test/http/client.test.ts'],
  },
  {
    title: 'a connection that was kept and breaks is a failure',
    file: client,
    find: 'if (breaker.aborted || !isOfUsedConnection(error)) throw error;',
    replace: 'if (breaker.aborted || isOfUsedConnection(error)) throw error;',
    tests: ['test/http/connections.test.ts'],
  },
  {
    title: 'every connection that breaks is tried again at once',
    file: connections,
    find: '    if (socket.bytesRead > 0) errorsOfUsed.add(error);',
    replace: '    errorsOfUsed.add(error);',
    tests: ['test/http/connections.test.ts'],
  },
  {
    title: 'the text of an error is told',
    file: failure,
    find: 'return tunnelFailure(thrown) ?? parserFailure(thrown) ?? failureOfCode(code);',
    replace: 'return { ...failureOfCode(code), detail: String(thrown) };',
    tests: ['test/http/failure.test.ts', ...connectionTests],
  },
  {
    title: 'a certificate that is not trusted is asked for again and again',
    file: failure,
    find: 'const isLasting = code !== undefined && OF_TLS.test(code);',
    replace: 'const isLasting = false;',
    tests: ['test/http/failure.test.ts'],
  },
  {
    title: 'this machine is reached through a proxy',
    file: 'src/http/proxies.ts',
    find: "  if (isLoopback(endpoint.hostname)) return 'this machine';\n",
    replace: '',
    tests: ['test/http/proxies.test.ts'],
  },
  {
    title: 'the socket to a proxy holds the process',
    file: connections,
    find: '    clientFactory: (origin: URL, pool: object) => poolOf(origin, { ...timeouts, ...pool }, true),\n',
    replace: '',
    tests: ['test/http/process-end.test.ts'],
  },
  {
    title: 'an exception to the proxies is one for the end of other names, too',
    file: 'src/http/proxies.ts',
    find: '.endsWith(`.',
    replace: '.endsWith(`',
    tests: ['test/http/proxies.test.ts'],
  },
  {
    title: 'exceptions to the proxies are left out',
    file: 'src/http/proxies.ts',
    find: "except: env('no_proxy') ?? env('NO_PROXY') ?? ''",
    replace: "except: ''",
    tests: ['test/http/proxies.test.ts'],
  },
  {
    title: '409 is a refusal',
    file: answer,
    find: 'if (status === 409) return',
    replace: 'if (status === 0) return',
    tests: answerTests,
  },
  {
    title: 'a new key is not handed on',
    file: 'src/runspan.ts',
    find: '  for (const earlier of successive) renewKey(earlier, settings);\n',
    replace: '',
    tests: ['test/runspan.test.ts'],
  },
  {
    title: 'a new key is handed to another workspace',
    file: 'src/export/create-exporter.ts',
    find: " && old.headers['x-tenant-id'] === headers['x-tenant-id']",
    replace: '',
    tests: ['test/runspan.test.ts'],
  },
  {
    title: 'a batch never grows again',
    file: limit,
    find: 'const GROWTH = 1.01;',
    replace: 'const GROWTH = 1;',
    tests: limitTests,
  },
  {
    title: '/info is asked once for all',
    file: info,
    find: '    this.#askAtMs = this.#monotonicMs() + this.#againMs;\n',
    replace: '',
    tests: infoTests,
  },
  {
    title: '/info has as long as any request',
    file: info,
    find: ', timeoutMs: TIMEOUT_MS });',
    replace: ' });',
    tests: infoTests,
  },
  {
    title: 'a large body is laid in one go',
    file: 'src/export/multipart.ts',
    find: 'while (this.#written < this.#texts.length && this.#writtenBytes < sliceEnd) {',
    replace: 'while (this.#written < this.#texts.length && sliceEnd > 0) {',
    tests: ['test/export/multipart.test.ts'],
  },
  {
    title: 'a fault of the receiver goes on for ever',
    file: 'src/receiver/faults.ts',
    find: 'if (failure !== undefined) this.#failuresLeft--;',
    replace: '',
    tests: ['test/receiver/faults.test.ts'],
  },
  {
    title: 'runs that the receiver refuses are kept',
    file: 'src/receiver/ingest-routes.ts',
    find: '  await faults.meet(operations);\n',
    replace: '  await store.apply(operations);\n  await faults.meet(operations);\n',
    tests: ['test/receiver/faults.test.ts'],
  },
  {
    title: 'answers of the receiver that are to wait do not',
    file: 'src/receiver/faults.ts',
    find: 'if (delayMs > 0) await',
    replace: 'if (delayMs > 0) void',
    tests: ['test/receiver/faults.test.ts'],
  },
];
