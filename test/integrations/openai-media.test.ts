import { describe, expect, test } from 'vitest';
import { tracedClient } from './local-openai.ts';

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
