// Ways in which a program consumes what comes in pieces, bare or traced: `node sequences.mjs bare|traced <way>`. It prints
// each effect as it happens, those of the source too, so that laziness and back-pressure show.
import { writeFileSync } from 'node:fs';
import { PassThrough, Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';

const [mode, way] = process.argv.slice(2);
const { traceable } = await import('runspan');
const { recordRuns } = await import('runspan/testing');

const recorder = recordRuns();
process.on('exit', () => writeFileSync(process.env.RUNS_FILE, JSON.stringify(recorder.runs)));
process.on('warning', (warning) => console.log('warning', warning.name, warning.message));

const wrap = mode === 'traced' ? traceable : (fn) => fn;
const log = (...effects) => console.log(...effects);
const turn = () => new Promise(setImmediate);

/** Says what is asked of it. */
function webStream({ chunks = ['a', 'b', 'c'], error, type } = {}) {
  let at = 0;
  const source = {
    pull(controller) {
      log('pull', at);
      if (at < chunks.length)
        controller.enqueue(type === 'bytes' ? new TextEncoder().encode(chunks[at++]) : chunks[at++]);
      else if (error !== undefined) controller.error(error);
      else {
        controller.close();
        controller.byobRequest?.respond(0);
      }
    },
    cancel: (reason) => log('cancelled', reason),
  };
  return new ReadableStream(type === 'bytes' ? { ...source, type } : source, { highWaterMark: 0 });
}

function nodeStream({ chunks = ['a', 'b', 'c'], error, ...options } = {}) {
  let at = 0;
  const stream = new Readable({
    encoding: 'utf8',
    highWaterMark: 1,
    read() {
      log('read', at);
      if (at < chunks.length) this.push(chunks[at++]);
      else if (error !== undefined) this.destroy(error);
      else this.push(null);
    },
    ...options,
  });
  return stream;
}

/** A stream with a single chunk that never ends. */
const endless = () => {
  let hasCome = false;
  const read = function () {
    log('read', hasCome);
    if (!hasCome) this.push('a');
    hasCome = true;
  };
  return nodeStream({ read });
};

/** Iterates anew each time, as a page of results does. */
const pages = () => ({
  async *[Symbol.asyncIterator]() {
    try {
      log('asked');
      yield 1;
      yield 2;
    } finally {
      log('left');
    }
  },
});

async function readAll(iterable) {
  for await (const chunk of iterable) log('chunk', String(chunk));
  log('done');
}

const outcome = (promise) =>
  promise.then(
    (value) => log('ok', value),
    (error) => log('failed', error.name, error.message),
  );

const ways = {
  'a web stream that nobody reads': async () => {
    const stream = wrap(() => webStream())();
    await turn();
    log(
      stream instanceof ReadableStream,
      stream.locked,
      Reflect.ownKeys(stream).filter((key) => Object.keys(stream).includes(key)),
    );
  },
  'a web stream that is left and read on': async () => {
    const stream = wrap(() => webStream())();
    for await (const chunk of stream.values({ preventCancel: true })) {
      log('chunk', chunk);
      break;
    }
    log(stream.locked);
    await readAll(stream);
  },
  'a web stream of bytes, into the memory of its reader': async () => {
    const reader = wrap(() => webStream({ type: 'bytes', chunks: ['ab', 'c'] }))().getReader({ mode: 'byob' });
    log(reader instanceof ReadableStreamBYOBReader);
    let memory = new Uint8Array(4);
    for (let step = 0; step < 2; step++) {
      const { value } = await reader.read(memory);
      log('read', String(value), memory.byteLength);
      memory = new Uint8Array(value.buffer);
    }
    await outcome(reader.read(new Uint8Array(0)));
    await reader.cancel('enough');
  },
  'a web stream in two branches, both cancelled': async () => {
    const [left, right] = wrap(() => webStream())().tee();
    const reader = left.getReader();
    log(await reader.read());
    await Promise.all([reader.cancel('left'), right.cancel('right')]);
  },
  'a web stream that fails, read by nobody who handles it': () => {
    const reader = wrap(() => webStream({ chunks: [], error: new TypeError('torn') }))().getReader();
    reader.read();
  },
  'a web stream as the body of a response': async () => {
    const response = new Response(wrap(() => webStream({ type: 'bytes' }))());
    log(await response.text(), response.bodyUsed);
  },
  'a web stream as a Node stream': async () => log(await text(Readable.fromWeb(wrap(() => webStream())()))),
  'a web stream as a Node stream that fails': () =>
    outcome(readAll(Readable.fromWeb(wrap(() => webStream({ chunks: [], error: new TypeError('torn') }))()))),
  'a web stream as a body that is cloned': async () => {
    const stream = wrap(() => webStream({ type: 'bytes' }))();
    const response = new Response(stream);
    log(response.body === stream, response.bodyUsed);
    log(await response.clone().text(), await response.text(), response.bodyUsed);
  },
  'a web stream handed to another thread': async () => {
    const stream = wrap(() => webStream())();
    log(await text(structuredClone(stream, { transfer: [stream] })), stream.locked);
  },
  'a web stream that is locked': async () => {
    const stream = wrap(() => webStream())();
    stream.getReader();
    for (const method of ['getReader', 'tee', 'values']) {
      try {
        stream[method]();
      } catch (error) {
        log(method, error.name, error.code);
      }
    }
    await outcome(stream.cancel());
    await outcome(stream.pipeTo(new WritableStream()));
  },
  'a Node stream that nobody reads': async () => {
    const stream = wrap(() => nodeStream())();
    await turn();
    log(
      stream.readableFlowing,
      stream.eventNames(),
      stream.listenerCount('data'),
      Object.keys(stream).includes('emit'),
    );
  },
  'a Node stream iterated to a break': async () => {
    const stream = wrap(() => nodeStream())();
    stream.on('close', () => log('close'));
    for await (const chunk of stream) {
      log('chunk', chunk);
      break;
    }
    log(stream.destroyed);
  },
  'a Node stream by events': async () => {
    const stream = wrap(() => nodeStream())();
    stream.on('data', (chunk) => log('data', chunk));
    await new Promise((resolve) => stream.on('end', resolve));
    log(stream.readableEnded);
  },
  'a Node stream read when it is readable': async () => {
    const stream = wrap(() => nodeStream())();
    stream.on('readable', () => {
      for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) log('took', chunk);
    });
    await new Promise((resolve) => stream.on('close', resolve));
  },
  'a Node stream in a pipeline': async () => {
    const write = (chunk, _, done) => {
      log('write', String(chunk));
      done();
    };
    const sink = new Writable({ write });
    await outcome(pipeline(wrap(() => nodeStream())(), new PassThrough(), sink));
  },
  'a Node stream in a pipeline that is aborted': async () => {
    const controller = new AbortController();
    const write = (chunk) => {
      log('write', String(chunk));
      controller.abort();
    };
    const sink = new Writable({ write });
    // Node 26 takes one chunk more from a source that has one.
    await outcome(pipeline(wrap(() => endless())(), sink, { signal: controller.signal }));
  },
  'a Node stream as a web stream': () =>
    readAll(Readable.toWeb(wrap(() => nodeStream({ encoding: undefined, objectMode: true }))())),
  'a Node stream that is destroyed': async () => {
    const stream = wrap(() => nodeStream())();
    stream.on('close', () => log('close'));
    stream.destroy();
    await turn();
  },
  'a Node stream that fails': () =>
    outcome(readAll(wrap(() => nodeStream({ chunks: ['a'], error: new TypeError('torn') }))())),
  'a Node stream whose error nobody hears': () => {
    wrap(() => nodeStream())().destroy(new TypeError('torn'));
  },
  'a Node stream with many listeners': () => {
    const stream = wrap(() => nodeStream())();
    for (let n = 0; n < 11; n++) stream.on('close', () => {});
    for (let n = 0; n < 10; n++) stream.on('end', () => {});
    stream.destroy();
  },
  'an async iterable': async () => {
    const iterable = wrap(pages)();
    log(Object.keys(iterable), typeof iterable.next);
    await readAll(iterable);
    await readAll(iterable);
  },
  'an async iterable that nobody reads': async () => {
    wrap(pages)();
    await turn();
  },
  collections: () => {
    const values = [[1], new Map([[1, 2]]), new Set([3]), new Uint8Array(2), new URLSearchParams('a=b')];
    for (const value of values) log(wrap(() => value)() === value, Reflect.ownKeys(value), [...value]);
  },
  'an async iterable as an argument': async () => {
    const [pagesGiven, web, node] = [pages(), webStream(), nodeStream()];
    const reads = wrap(async (a, b, c) => {
      log(a === pagesGiven, b === web, c === node, b.locked, c.readableFlowing);
      for (const each of [a, b, c]) await readAll(each);
    });
    await reads(pagesGiven, web, node);
  },
};

await ways[way]();
log('end of the program');
