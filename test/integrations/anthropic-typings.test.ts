// What TypeScript says of these calls is the test: `npm run check` compiles this file. Where a line has to be an error,
// a missing one is.
import type Anthropic from '@anthropic-ai/sdk';
import type { APIPromise } from '@anthropic-ai/sdk';
import type { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream';
import type { Stream } from '@anthropic-ai/sdk/streaming';
import { expectTypeOf, test } from 'vitest';
import { unwrapAnthropic, wrapAnthropic } from '../../src/anthropic.ts';

declare const client: Anthropic;

interface Extended extends Anthropic {
  readonly own: number;
}
declare const extended: Extended;

const question = { model: 'small', max_tokens: 1, messages: [] };

test('a wrapped client has the type of the client', () => {
  () => {
    expectTypeOf(wrapAnthropic(client)).toEqualTypeOf<Anthropic>();
    expectTypeOf(wrapAnthropic(client, { tags: ['a'] })).toEqualTypeOf<Anthropic>();
    expectTypeOf(unwrapAnthropic(client)).toEqualTypeOf<Anthropic>();
    expectTypeOf(wrapAnthropic(extended)).toEqualTypeOf<Extended>();
    expectTypeOf(wrapAnthropic({ messages: client.messages })).toEqualTypeOf<{ messages: Anthropic.Messages }>();
  };
});

test('its methods keep their overloads', () => {
  () => {
    const wrapped = wrapAnthropic(client);
    expectTypeOf(wrapped.messages.create(question)).toEqualTypeOf<APIPromise<Anthropic.Message>>();
    expectTypeOf(wrapped.messages.create({ ...question, stream: true })).toEqualTypeOf<
      APIPromise<Stream<Anthropic.RawMessageStreamEvent>>
    >();
    expectTypeOf(wrapped.messages.stream(question)).toEqualTypeOf<MessageStream<null>>();
    // @ts-expect-error -- the SDK wants to know how many
    () => wrapped.messages.create({ model: 'small', messages: [] });
  };
});

test('what is no client is not taken, nor are options that there are not', () => {
  () => {
    // @ts-expect-error -- no client
    wrapAnthropic({});
    // @ts-expect-error -- no client of Anthropic
    wrapAnthropic({ chat: { completions: { create: () => {} } } });
    // @ts-expect-error -- unknown
    wrapAnthropic(client, { name: 'a' });
    // @ts-expect-error -- no list
    wrapAnthropic(client, { tags: 'a' });
  };
});

test('nothing is `any`', () => {
  expectTypeOf<Parameters<typeof wrapAnthropic>>().not.toBeAny();
  expectTypeOf<Parameters<typeof wrapAnthropic>[0]['messages']['create']>().returns.toEqualTypeOf<unknown>();
});
