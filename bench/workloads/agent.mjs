/**
 * An agent's turn: three calls (`answer` calls `retrieve`, then `complete`) with 8 KB of inputs and outputs. Every text
 * contains its turn's number, so that a driver cannot reuse an earlier turn's text. The calls also build the texts in
 * the untraced program.
 */
import { piece } from './prose.mjs';

const MODEL = 'example-model-large';
const DOCUMENTS = 5;
const DOCUMENT_CHARS = 445;
const ANSWER_CHARS = 1_120;

export const agent = { runsPerTurn: 3, make };

/** The inner calls await once, because an index's or a model's answer arrives in a later microtask at the earliest. */
function make(wrap) {
  const retrieve = wrap(
    async ({ query }) => {
      await undefined;
      return { documents: documentsFor(numberOf(query)) };
    },
    'retrieve',
    'retriever',
  );
  const complete = wrap(
    async ({ messages }) => {
      await undefined;
      return completionFor(numberOf(messages[1].content));
    },
    'complete',
    'llm',
  );
  const answer = wrap(
    async ({ question }) => {
      const { documents } = await retrieve({ query: question });
      const completion = await complete({ model: MODEL, temperature: 0.2, messages: messagesFor(question, documents) });
      return { answer: completion.content, sources: documents.map(({ id }) => id) };
    },
    'answer',
    'chain',
  );
  return (turn) => answer({ question: `#${turn} What happens to a batch that is refused? ${piece(turn * 3, 160)}` });
}

/** Returns the turn's number at the start of a text. */
function numberOf(text) {
  return Number(text.slice(1, text.indexOf(' ')));
}

function documentsFor(turn) {
  const documents = [];
  for (let rank = 0; rank < DOCUMENTS; rank++) {
    documents.push({
      id: `doc-${turn}-${rank}`,
      score: 1 / (rank + 1),
      content: `#${turn}/${rank} ${piece(turn * 7 + rank * 131, DOCUMENT_CHARS)}`,
    });
  }
  return documents;
}

function messagesFor(question, documents) {
  const context = documents.map(({ content }) => content).join('\n---\n');
  return [
    { role: 'system', content: `Answer from these notes alone and say so when they do not help.\n${context}` },
    { role: 'user', content: question },
  ];
}

function completionFor(turn) {
  return {
    role: 'assistant',
    content: `#${turn} ${piece(turn * 13, ANSWER_CHARS)}`,
    finish_reason: 'stop',
    usage: { input_tokens: 700 + (turn % 50), output_tokens: 240 },
  };
}
