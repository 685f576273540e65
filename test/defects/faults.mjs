// Mistakes that cost more than the fault that they meet, by the rows of the table of faults.
const writer = 'src/run/json-writer.ts';
const summary = 'src/run/summary.ts';

export const defects = [
  {
    title: 'a test that was left out proves its row (the check itself)',
    file: 'test/faults/proofs.mjs',
    find: "status === 'passed'",
    replace: "status !== 'failed'",
    tests: ['test/faults/proofs.test.ts'],
  },
  {
    title: 'a number that JSON does not have makes text that is no JSON (75)',
    file: writer,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a file.
    find: 'Number.isFinite(value) ? String(value) : `"${value}"`',
    replace: 'String(value)',
    tests: ['test/run/json-writer.test.ts'],
  },
  {
    title: 'a URL is told with its password (77)',
    file: summary,
    find: "  url.password = '';\n",
    replace: '',
    tests: ['test/run/json-writer.test.ts'],
  },
  {
    title: 'a stream is locked to be told (79)',
    file: summary,
    find: "if (value instanceof ReadableStream) return '[ReadableStream]';",
    replace: "if (value instanceof ReadableStream) return value.getReader() && '[ReadableStream]';",
    tests: ['test/run/json-writer.test.ts', 'test/run/summary.test.ts'],
  },
  {
    title: 'half a surrogate pair goes out (81)',
    file: 'src/run/json-output.ts',
    find: 'JSON.stringify(text.toWellFormed())',
    replace: 'JSON.stringify(text)',
    tests: ['test/run/user-code.test.ts', 'test/run/json-output.test.ts'],
  },
  {
    title: 'more values of an object are read than are kept (85)',
    file: writer,
    find: 'if (left > 0 || !(isShort || this.#hasRoomFor(key, taken))) {',
    replace: 'void (object as never)[key];\n      if (left > 0 || !(isShort || this.#hasRoomFor(key, taken))) {',
    tests: ['test/run/user-code.test.ts'],
  },
  {
    title: 'what is longer than a string can be throws into the application (87)',
    file: 'src/run/serialize.ts',
    find: 'return jsonText(failureText(thrown) ??',
    replace: 'if (thrown instanceof RangeError) throw thrown;\n    return jsonText(failureText(thrown) ??',
    tests: ['test/run/serialize.test.ts'],
  },
  {
    title: 'a run holds those below it (94)',
    file: 'src/run/run.ts',
    find: "    return beginRun('Run.child', options, Run.#isOwner(this, 'child') ? this.context : currentContext());",
    replace: `    const child = beginRun('Run.child', options, Run.#isOwner(this, 'child') ? this.context : currentContext());
    Object.assign(this, { [child.id]: child });
    return child;`,
    tests: ['test/run/run.test.ts'],
  },
  {
    title: 'the clock is that of a test of the application (101)',
    file: 'src/base/clock.ts',
    find: '= Date.now;',
    replace: '= () => Date.now();',
    tests: ['test/fake-timers.test.ts', 'test/base/clock.test.ts'],
  },
  {
    title: 'each copy of the package has a current run of its own (102)',
    file: 'src/run/context.ts',
    find: "Symbol.for('runspan.context.v1')",
    replace: "Symbol('runspan.context.v1')",
    tests: ['test/copies.test.ts'],
    isBuilt: true,
  },
  {
    title: 'each exporter listens to the process (103)',
    file: 'src/export/exit.ts',
    find: 'function listen(): void {\n  if (allowances.size + tellers.size > 0) return;\n',
    replace: 'function listen(): void {\n',
    tests: ['test/exporters.test.ts'],
  },
  {
    title: 'a stand-in for Date makes the times of runs (107)',
    file: 'src/run/timestamp.ts',
    find: 'new DateOfPlatform(inSecond * 1_000)',
    replace: 'new Date(inSecond * 1_000)',
    tests: ['test/run/timestamp.test.ts'],
  },
  {
    title: 'values that are shared without end have no bound (108)',
    file: writer,
    find: 'this.#nodesLeft = rules.nodes;',
    replace: 'this.#nodesLeft = 100 * rules.nodes;',
    tests: ['test/run/serialize.test.ts'],
  },
  {
    title: 'an attached file that cannot be read is tried again with every batch (116)',
    file: 'src/export/attachment-parts.ts',
    find: 'if (bytes === undefined) leaveOut(item, attachment);',
    replace: 'if (bytes === undefined) continue;',
    tests: ['test/export/attachment-parts.test.ts'],
  },
];
