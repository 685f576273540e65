// The compiler checks these expectations: `npm run check` compiles this file. The API report holds the signatures.
import { expectTypeOf, test } from 'vitest';
import {
  ApiError,
  type ClientOptions,
  type ControlPlane,
  createFeedbackToken,
  type Deployment,
  type DeploymentCreate,
  type DeploymentPatch,
  FeedbackError,
  type FeedbackServiceOptions,
  type Page,
  type PageList,
  type Revision,
  type RevisionStatus,
  submitFeedback,
} from '#src/clients.ts';

interface Chat {
  readonly messages: readonly { readonly content: string }[];
}

test('a list is awaited as its first page, iterated as items, and needs a limit to become an array', () => {
  const list = {} as PageList<Chat>;
  expectTypeOf<Awaited<typeof list>>().toEqualTypeOf<Page<Chat>>();
  expectTypeOf(list).toExtend<AsyncIterable<Chat>>();
  expectTypeOf(list.pages).returns.toExtend<AsyncIterable<Page<Chat>>>();
  // @ts-expect-error -- a list may have no end
  () => list.toArray();
  // @ts-expect-error -- a promise is not iterable
  () => [...list];
});

test('options may be undefined, and unknown options are errors', () => {
  expectTypeOf<{ apiKey: string | undefined; timeoutMs: undefined }>().toExtend<ClientOptions>();
  // @ts-expect-error -- null removes a header of a call, not of a client
  ({ headers: { a: null } }) satisfies ClientOptions;
  // @ts-expect-error -- the option is `timeoutMs`
  ({ timeout: 5 }) satisfies ClientOptions;
  // @ts-expect-error -- the address is required
  ({ apiKey: 'key' }) satisfies FeedbackServiceOptions;
});

test('errors are distinguished by their class', () => {
  const textOf = (error: unknown): unknown => {
    if (error instanceof FeedbackError) expectTypeOf(error.cause).toEqualTypeOf<ApiError>();
    return error instanceof ApiError ? expectTypeOf(error.detail).toEqualTypeOf<string | undefined>() : undefined;
  };
  expectTypeOf(textOf).toBeFunction();
  // @ts-expect-error -- the constructor is private
  () => new FeedbackError('unknown', {} as ApiError);
});

test('feedback has typed fields, and a token requires the run', () => {
  // @ts-expect-error -- a score is not text
  () => submitFeedback('https://host', { score: '1' });
  // @ts-expect-error -- the field is `comment`
  () => submitFeedback('https://host', { comments: 'x' });
  // @ts-expect-error -- the run is required
  () => createFeedbackToken({ key: 'a' }, { url: 'https://host' });
});

test('requests of the control plane have the words of the interface, responses may have others', () => {
  expectTypeOf<'github'>().not.toExtend<DeploymentCreate['source']>();
  expectTypeOf<'HIBERNATING'>().toExtend<Deployment['status']>();
  expectTypeOf<'HIBERNATING'>().toExtend<RevisionStatus>();
  expectTypeOf<Deployment['region']>().toEqualTypeOf<unknown>();
  expectTypeOf<Revision['region']>().toEqualTypeOf<unknown>();
});

test('a request has no field that the service sets, and an update no immutable field', () => {
  expectTypeOf<DeploymentCreate>().not.toHaveProperty('id');
  expectTypeOf<DeploymentCreate>().not.toHaveProperty('region');
  expectTypeOf<DeploymentPatch>().not.toHaveProperty('source');
  expectTypeOf<Pick<Deployment, 'source_config' | 'source_revision_config' | 'secrets'>>().toExtend<DeploymentPatch>();
  expectTypeOf<ReturnType<ControlPlane['deployments']['uploadSource']>>().resolves.toExtend<
    DeploymentPatch['source_revision_config']
  >();
});
