// Mistakes in following results to their end, each of which has to make a test fail.
const promise = 'src/instrument/promise.ts';
const iterator = 'src/instrument/iterator.ts';
const consumption = 'src/instrument/consumption.ts';
const stream = 'src/instrument/readable-stream.ts';
const emitter = 'src/instrument/emitter.ts';

export const defects = [
  {
    title: 'callers who are handed the same promise get one each',
    file: 'src/instrument/promise.ts',
    find: '    derivatives.set(promise, derived);\n',
    replace: '',
    tests: ['test/instrument/outcome.test.ts'],
  },
  {
    title: 'the rejection of a promise is swallowed',
    file: promise,
    find: '      settlement.rejected(error);\n      throw error;',
    replace: '      settlement.rejected(error);\n      return undefined;',
    tests: ['test/instrument/outcome.test.ts'],
  },
  {
    title: 'a lazy thenable is asked on our own account',
    file: promise,
    find: '  followed.set(value, waiting);',
    replace: '  followed.set(value, waiting);\n  Reflect.apply(then, value, [() => {}, () => {}]);',
    tests: ['test/instrument/outcome.test.ts'],
  },
  {
    title: 'what a promise resolves to is not followed',
    file: 'src/instrument/outcome.ts',
    find: '!isObject(value) || !followSequence(value, this.#run, this.#plan)',
    replace: 'isObject(value) || !isObject(value)',
    tests: ['test/instrument/outcome.test.ts', 'test/instrument/sequence.test.ts'],
  },
  {
    title: 'a generator that is left by break ends as if it had run out',
    file: iterator,
    find: 'if (this.#wasReturned && (done === true || !this.#isGenerator)) reading.cancel();\n      else if',
    replace: 'if',
    tests: ['test/instrument/generator.test.ts', 'test/instrument/sequence.test.ts'],
  },
  {
    title: 'a step is taken outside of the context of its run',
    file: consumption,
    find: 'enterContext(this.#run.context, Reflect.apply<unknown, unknown[], unknown>, method, self, args)',
    replace: 'Reflect.apply(method, self, args)',
    tests: ['test/instrument/generator.test.ts'],
  },
  {
    title: 'every chunk is a new_token event',
    file: consumption,
    find: "if (this.#chunks.count === 0) this.#run.event('new_token');",
    replace: "this.#run.event('new_token');",
    tests: ['test/instrument/sequence.test.ts', 'test/instrument/chunks.test.ts'],
  },
  {
    title: 'a result that is collected leaves its run open',
    file: 'src/instrument/abandonment.ts',
    find: 'this.#collected.register(result, watched, watched);',
    replace: '',
    tests: ['test/instrument/abandonment.test.ts'],
  },
  {
    title: 'a quiet result is never given up',
    file: 'src/instrument/abandonment.ts',
    find: 'if (quietMs >= watched.idleMaxMs) {',
    replace: 'if (quietMs === -1) {',
    tests: ['test/instrument/abandonment.test.ts'],
  },
  {
    title: 'a web stream that is cancelled ends as if it had run out',
    file: stream,
    find: '  if (!isRefused) reading.cancel();',
    replace: '  if (!isRefused) reading.end();',
    tests: [
      'test/instrument/readable-stream.test.ts',
      'test/instrument/sequence.test.ts',
      'test/instrument/sequence-program.test.ts',
    ],
  },
  {
    title: 'both branches of a tee are recorded',
    file: stream,
    find: 'if (++this.#taken <= this.#shared.taken) return;',
    replace: '++this.#taken;',
    tests: ['test/instrument/readable-stream.test.ts'],
  },
  {
    title: 'an error that nobody listens for is heard by us',
    file: emitter,
    find: "guard('traceable', () => see(args[0], args[1], this as object));",
    replace:
      "guard('traceable', () => see(args[0], args[1], this as object));\n      if (args[0] === 'error') return true;",
    tests: [
      'test/instrument/outcome.test.ts',
      'test/instrument/sequence.test.ts',
      'test/instrument/sequence-program.test.ts',
    ],
  },
  {
    title: 'chunks are kept without an end',
    file: 'src/instrument/chunks.ts',
    find: 'if (this.#kept >= CHUNKS_MAX || this.#charactersLeft <= 0) {',
    replace: 'if (this.#charactersLeft === -1) {',
    tests: ['test/instrument/chunks.test.ts'],
  },
  {
    title: 'a method that is replaced is listed among the keys',
    file: 'src/instrument/own-method.ts',
    find: '{ configurable: true, writable: true, value: method }',
    replace: '{ configurable: true, writable: true, enumerable: true, value: method }',
    tests: ['test/instrument/sequence.test.ts', 'test/instrument/readable-stream.test.ts'],
  },
  {
    title: 'an emitter is changed by every call that hands it out',
    file: emitter,
    find: '  if (!waiting.has(emitter)) {',
    replace: '  if (emitter !== undefined) {',
    tests: ['test/instrument/sequence.test.ts'],
  },
  {
    title: 'a stream is changed by every call that hands it out',
    file: 'src/instrument/sequence.ts',
    find: 'if (known !== undefined) return known.add(plan, reading);',
    replace: 'if (known === null) return false;',
    tests: ['test/instrument/sequence.test.ts'],
  },
];
