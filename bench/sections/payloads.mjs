/**
 * The payloads that serialization is measured with. Each kind comes in several pieces, so that nothing is learnt of one
 * alone; `isJson` says whether `JSON.stringify` gives the same text.
 */

const PROSE = [
  'A span is opened when work begins and closed when it ends; what happens in between belongs to it.',
  'The collector keeps "slow" requests for a week and all others for a day, unless a rule says otherwise.',
  'When the queue is full the oldest batch is written to disk, and a line in the log tells how many were kept.',
  'Readers who come from other systems will miss the global registry: there is none, and there need not be.',
]
  .join('\n')
  .repeat(10);

/** The same with characters that do not fit in a byte, as models like to write them. */
const TYPESET = PROSE.replaceAll(';', ' –').replaceAll('"', '”');

/** A conversation of 8 KB over some notes: short questions, longer answers, one call of a tool and its result. */
function chat(seed, prose = PROSE) {
  const piece = (start, characters) => pieceOf(prose, start, characters);
  const messages = [{ role: 'system', content: piece(seed, 2_000) }];
  for (let turn = 0; turn < 4; turn++) {
    messages.push({ role: 'user', content: piece(turn * 37 + seed, 160) });
    messages.push({ role: 'assistant', content: piece(turn * 131 + seed, 900) });
  }
  const query = JSON.stringify({ query: piece(seed, 40), limit: 5 });
  const id = `call_${seed}`;
  messages.push(
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'function', function: { name: 'search', arguments: query } }],
    },
    { role: 'tool', tool_call_id: id, content: piece(seed * 3, 800) },
  );
  const parameters = {
    type: 'object',
    properties: { query: { type: 'string' }, limit: { type: 'integer' } },
    required: ['query'],
  };
  const tool = { type: 'function', function: { name: 'search', description: piece(seed, 120), parameters } };
  return { model: 'example-model-large', temperature: 0.2, max_tokens: 1_024, stream: true, messages, tools: [tool] };
}

function typesetChat(seed) {
  return chat(seed, TYPESET);
}

/** A thousand small objects of four shapes, as a search or a table gives them. */
function nodeHeavy(seed) {
  const shapes = [
    (at) => ({ id: `doc-${seed}-${at}`, score: at / 7, kind: 'page', count: at, ok: true }),
    (at) => ({ role: 'user', content: `hello ${at}`, n: at }),
    (at) => ({ type: 'tool_call', index: at, name: 'search', args: { q: `x${at}`, limit: 5 } }),
    (at) => ({ x: at, y: at * 2, label: null, tags: ['a', 'b'] }),
  ];
  return { rows: Array.from({ length: 1_000 }, (_, at) => shapes[at % shapes.length](at)) };
}

function deep(seed) {
  let value = { leaf: seed };
  for (let level = 0; level < 30; level++) {
    value = level % 2 === 0 ? { children: [value], tag: 't' } : { level, name: `n${level}`, child: value };
  }
  return value;
}

function mapHeavy(seed) {
  const map = new Map();
  for (let at = 0; at < 200; at++)
    map.set(
      `key${at}`,
      new Map([
        ['n', at + seed],
        ['tags', new Set(['a', `b${at}`])],
      ]),
    );
  return { map };
}

function circular(seed) {
  const root = { name: `root ${seed}`, children: [] };
  for (let at = 0; at < 200; at++) root.children.push({ name: `child ${at}`, at, parent: root });
  return root;
}

export const PAYLOADS = [
  ['chat, 8 KB', chat, 50, true],
  ['chat, typeset', typesetChat, 50, true],
  ['node-heavy', nodeHeavy, 3, true],
  ['deep', deep, 50, true],
  ['Map-heavy', mapHeavy, 5, false],
  ['circular', circular, 5, false],
].map(([name, make, count, isJson]) => ({
  name,
  isJson,
  values: Array.from({ length: count }, (_, seed) => make(seed)),
}));

/** Flat text: a slice or a sum of strings would be put together by whoever reads it first. */
function pieceOf(prose, seed, characters) {
  const start = seed % (prose.length - characters);
  return Buffer.from(prose.slice(start, start + characters)).toString();
}
