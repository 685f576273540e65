// Records generated values with the package of a folder: node value-worker.mjs <folder> <seed> <first> <count> [--show].
// Writes eight bytes of hash for each value; with `--show` a line of JSON, and <first> is a list of indexes.
import { createHash } from 'node:crypto';
import { writeSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { generatedValue } from './generated-values.mjs';

const [folder, seed, first, count, show] = process.argv.slice(2);
const load = (entry) => import(pathToFileURL(join(resolve(folder), 'dist', entry)).href);
const { configure, redact, secretPatterns, startRun, traceable } = await load('index.js');
const { recordRuns } = await load('testing.js');
configure({ tracing: false, log: 'silent' });

/** The settings under which values are recorded, by turns. */
const recorders = [
  {},
  {
    redact: redact({ paths: ['inputs.v.a', 'outputs.**.name', 'metadata.*.items[*]', '**.email'], keys: ['content'] }),
  },
  {
    redact: redact({
      patterns: [...secretPatterns, /\d{3,}/g, /ipsum\s*/i],
      replace: (found, path) => `<${path}:${found.length}>`,
    }),
  },
  { limits: { payloadDepth: 4, payloadWidth: 8, payloadNodes: 60, payloadBytes: 400, attachmentBytes: 300 } },
  { redact: redact({ keys: false }), limits: { payloadBytes: 5_000, payloadWidth: 50 } },
].map((options) => recordRuns(options));

if (show === undefined) {
  const hashes = Buffer.alloc(8 * Number(count));
  for (let at = 0; at < Number(count); at++) {
    createHash('sha1')
      .update(await recorded(Number(first) + at))
      .digest()
      .copy(hashes, at * 8, 0, 8);
  }
  for (let at = 0; at < hashes.length; ) at += writeSync(1, hashes, at);
} else for (const index of JSON.parse(first)) writeSync(1, `${await recorded(index)}\n`);

/** JSON text of what is recorded of a value as input, output and metadata, and of each third also as chunk, event and error. */
async function recorded(index) {
  const recorder = recorders[index % recorders.length];
  const { exporter } = recorder;
  const value = generatedValue(Number(seed), index);
  startRun({ name: 'value', exporter, inputs: { v: value }, metadata: { v: value } }).end(value);
  if (index % 3 === 0) {
    const failed = startRun({ name: 'failed', exporter });
    failed.event('event', { v: value });
    failed.fail(value);
    for (const _ of traceable(chunks, { name: 'chunks', exporter })(value)) break;
  }
  const records = await Promise.all(recorder.runs.map(shown));
  recorder.clear();
  return JSON.stringify(Object.fromEntries(records));
}

function* chunks(value) {
  yield value;
}

async function shown({ name, inputs, outputs, extra, events, error, attachments = [] }) {
  const shownEvents = events?.map((event) => ({ ...event, time: undefined }));
  const hashes = await Promise.all(attachments.map(hashed));
  // The frames of a stack are those of the build.
  const text = error?.replace(/(?:\n\s+at .*)+/g, ' <frames>');
  return [name, { inputs, outputs, metadata: extra?.metadata, events: shownEvents, error: text, attachments: hashes }];
}

async function hashed({ name, mimeType, bytes }) {
  const content = bytes instanceof Blob ? new Uint8Array(await bytes.arrayBuffer()) : bytes;
  return [name, mimeType, createHash('sha1').update(content).digest('base64')];
}
