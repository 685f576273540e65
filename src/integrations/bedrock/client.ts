import { guard } from '../../base/guard.ts';
import { shared } from '../../base/shared.ts';
import type { PlanOptions } from '../../instrument/plan.ts';
import type { Method } from '../../instrument/results/observer.ts';
import { shapedLike, tracedBy } from '../../instrument/traceable.ts';
import { type Fields, fieldsOf, signalOf, textOf } from '../../payload/fields.ts';
import { currentContext } from '../../run/context/current.ts';
import { sinkOf } from '../../run/context/inherited.ts';
import type { CallOptions, WrapOptions } from '../../run/run-options.ts';
import { type BedrockCall, conversation } from '../../services/bedrock/converse.ts';
import { invocation } from '../../services/bedrock/invoke.ts';
import { endWithAnswer, followStream } from '../answer-stream.ts';
import type { CallFilter } from '../fetch/record-fetch.ts';
import { takeModelStep } from '../langchain/steps.ts';
import { wrap } from '../wrap.ts';

const PLACE = 'wrapBedrock';
const MIDDLEWARE = 'runspan';
const SOURCE = 'bedrock';
const PROVIDER = 'amazon_bedrock';
const SERVICE = 'Bedrock Runtime';

/** The part of a `BedrockRuntimeClient` that tracing requires. */
export interface BedrockLike {
  readonly middlewareStack: { add(...args: never[]): unknown; remove(name: string): boolean };
}

/** The function of a middleware that sends the request, and the next such function in the stack. */
type Handler = (args: { readonly input: Fields }) => Promise<Fields>;

interface MiddlewareStack {
  add(middleware: (next: Handler, context: Fields) => Handler, options: Fields): void;
}

/** The commands that call a model. Others, such as `ApplyGuardrailCommand`, are not recorded. */
const COMMANDS: ReadonlyMap<unknown, (input: Fields) => BedrockCall> = new Map([
  ['ConverseCommand', conversation],
  ['ConverseStreamCommand', conversation],
  ['InvokeModelCommand', invocation],
  ['InvokeModelWithResponseStreamCommand', invocation],
]);

/** The clients with the middleware, and whether `wrapBedrock` has added it. */
const traced: WeakMap<object, boolean> = shared('bedrockClients', () => new WeakMap());

/**
 * Traces a client of `@aws-sdk/client-bedrock-runtime` in place and returns it. The client is a `BedrockRuntimeClient` or
 * `BedrockRuntime`. Each call of `Converse` and `InvokeModel`, streamed or not, becomes an `llm` or `embedding` run below
 * the current run. Adds a middleware to the client, which still returns the SDK's own outputs, streams and errors. Wrapping
 * a client again has no effect. To change the options, call `unwrapBedrock` first.
 *
 * If the value is not such a client, `wrapBedrock` logs a warning and returns the value unchanged.
 */
export function wrapBedrock<Client extends BedrockLike>(client: Client, options?: WrapOptions): Client {
  const expected = 'a client of @aws-sdk/client-bedrock-runtime';
  return wrap(PLACE, expected, client, options, (checked) => addTo(client, checked) && client);
}

/** Removes the middleware of `wrapBedrock` from a client and returns the client. Open runs still end normally. */
export function unwrapBedrock<Client extends BedrockLike>(client: Client): Client {
  guard(PLACE, () => traced.delete(client) && client.middlewareStack.remove(MIDDLEWARE));
  return client;
}

/** Returns a `send` method that adds the middleware to its client before the first call. */
export function tracedSend(send: Method, filter: CallFilter): Method {
  return shapedLike(function (this: unknown, ...args: unknown[]): unknown {
    if (!traced.has(this as object)) guard(PLACE, () => addTo(this as BedrockLike, {}, filter));
    return Reflect.apply(send, this, args);
  }, send);
}

/**
 * Adds the middleware as the last that sees the input, so that the input is recorded as it is sent. Returns false if the
 * value is not a client of Bedrock. Replaces the middleware of `runspan/register`, but not that of `wrapBedrock`.
 */
function addTo(client: BedrockLike, options: CallOptions, filter?: CallFilter): boolean {
  if (fieldsOf(fieldsOf(client).config).serviceId !== SERVICE) return false;
  if (traced.get(client) === true) return true;
  const middleware = (next: Handler, context: Fields): Handler => {
    const callOf = COMMANDS.get(context.commandName);
    if (callOf === undefined) return next;
    return (args) => (guard(PLACE, () => recorded(next, callOf, args.input, context, options, filter)) ?? next)(args);
  };
  const stack = client.middlewareStack as MiddlewareStack;
  stack.add(middleware, { name: MIDDLEWARE, step: 'initialize', priority: 'low', override: true });
  traced.set(client, filter === undefined);
  return true;
}

/** Returns a handler that also records the call. Undefined if the call is not recorded. */
function recorded(
  next: Handler,
  callOf: (input: Fields) => BedrockCall,
  input: Fields,
  context: Fields,
  options: CallOptions,
  filter: CallFilter | undefined,
): Handler | undefined {
  const around = currentContext(options.exporter);
  const sink = sinkOf(around, options.exporter);
  if (sink === undefined) return undefined;
  const call = callOf(input);
  const { runType } = call;
  const model = textOf(input.modelId) ?? '';
  const description = call.describe(input, PROVIDER);
  const step = runType === 'llm' ? takeModelStep(model, description?.inputs, around, sink) : undefined;
  if (step !== undefined) {
    return (args) =>
      next(args).catch((error: unknown) => {
        step.state.isRequested = false;
        throw error;
      });
  }
  if (filter?.(() => undefined, runType, model) === false) return undefined;
  const signal = signalOf(fieldsOf(context.__smithy_context).abortSignal);
  const plan: PlanOptions = {
    ...options,
    name: options.name ?? call.name,
    runType,
    source: SOURCE,
    method: COMMANDS,
    describe: () => description && { ...description, signal },
    follow(result, run) {
      const { $metadata, stream, body } = fieldsOf(fieldsOf(result).output);
      run.set({ metadata: { request_id: fieldsOf($metadata).requestId } });
      return followStream(stream ?? body, run, call, signal);
    },
    complete: (run, result) => endWithAnswer(run, () => call.read(call.answerOf(fieldsOf(result)))),
  };
  return tracedBy(plan, next as Method) as Handler;
}
