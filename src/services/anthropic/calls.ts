import { wholeReader } from '../answer.ts';
import { type CallReader, callReader } from '../call-reader.ts';
import { withDataUris } from '../media.ts';
import { withSystem } from '../request.ts';
import { messageFold } from './stream.ts';
import { anthropicUsage } from './usage.ts';

/** Reads requests to Anthropic's Messages API. Other Anthropic requests are not recorded. */
export const messageCall: CallReader = callReader(
  'anthropic.messages',
  {
    modelType: 'chat',
    inputKeys: ['messages', 'system'],
    inputs: ({ messages, system }) => ({ messages: withSystem(system, withDataUris(messages)) }),
  },
  wholeReader(['content'], ({ usage }) => ({ usage: anthropicUsage(usage) }), messageFold),
);
