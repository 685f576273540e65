/**
 * One turn of an agent, which is three calls (`answer` calls `retrieve`, then `complete`) whose inputs and outputs come to
 * 8 KB of JSON. Every text carries the number of its turn, so nothing that a driver might keep from one turn serves the
 * next. The texts are put together inside of the calls, by the untraced program like by the others.
 */
import { piece } from './prose.mjs';

const MODEL = 'example-model-large';
const DOCUMENTS = 5;
const DOCUMENT_CHARS = 445;
const ANSWER_CHARS = 1_120;

export const agent = { runsPerTurn: 3, make };

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

function make(wrap) {
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
  const tracedAnswer = wrap(answer, 'answer', 'chain');
  return (turn) =>
    tracedAnswer({ question: `#${turn} What happens to a batch that is refused? ${piece(turn * 3, 160)}` });
}
