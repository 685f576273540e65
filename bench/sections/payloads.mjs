/** The payloads for the serialization table. Each kind has several values, like in a program. */

const PROSE = [
  'A span is opened when work begins and closed when it ends; what happens in between belongs to it.',
  'The collector keeps "slow" requests for a week and all others for a day, unless a rule says otherwise.',
  'When the queue is full the oldest batch is written to disk, and a line in the log tells how many were kept.',
  'Readers who come from other systems will miss the global registry: there is none, and there need not be.',
]
  .join('\n')
  .repeat(10);

/** The same text with characters beyond Latin-1. */
const TYPESET = PROSE.replaceAll(';', ' –').replaceAll('"', '”');

/** A conversation of 8 KB: short questions, longer answers, a URL, and a tool call whose arguments are JSON text. */
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
    {
      role: 'tool',
      tool_call_id: id,
      content: `https://docs.example.com/guide/queues?page=${seed}#limits\n${piece(seed * 3, 740)}`,
    },
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

/** A thousand small objects of four shapes, like the rows of a search. */
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

export const PAYLOADS = [
  { name: 'chat of 8 KB', values: valuesOf(chat, 50) },
  { name: 'many small values', values: valuesOf(nodeHeavy, 3) },
  { name: 'deep', values: valuesOf(deep, 50) },
  { name: 'text beyond Latin-1', values: valuesOf(typesetChat, 50) },
];

function valuesOf(make, count) {
  return Array.from({ length: count }, (_, seed) => make(seed));
}

/** Returns flat text, because the first reader of a slice or a concatenation would pay for joining it. */
function pieceOf(prose, seed, characters) {
  const start = seed % (prose.length - characters);
  return Buffer.from(prose.slice(start, start + characters)).toString();
}
