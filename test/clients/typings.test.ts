// What TypeScript says of these lines is the test: `npm run test:types` compiles this file.
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { RunspanError } from '../../src/base/errors.ts';
import {
  ApiError,
  type CallFacts,
  type CallOptions,
  type ClientHooks,
  type ClientOptions,
  ConnectionError,
  createFeedbackToken,
  createFeedbackTokens,
  FeedbackError,
  type FeedbackRefusal,
  type FeedbackServiceOptions,
  type FeedbackSubmission,
  type FeedbackToken,
  type FeedbackTokenRequest,
  feedbackLink,
  InvalidAnswerError,
  InvalidRequestError,
  type Page,
  type PageList,
  type RequestEvent,
  type ResponseEvent,
  type RetryEvent,
  type SubmitFeedbackOptions,
  submitFeedback,
  TimeoutError,
  type ValidationError,
} from '../../src/clients.ts';

interface Thing {
  readonly id: string;
}

describe('a list', () => {
  const list = {} as PageList<Thing>;

  test('is awaited as its first page, and iterated as its items', () => {
    expectTypeOf<Awaited<typeof list>>().toEqualTypeOf<Page<Thing>>();
    expectTypeOf<Page<Thing>['items']>().toEqualTypeOf<readonly Thing[]>();
    expectTypeOf<ReturnType<Page<Thing>['next']>>().toEqualTypeOf<Promise<Page<Thing> | undefined>>();
    expectTypeOf(list).toExtend<AsyncIterable<Thing>>();
    expectTypeOf(list.toArray).toEqualTypeOf<(limit: number) => Promise<Thing[]>>();
    expectTypeOf(list.pages).returns.toExtend<AsyncIterable<Page<Thing>>>();
    const items = async (): Promise<Thing[]> => {
      const found: Thing[] = [];
      for await (const item of list) found.push(item);
      for await (const item of await list) found.push(item);
      return found;
    };
    expectTypeOf(items).returns.resolves.toEqualTypeOf<Thing[]>();
  });

  test('needs a limit to become an array, and is made by clients alone', () => {
    // @ts-expect-error -- a list may have no end
    () => list.toArray();
    // @ts-expect-error -- a promise is not iterated
    () => [...list];
  });
});

describe('options', () => {
  test('may be undefined, as what comes from the environment is, and there are no others', () => {
    expectTypeOf<CallOptions>().toEqualTypeOf<{
      signal?: AbortSignal | undefined;
      timeoutMs?: number | undefined;
      maxRetries?: number | undefined;
      headers?: Readonly<Record<string, string | null>> | undefined;
    }>();
    expectTypeOf<keyof ClientOptions>().toEqualTypeOf<
      'apiKey' | 'headers' | 'timeoutMs' | 'connectTimeoutMs' | 'maxRetries' | 'allowInsecure' | 'dispatcher' | 'hooks'
    >();
    const options: ClientOptions = { apiKey: process.env.SOME_KEY, timeoutMs: undefined };
    // @ts-expect-error -- null leaves a header out of a call, not of a client
    const client: ClientOptions = { headers: { a: null } };
    // @ts-expect-error -- it is `timeoutMs`
    const misspelt: ClientOptions = { timeout: 5 };
    expect([options, client, misspelt]).toHaveLength(3);
  });

  test('of feedback have no key, those of its service have an address', () => {
    expectTypeOf<SubmitFeedbackOptions>().not.toHaveProperty('apiKey');
    expectTypeOf<SubmitFeedbackOptions['method']>().toEqualTypeOf<'POST' | 'GET' | undefined>();
    expectTypeOf<FeedbackServiceOptions['url']>().toEqualTypeOf<string | URL>();
    // @ts-expect-error -- the address is required
    const service: FeedbackServiceOptions = { apiKey: 'key' };
    expect(service).toBeDefined();
  });

  test('may have a function for each hook, which is told what happened then', () => {
    expectTypeOf<Parameters<NonNullable<ClientHooks['onRequest']>>>().toEqualTypeOf<[RequestEvent]>();
    expectTypeOf<Parameters<NonNullable<ClientHooks['onResponse']>>>().toEqualTypeOf<[ResponseEvent]>();
    expectTypeOf<Parameters<NonNullable<ClientHooks['onRetry']>>>().toEqualTypeOf<[RetryEvent]>();
    expectTypeOf<RetryEvent['error']>().toEqualTypeOf<Error>();
  });
});

describe('errors', () => {
  test('are told apart by their class, and each is a RunspanError', () => {
    for (const kind of [ApiError, ConnectionError, TimeoutError, InvalidAnswerError, InvalidRequestError])
      expectTypeOf<InstanceType<typeof kind>>().toExtend<RunspanError>();
    expectTypeOf<FeedbackError>().toExtend<RunspanError>();
    const told = (error: unknown): unknown => {
      if (error instanceof ApiError) {
        expectTypeOf(error.status).toEqualTypeOf<number>();
        expectTypeOf(error.detail).toEqualTypeOf<string | undefined>();
        expectTypeOf(error.errors).toEqualTypeOf<readonly ValidationError[]>();
        expectTypeOf(error.body).toEqualTypeOf<unknown>();
        expectTypeOf(error.request).toEqualTypeOf<CallFacts>();
      }
      if (error instanceof FeedbackError) {
        expectTypeOf(error.reason).toEqualTypeOf<FeedbackRefusal>();
        expectTypeOf(error.cause).toEqualTypeOf<ApiError>();
      }
      if (error instanceof ConnectionError) expectTypeOf(error.mayHaveArrived).toEqualTypeOf<boolean>();
      return error;
    };
    expect(told(1)).toBe(1);
  });

  test('of feedback are made here alone', () => {
    // @ts-expect-error -- its constructor is private
    () => new FeedbackError('unknown', 'text', {} as ApiError);
  });
});

describe('feedback', () => {
  test('is said in fields, each of its own type', () => {
    expectTypeOf(submitFeedback).toEqualTypeOf<
      (url: string | URL, feedback: FeedbackSubmission, options?: SubmitFeedbackOptions) => Promise<void>
    >();
    expectTypeOf(feedbackLink).toEqualTypeOf<(url: string | URL, feedback: FeedbackSubmission) => string>();
    // @ts-expect-error -- a score is no text
    () => submitFeedback('https://host', { score: '1' });
    // @ts-expect-error -- it is `comment`
    () => submitFeedback('https://host', { comments: 'x' });
  });

  test('has tokens, one for a request and several for several', () => {
    expectTypeOf(createFeedbackToken).returns.resolves.toEqualTypeOf<FeedbackToken>();
    expectTypeOf(createFeedbackTokens).returns.resolves.toEqualTypeOf<FeedbackToken[]>();
    expectTypeOf(createFeedbackTokens).parameter(0).toEqualTypeOf<readonly FeedbackTokenRequest[]>();
    // @ts-expect-error -- the run is required
    () => createFeedbackToken({ key: 'a' }, { url: 'https://host' });
  });
});
