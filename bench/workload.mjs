/**
 * The work that every driver does: one turn of an agent, which is three calls (`answer` calls `retrieve`, then
 * `complete`) whose inputs and outputs come to 8 KB of JSON. Every text carries the number of its turn, so nothing that
 * a driver might keep from one turn serves the next. The texts are put together inside of the calls, by the untraced
 * program like by the others.
 */

/** Calls per turn, each of which is a run where they are traced. */
export const RUNS_PER_TURN = 3;

/** The loop gives the event loop its turn after so many turns, as a program does that waits for its clients. */
const TURNS_PER_YIELD = 4;

const MODEL = 'example-model-large';
const DOCUMENTS = 5;
const DOCUMENT_CHARS = 445;
const ANSWER_CHARS = 1_120;

/** Plain English in ASCII with line breaks and quotation marks, long enough to cut differing pieces from. */
const PROSE = [
  'A span is opened when work begins and closed when it ends; what happens in between belongs to it.',
  'The collector keeps "slow" requests for a week and all others for a day, unless a rule says otherwise.',
  'When the queue is full the oldest batch is written to disk, and a line in the log tells how many were kept.',
  'Readers who come from other systems will miss the global registry: there is none, and there need not be.',
  'Set the limit low at first. Raise it once the dashboards show that memory stays flat through the night.',
  'Every retry waits twice as long as the one before, up to half a minute, with some jitter on top of it.',
  'The "default" project receives whatever names no other; it can be renamed but it cannot be removed.',
  'Clocks of two machines never agree: sort by the order of events where you can and by time where you must.',
]
  .join('\n')
  .repeat(4);

async function retrieve({ query }) {
  const turn = Number(query.slice(1, query.indexOf(' ')));
  // The answer of an index would come in a later tick of the promise queue.
  await undefined;
  const documents = [];
  for (let rank = 0; rank < DOCUMENTS; rank++) {
    documents.push({
      id: `doc-${turn}-${rank}`,
      score: 1 / (rank + 1),
      content: `#${turn}/${rank} ${piece(turn * 7 + rank * 131, DOCUMENT_CHARS)}`,
    });
  }
  return { documents };
}

async function complete({ messages }) {
  const question = messages[1].content;
  const turn = Number(question.slice(1, question.indexOf(' ')));
  await undefined;
  return {
    role: 'assistant',
    content: `#${turn} ${piece(turn * 13, ANSWER_CHARS)}`,
    finish_reason: 'stop',
    usage: { input_tokens: 700 + (turn % 50), output_tokens: 240 },
  };
}

/**
 * The three functions of a turn, each passed through `wrap(fn, name, runType)`; the answer is the outermost. A driver
 * traces by what it wraps them in.
 */
export function makeAgent(wrap) {
  const tracedRetrieve = wrap(retrieve, 'retrieve', 'retriever');
  const tracedComplete = wrap(complete, 'complete', 'llm');
  async function answer({ question }) {
    const { documents } = await tracedRetrieve({ query: question });
    const context = documents.map(({ content }) => content).join('\n---\n');
    const completion = await tracedComplete({
      model: MODEL,
      temperature: 0.2,
      messages: [
        { role: 'system', content: `Answer from these notes alone and say so when they do not help.\n${context}` },
        { role: 'user', content: question },
      ],
    });
    return { answer: completion.content, sources: documents.map(({ id }) => id) };
  }
  return wrap(answer, 'answer', 'chain');
}

/** Turns one after the other. `turnMs`, where it is given, takes the time of each; the yields lie outside of it. */
export async function runTurns(answer, first, count, turnMs) {
  for (let at = 0; at < count; at++) {
    const turn = first + at;
    const startMs = performance.now();
    await answer({ question: `#${turn} What happens to a batch that is refused? ${piece(turn * 3, 160)}` });
    if (turnMs !== undefined) turnMs[at] = performance.now() - startMs;
    if (turn % TURNS_PER_YIELD === 0) await new Promise(setImmediate);
  }
}

function piece(seed, chars) {
  const start = seed % (PROSE.length - chars);
  return PROSE.slice(start, start + chars);
}
