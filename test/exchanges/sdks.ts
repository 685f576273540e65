// The methods of the SDKs that send the requests of the table.
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { wrapAnthropic } from '#src/integrations/anthropic/client.ts';
import { wrapOpenAI } from '#src/integrations/openai/client.ts';
import { chunksOf } from '../integrations/local-openai.ts';
import type { Exchange } from './exchange.ts';

interface Clients {
  readonly openai: OpenAI;
  readonly anthropic: Anthropic;
}
type Method = readonly [path: string, call: (clients: Clients, body: never) => PromiseLike<unknown>];

/** The methods by the names of their runs. The path follows the base URL of the client. */
const methods: Readonly<Record<string, Method>> = {
  'openai.chat.completions': ['/chat/completions', ({ openai }, body) => openai.chat.completions.create(body)],
  'openai.responses': ['/responses', ({ openai }, body) => openai.responses.create(body)],
  'openai.responses.compact': ['/responses/compact', ({ openai }, body) => openai.responses.compact(body)],
  'openai.completions': ['/completions', ({ openai }, body) => openai.completions.create(body)],
  'openai.embeddings': ['/embeddings', ({ openai }, body) => openai.embeddings.create(body)],
  'openai.images.generate': ['/images/generations', ({ openai }, body) => openai.images.generate(body)],
  'openai.images.edit': ['/images/edits', ({ openai }, body) => openai.images.edit(body)],
  'openai.images.createVariation': ['/images/variations', ({ openai }, body) => openai.images.createVariation(body)],
  'openai.audio.transcriptions': [
    '/audio/transcriptions',
    ({ openai }, body) => openai.audio.transcriptions.create(body),
  ],
  'openai.audio.translations': ['/audio/translations', ({ openai }, body) => openai.audio.translations.create(body)],
  'openai.audio.speech': ['/audio/speech', ({ openai }, body) => openai.audio.speech.create(body)],
  'anthropic.messages': ['/v1/messages', ({ anthropic }, body) => anthropic.messages.create(body)],
};

export const hasSdk = ({ name, url }: Pick<Exchange, 'name' | 'url'>): boolean =>
  url.endsWith(methods[name]?.[0] ?? '?');

export async function callSdk(
  { name, url, body }: Exchange,
  isStreamed: boolean,
  isWrapped: boolean,
  Package: typeof OpenAI = OpenAI,
): Promise<void> {
  const [path, call] = methods[name] as Method;
  const options = { apiKey: 'a-secret', maxRetries: 0, baseURL: url.slice(0, -path.length) };
  const [openai, anthropic] = [new Package(options), new Anthropic(options)];
  const clients = isWrapped
    ? { openai: wrapOpenAI(openai), anthropic: wrapAnthropic(anthropic) }
    : { openai, anthropic };
  const answer = await call(clients, { ...body, ...(isStreamed && { stream: true }) } as never);
  if (answer instanceof Response) await answer.arrayBuffer();
  if (isStreamed) await chunksOf(answer as AsyncIterable<unknown>);
}
