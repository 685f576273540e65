import { describe, expect, test } from 'vitest';
import { recordedMessages } from '../../src/integrations/openai-media.ts';
import { tea, tracedClient } from './local-openai.ts';

const SOUND = Buffer.alloc(3_000, 7);

const audio = (format: 'mp3' | 'wav', data = SOUND.toString('base64')) => ({
  type: 'input_audio' as const,
  input_audio: { data, format },
});
const asked = (...content: object[]) => [{ role: 'user', content }];

describe('sound in a question', () => {
  test('travels beside the run, and is sent as it is', async () => {
    const { client, model, only } = await tracedClient();
    const words = { type: 'text' as const, text: 'What is said?' };
    const question = { model: 'small', messages: [{ role: 'user' as const, content: [words, audio('wav')] }] };
    const before = structuredClone(question);
    await client.chat.completions.create(question);
    expect(question).toEqual(before);
    expect(model.requests[0]?.body).toEqual(before);
    const data = '[Attachment inputs_1: audio/wav, 3000 bytes]';
    expect(only().inputs.messages).toEqual(asked(words, { type: 'input_audio', input_audio: { data, format: 'wav' } }));
    const [attachment, ...others] = only().attachments ?? [];
    expect(others).toEqual([]);
    expect(attachment).toMatchObject({ name: 'inputs_1', mimeType: 'audio/wav' });
    expect(Buffer.compare(attachment?.bytes as Uint8Array, SOUND)).toBe(0);
  });

  test('travels beside the run of a response too', async () => {
    const { client, only } = await tracedClient();
    const input = asked(audio('mp3')) as never;
    await client.responses.create({ model: 'small', input });
    expect(only().attachments).toMatchObject([{ name: 'inputs_1', mimeType: 'audio/mpeg' }]);
  });
});

describe('recorded messages', () => {
  // "data:audio/wav;base64," has 22 characters, and of a data URI up to 1 024 stay in their payload.
  test.each([
    [1_002, false],
    [1_003, true],
  ])('have sound of %d characters as a data URI: %s', (length, isMade) => {
    const data = 'A'.repeat(length);
    const expected = isMade ? `data:audio/wav;base64,${data}` : data;
    expect(recordedMessages(asked(audio('wav', data)))).toEqual(asked(audio('wav', expected)));
  });

  test('have a marker for a picture that an earlier answer has made', () => {
    const call = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: SOUND.toString('base64') };
    expect(recordedMessages([...tea, call])).toEqual([...tea, { ...call, result: '[Image: 3000 bytes]' }]);
  });

  test.each<[string, unknown]>([
    ['text', tea],
    ['a part of another kind', asked({ type: 'input_image', image_url: 'data:image/png;base64,AAAA' })],
    ['sound without data', asked({ type: 'input_audio', input_audio: { format: 'wav' } }, { type: 'input_audio' })],
    ['a format that is none', asked({ type: 'input_audio', input_audio: { format: 'a b', data: 'A'.repeat(2_000) } })],
    ['nothing', undefined],
    ['what is no list', 'tea'],
    ['a list of nothing', [null, undefined, 3]],
  ])('are the same where they are %s', (_, messages) => {
    expect(recordedMessages(messages)).toBe(messages);
  });
});
