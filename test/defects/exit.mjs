// Mistakes at the end of a process, and at the end of a call that a platform freezes after.
const signals = 'src/export/signals.ts';
const withFlush = 'src/instrument/with-flush.ts';
const body = 'src/instrument/answer-body.ts';
const context = 'src/instrument/request-context.ts';
const signalTests = ['test/export/signals.test.ts'];
const flushTests = ['test/instrument/with-flush.test.ts'];

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
  {
    title: 'a handler answers before everything is flushed',
    file: withFlush,
    find: 'await this.#end();\n      return value;',
    replace: 'void this.#end();\n      return value;',
    tests: flushTests,
  },
  {
    title: 'a handler that fails is not flushed',
    file: withFlush,
    find: '      await this.#end();\n      throw error;',
    replace: '      throw error;',
    tests: flushTests,
  },
  {
    title: 'the time that the platform has left is not looked at',
    file: withFlush,
    find: 'Math.min(this.#limitMs, remainingMs(this.#args))',
    replace: 'this.#limitMs',
    tests: flushTests,
  },
  {
    title: 'a platform that refuses the flush is relied upon',
    file: withFlush,
    find: 'return isHandedOver ? undefined : this.#flushed;',
    replace: 'return this.#handOver === undefined ? this.#flushed : undefined;',
    tests: flushTests,
  },
  {
    title: 'waitUntil is called without its object',
    file: context,
    find: 'Reflect.apply(waitUntil, platform, [work]);',
    replace: 'waitUntil(work);',
    tests: flushTests,
  },
  {
    title: 'the reader of a body is told of the end before the flush',
    file: body,
    find: 'return waitedFor === undefined ? result : waitedFor.then(() => result);',
    replace: 'return result;',
    tests: flushTests,
  },
  {
    title: 'a body that nobody reads keeps the platform waiting',
    file: withFlush,
    find: 'await Promise.race([body.begun, late]);',
    replace: 'await body.begun;',
    tests: flushTests,
  },
];
