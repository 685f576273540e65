// Ways in which a program meets the result of a function, bare or traced: `node ends.mjs bare|traced <way>`.
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
  'a rejection that nobody handles': () => {
    wrap(fails)();
  },
  'a rejection that is counted': () => {
    countUnhandled();
    wrap(fails)();
  },
  'a rejection that is handled late': () => {
    countUnhandled();
    const promise = wrap(fails)();
    setImmediate(() => promise.catch(() => console.log('caught')));
  },
  'a rejection that is handled at once': () => {
    countUnhandled();
    wrap(fails)().catch((error) => console.log('caught', error.message));
  },
  'a rejection with something that is no error': () => {
    wrap(() => Promise.reject('just text'))();
  },
  'a rejection of a subclass that nobody handles': () => {
    wrap(() => Later.reject(new TypeError('lost')))();
  },
  'a rejection of a subclass with one callback': () => {
    countUnhandled();
    wrap(() => Later.reject(new TypeError('lost')))().then(() => console.log('never'));
  },
  'a step of an asynchronous generator that nobody handles': () => {
    countUnhandled();
    const generator = wrap(async function* () {
      yield 1;
      throw new TypeError('lost');
    })();
    generator.next().then(() => generator.next());
  },
  'a web stream that fails while nobody handles the error': () => {
    const pull = (controller) => controller.error(new TypeError('torn'));
    wrap(() => new ReadableStream({ pull }, { highWaterMark: 0 }))()
      .getReader()
      .read();
  },
  'a Node stream that fails while nobody handles the error': () => {
    wrap(() => new Readable({ read() {} }))().destroy(new TypeError('torn'));
  },
  'an error that is thrown': () => {
    wrap(() => {
      throw new RangeError('thrown');
    })();
  },
  'an error that is thrown to nobody after a while': () => {
    wrap(() => {
      setImmediate(() => {
        throw new RangeError('thrown');
      });
    })();
  },
  'an error that is thrown inside of a timer': () => {
    const throws = wrap(() => {
      throw new RangeError('thrown');
    });
    setTimeout(() => throws());
  },
  'an error that is kept and rejected with later': () => {
    const kept = wrap(fails)().catch((error) => error);
    setTimeout(async () => Promise.reject(await kept));
  },
  'an error whose causes are told': () => {
    wrap(async () => {
      throw new Error('outer', { cause });
    })();
  },
  'something thrown that is no error': () => {
    wrap(() => {
      throw 'just text';
    })();
  },
  'an exit inside': () => {
    wrap(() => process.exit(7))();
  },
  'an exit code that is set inside': () => {
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
