// Programs that end in different ways: `node ends.mjs bare|traced <way>`.
import { writeFileSync } from 'node:fs';
import { Readable } from 'node:stream';

const [mode, way] = process.argv.slice(2);
const { traceable } = await import('runspan');
const { recordRuns } = await import('runspan/testing');

const recorder = recordRuns();
process.on('exit', () => writeFileSync(process.env.RUNS_FILE, JSON.stringify(recorder.runs)));

const wrap = mode === 'traced' ? traceable : (fn) => fn;
const fails = async () => {
  throw new TypeError('lost');
};
const countUnhandled = () => {
  process.on('unhandledRejection', (error) => console.log('unhandled', error.message));
  process.on('rejectionHandled', () => console.log('handled'));
};
const cause = new AggregateError([new TypeError('one')], 'several');
class Later extends Promise {}

const ways = {
  'an unhandled rejection': () => {
    wrap(fails)();
  },
  'a rejection that is handled late': () => {
    countUnhandled();
    const promise = wrap(fails)();
    setImmediate(() => promise.catch(() => console.log('caught')));
  },
  'an unhandled rejection with text': () => {
    wrap(() => Promise.reject('just text'))();
  },
  'an unhandled rejection of a subclass': () => {
    wrap(() => Later.reject(new TypeError('lost')))();
  },
  'a rejection of a subclass with one callback': () => {
    countUnhandled();
    wrap(() => Later.reject(new TypeError('lost')))().then(() => console.log('never'));
  },
  'an unhandled step of an async generator': () => {
    countUnhandled();
    const generator = wrap(async function* () {
      yield 1;
      throw new TypeError('lost');
    })();
    generator.next().then(() => generator.next());
  },
  'an unhandled error of a web stream': () => {
    const pull = (controller) => controller.error(new TypeError('torn'));
    wrap(() => new ReadableStream({ pull }, { highWaterMark: 0 }))()
      .getReader()
      .read();
  },
  'an unhandled error of a Node stream': () => {
    wrap(() => new Readable({ read() {} }))().destroy(new TypeError('torn'));
  },
  'an uncaught error': () => {
    wrap(() => {
      throw new RangeError('thrown');
    })();
  },
  'an uncaught error in a timer': () => {
    const throws = wrap(() => {
      throw new RangeError('thrown');
    });
    setTimeout(() => throws());
  },
  'an unhandled error with causes': () => {
    wrap(async () => {
      throw new Error('outer', { cause });
    })();
  },
  'an exit in the function': () => {
    wrap(() => process.exit(7))();
  },
  'an exit code that the function sets': () => {
    wrap(async () => {
      process.exitCode = 9;
    })();
  },
  'a promise that never settles': async () => {
    await wrap(() => new Promise(() => {}))();
    console.log('never');
  },
};

ways[way]();
