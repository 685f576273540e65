// The compiler checks these expectations: `npm run check` compiles this file. The API report holds the signatures.
import { describe, expectTypeOf, test } from 'vitest';
import {
  AgentThreads,
  ApiError,
  type ClientOptions,
  type CommandError,
  type ContentBlock,
  type ControlPlane,
  createFeedbackToken,
  type Deployment,
  type DeploymentCreate,
  type DeploymentPatch,
  FeedbackError,
  type FeedbackServiceOptions,
  type MessageAssembler,
  type Page,
  type PageList,
  type Revision,
  type RevisionStatus,
  submitFeedback,
  type ThreadEvent,
  type ThreadEvents,
  type ThreadResponse,
  type ThreadRunRequest,
  type ThreadState,
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
  const isExpired = ({ reason }: CommandError): boolean => reason === 'no_such_interrupt' || reason === 'expired';
  expectTypeOf(isExpired).returns.toBeBoolean();
});

test('feedback has typed fields, and a token requires the run', () => {
  // @ts-expect-error -- a score is not text
  () => submitFeedback('https://host', { score: '1' });
  // @ts-expect-error -- the field is `comment`
  () => submitFeedback('https://host', { comments: 'x' });
  // @ts-expect-error -- the run is required
  () => createFeedbackToken({ key: 'a' }, { url: 'https://host' });
});

describe('an event of a thread', () => {
  test('is narrowed by its method, and its data by the subtype', () => {
    const texts = (event: ThreadEvent<Chat>): string | undefined => {
      if (event.method === 'lifecycle') return event.params.data.error;
      if (event.method === 'values') return event.params.data.messages.at(-1)?.content;
      if (event.method === 'input.requested') return event.params.data.interrupt_id;
      if (event.method === 'checkpoints') return event.params.data.id;
      if (event.method === 'malformed') return event.params.data;
      if (event.method === 'tools') {
        const { data } = event.params;
        if (data.event === 'tool-started') return data.tool_name;
        return data.event === 'tool-output-delta' ? data.delta : data.tool_call_id;
      }
      if (event.method === 'messages') {
        const { data } = event.params;
        if (data.event === 'content-block-start') expectTypeOf(data.content).toEqualTypeOf<ContentBlock>();
        if (data.event === 'content-block-delta' && data.delta.type === 'text-delta') return data.delta.text;
        return data.event === 'error' ? data.message : undefined;
      }
      expectTypeOf(event.method).toEqualTypeOf<'updates' | 'tasks' | 'custom' | 'other'>();
      return event.name;
    };
    expectTypeOf(texts).toBeFunction();
    expectTypeOf<ThreadEvent<Chat>>().toExtend<Parameters<MessageAssembler['take']>[0]>();
  });

  test('has unknown data if its method is unknown', () => {
    const data = (event: ThreadEvent): unknown => {
      // @ts-expect-error -- nothing is known of the data
      return event.method === 'other' ? event.params.data.event : undefined;
    };
    expectTypeOf(data).returns.toBeUnknown();
  });
});

test('calls of threads have the state of the application, and requests follow the protocol', () => {
  const threads = new AgentThreads({ url: 'http://127.0.0.1' });
  expectTypeOf(threads.state<Chat>).returns.resolves.toEqualTypeOf<ThreadState<Chat>>();
  expectTypeOf<ThreadEvents<Chat>>().toExtend<AsyncIterable<ThreadEvent<Chat>>>();
  const run: ThreadRunRequest = { input: null, checkpoint_id: 'c' };
  ({ interrupt_id: 'i', response: true, goto: 'plan' }) satisfies ThreadResponse;
  ({ responses: [{ interrupt_id: 'i', response: true }], update: {} }) satisfies ThreadResponse;
  // @ts-expect-error -- a run has an input
  ({ assistant_id: 'agent' }) satisfies ThreadRunRequest;
  // @ts-expect-error -- one response, or several
  ({ interrupt_id: 'i', response: 1, responses: [] }) satisfies ThreadResponse;
  // @ts-expect-error -- the events belong to the new run
  () => threads.run('t', run, { run: { run_id: 'r' } });
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
