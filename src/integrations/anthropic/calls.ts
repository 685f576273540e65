import { anthropicUsage } from '../../services/anthropic.ts';
import { type CallReader, callReader, objectReader, withSystem } from '../call-reader.ts';
import { withDataUris } from '../media.ts';
import { messageFold } from './message-fold.ts';

/** Reads requests to Anthropic's Messages API. Other Anthropic requests are not recorded. */
export const messageCall: CallReader = callReader(
  'anthropic.messages',
  {
    modelType: 'chat',
    inputKeys: ['messages', 'system'],
    inputs: ({ messages, system }) => ({ messages: withSystem(system, withDataUris(messages)) }),
  },
  { ...objectReader(['content'], ({ usage }) => ({ usage: anthropicUsage(usage) }), messageFold), isWhole: true },
);
