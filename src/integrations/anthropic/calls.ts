import { type Fields, listOf, textOf } from '../../payload/fields.ts';
import { anthropicUsage } from '../../services/anthropic.ts';
import { type CallReader, describeRequest, objectReader, type RequestFields } from '../call-reader.ts';
import { withDataUris } from '../media.ts';
import { messageFold } from './message-fold.ts';

const message: RequestFields = { modelType: 'chat', inputKeys: ['messages', 'system'], inputs: messageInputs };

/** Reads requests to Anthropic's Messages API. Other Anthropic requests are not recorded. */
export const messageCall: CallReader = {
  name: 'anthropic.messages',
  runType: 'llm',
  isWhole: true,
  describe: (body, provider) => describeRequest(body, provider, message),
  ...objectReader(
    ['content'],
    (answer) => ({
      outputs: answer,
      model: textOf(answer.model),
      responseId: textOf(answer.id),
      usage: anthropicUsage(answer.usage),
    }),
    messageFold,
  ),
};

function messageInputs({ messages, system }: Fields): Fields {
  const given = withDataUris(messages);
  return { messages: system === undefined ? given : [{ role: 'system', content: system }, ...listOf(given)] };
}
