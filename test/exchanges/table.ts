import { anthropic, messages } from './anthropic.ts';
import { bedrock, converse } from './bedrock.ts';
import { cohere, cohereChat } from './cohere.ts';
import { compatible } from './compatible.ts';
import { type Exchange, type Format, SAID } from './exchange.ts';
import { firstInteractions, gemini, generateContent, interactions } from './gemini.ts';
import { media } from './media.ts';
import { conversations, mistral, ofMistral } from './mistral.ts';
import { ollama, ollamaChat } from './ollama.ts';
import { chat, openai, responses } from './openai.ts';

export const formats: Readonly<Record<string, Format>> = {
  'OpenAI chat': chat,
  'OpenAI responses': responses,
  Anthropic: messages,
  Gemini: generateContent,
  'Gemini interactions': interactions,
  'Gemini interactions of the first version': firstInteractions,
  'Mistral conversations': conversations,
  Cohere: cohereChat,
  Mistral: mistral,
  Ollama: ollamaChat,
  Bedrock: converse,
};

const ofFetch = [...openai, ...compatible, ...media, ...anthropic, ...gemini, ...cohere, ...ofMistral, ...ollama];
export const exchanges: readonly Exchange[] = [...ofFetch, ...bedrock];

/** The exchanges of services that are called with `fetch`, at once and streamed. */
export const rows = ofFetch.flatMap((exchange) => {
  const { title, response, events } = exchange;
  const atOnce = response === undefined ? [] : [{ title, exchange, isStreamed: false }];
  return events === undefined ? atOnce : [...atOnce, { title: `${title}, streamed,`, exchange, isStreamed: true }];
});
/** The rows with the answer of the table in a format of OpenAI. */
export const answeredByOpenAI = rows.filter(
  ({ exchange }) => exchange.said === SAID && /^openai\./.test(exchange.name),
);
/** The exchanges whose usage frameworks pass on. */
export const counted = exchanges.filter(({ counts, response, runType }) => counts && response && !runType);
