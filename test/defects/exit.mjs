// Mistakes at the end of a process, and at the end of a call that a platform freezes after.
const signals = 'src/export/signals.ts';
const signalTests = ['test/export/signals.test.ts'];

export const defects = [
  {
    title: 'the process ends by a code in the place of its signal',
    file: signals,
    find: 'process.kill(process.pid, signal);',
    replace: 'process.exit(143);',
    tests: signalTests,
    isBuilt: true,
  },
  {
    title: 'a signal ends a process whose application listens for it',
    file: signals,
    find: 'if (process.listenerCount(signal) > 1) stepAside(signal);',
    replace: 'if (process.listenerCount(signal) > 1_000) stepAside(signal);',
    tests: signalTests,
    isBuilt: true,
  },
  {
    title: 'a second signal during the flush is not heard',
    file: signals,
    find: 'if (ending !== undefined) end(ending);',
    replace: 'if (ending !== undefined) return;',
    tests: signalTests,
    isBuilt: true,
  },
  {
    title: 'those who look whether they listen alone see us',
    file: signals,
    find: '  process.off(signal, onSignal);\n  setSoon',
    replace: '  setSoon',
    tests: signalTests,
    isBuilt: true,
  },
  {
    title: 'the listeners stay when the last exporter has closed',
    file: signals,
    find: 'if (flushLimitsMs.delete(exporter) && flushLimitsMs.size === 0) leave();',
    replace: 'flushLimitsMs.delete(exporter);',
    tests: signalTests,
    isBuilt: true,
  },
  {
    title: 'the terminal stays in raw mode',
    file: signals,
    find: 'if (isatty(0))',
    replace: 'if (isatty(-1))',
    tests: signalTests,
    isBuilt: true,
  },
  {
    title: 'a process that ends by itself does not wait for delivery',
    file: 'src/export/exit.ts',
    find: "  process.on('beforeExit', flushAll);\n",
    replace: '',
    tests: ['test/export/exit.test.ts'],
    isBuilt: true,
  },
  {
    title: 'what a listener of the end records holds the process for ever',
    file: 'src/export/exit-allowance.ts',
    find: 'if (this.#waits >= WAITS_MAX) return 0;',
    replace: '',
    tests: ['test/export/exit.test.ts'],
  },
  {
    title: 'each wait of one end has the whole limit',
    file: 'src/export/exit-allowance.ts',
    find: 'idleMs - this.#idleMs > SAME_END_MS',
    replace: 'idleMs - this.#idleMs >= 0',
    tests: ['test/export/exit.test.ts'],
  },
  {
    title: 'nobody is told what a process that ends has lost',
    file: 'src/export/exit.ts',
    find: "  process.on('exit', tellAll);\n",
    replace: '',
    tests: ['test/faults/kill-matrix.test.ts'],
    isBuilt: true,
  },
];
