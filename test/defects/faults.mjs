// Mistakes that cost more than the fault that they meet, by the rows of the table of faults.

export const defects = [
  {
    title: 'a test that was left out proves its row (the check itself)',
    file: 'test/faults/proofs.mjs',
    find: "status === 'passed'",
    replace: "status !== 'failed'",
    tests: ['test/faults/proofs.test.ts'],
  },
  {
    title: 'the ends of runs that are open for too long are waited for (93)',
    file: 'src/export/open-runs.ts',
    find: 'if (delivery.startedAtMs > bornBeforeMs) break;',
    replace: 'if (delivery.startedAtMs >= bornBeforeMs) break;',
    tests: ['test/export/open-runs.test.ts'],
  },
  {
    title: 'the queue is moved up for every run that is taken (95)',
    file: 'src/export/queue.ts',
    find: 'if (this.#head * 2 >= this.#ready.length) {',
    replace: 'if (this.#head > 0) {',
    tests: ['test/export/queue.test.ts'],
  },
  {
    title: 'a flush answers for what came after it (99)',
    file: 'src/export/barrier.ts',
    find: '    group.closed = true;\n    this.#groups.push(newGroup());\n',
    replace: '    group.closed = true;\n',
    tests: ['test/export/barrier.test.ts', 'test/export/exporter.test.ts'],
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
    file: 'src/run/time.ts',
    find: 'new DateOfPlatform(inSecond * 1_000)',
    replace: 'new Date(inSecond * 1_000)',
    tests: ['test/run/timestamp.test.ts'],
  },
  {
    title: 'an attached file that cannot be read is tried again with every batch (116)',
    file: 'src/export/attachment-parts.ts',
    find: 'if (bytes === undefined) leaveOut(item, attachment);',
    replace: 'if (bytes === undefined) continue;',
    tests: ['test/export/attachment-parts.test.ts'],
  },
];
