import type Anthropic from '@anthropic-ai/sdk';
import { describe, expect, test } from 'vitest';
import { wrapAnthropic } from '../../src/integrations/anthropic/client.ts';
import { record } from '../instrument/recorder.ts';
import { ask, localModel, makeClient } from './anthropic-client.ts';

const model = localModel();

const PIXELS = Buffer.alloc(3_000, 7);
const PAGES = Buffer.alloc(2_000, 8);

function image(bytes: Buffer): Anthropic.ImageBlockParam {
  return { type: 'image', source: { type: 'base64', media_type: 'image/png', data: bytes.toString('base64') } };
}

function pdf(bytes: Buffer): Anthropic.DocumentBlockParam {
  const source = { type: 'base64' as const, media_type: 'application/pdf' as const, data: bytes.toString('base64') };
  return { type: 'document', title: 'pages', source };
}

const text = (words: string): Anthropic.TextBlockParam => ({ type: 'text', text: words });

describe('images and documents of a question', () => {
  test('travel beside the run, and are sent as they are', async () => {
    const recorder = record();
    const question = ask('', {
      messages: [
        { role: 'user', content: [text('What is it?'), image(PIXELS)] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'scan', input: {} }] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [image(PIXELS), pdf(PAGES)] }],
        },
      ],
    });
    const before = structuredClone(question);
    await wrapAnthropic(makeClient(model())).messages.create(question);
    expect(question).toEqual(before);
    expect(model().requests.at(-1)?.body).toEqual(before);
    const [run] = recorder.runs;
    const png = { type: 'base64', media_type: 'image/png', data: '[Attachment inputs_1: image/png, 3000 bytes]' };
    const pages = {
      type: 'base64',
      media_type: 'application/pdf',
      data: '[Attachment inputs_2: application/pdf, 2000 bytes]',
    };
    expect(run?.inputs).toEqual({
      messages: [
        { role: 'user', content: [text('What is it?'), { type: 'image', source: png }] },
        question.messages[1],
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'toolu_1',
              content: [
                { type: 'image', source: png },
                { type: 'document', title: 'pages', source: pages },
              ],
            },
          ],
        },
      ],
    });
    expect(run?.attachments?.map(({ name, mimeType }) => [name, mimeType])).toEqual([
      ['inputs_1', 'image/png'],
      ['inputs_2', 'application/pdf'],
    ]);
    expect(Buffer.compare(run?.attachments?.[0]?.bytes as Uint8Array, PIXELS)).toBe(0);
  });
});
