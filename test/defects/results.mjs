// Mistakes in following results to their end, each of which has to make a test fail.
const _promise = 'src/instrument/promise.ts';
const _iterator = 'src/instrument/iterator.ts';
const _consumption = 'src/instrument/consumption.ts';
const _stream = 'src/instrument/readable-stream.ts';
const _emitter = 'src/instrument/emitter.ts';

export const defects = [
  {
    title: 'callers who are handed the same promise get one each',
    file: 'src/instrument/promise.ts',
    find: '    derivatives.set(promise, derived);\n',
    replace: '',
    tests: ['test/instrument/outcome.test.ts'],
  },
];
