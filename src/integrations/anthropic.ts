import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { replaceMethod, restoreMethods } from '../instrument/method.ts';
import type { Plan } from '../instrument/plan.ts';
import { disguised, tracedBy } from '../instrument/traceable.ts';
import { MessageFold } from './anthropic-message-fold.ts';
import { describeMessages, recordMessage } from './anthropic-messages.ts';
import { type AnswerShape, followApiPromise } from './api-promise.ts';
import { fieldsOf } from './fields.ts';
import { type WrapOptions, wrapOptions } from './wrap-options.ts';

/** What has to be there of a client of `@anthropic-ai/sdk`, or of its Bedrock and Vertex variants, of any version. */
export interface AnthropicLike {
  readonly messages: { create(...args: never[]): unknown };
}

const PLACE = 'wrapAnthropic';

/** The resources whose `create` asks a model. What else asks one (`stream`, `parse`, tool runners) calls it. */
const RESOURCES = [['messages'], ['beta', 'messages']] as const;

const messageShape: AnswerShape = {
  requestIdHeader: 'request-id',
  record: recordMessage,
  fold: () => new MessageFold(),
};

/**
 * Traces a client of `@anthropic-ai/sdk`: each call of a model becomes an `llm` run below the run that is current, with
 * messages, parameters, the answer, whether streamed or not, and its tokens. It gives back the same client, with
 * `messages.create` and `beta.messages.create` replaced on it; promises, streams and errors stay the objects they are.
 * Clients made by its `withOptions` are traced too. To wrap a client again changes nothing.
 *
 * Anything but such a client is given back unchanged, with one line that says so.
 */
export function wrapAnthropic<Client extends AnthropicLike>(client: Client, options?: WrapOptions): Client {
  const checked = wrapOptions(PLACE, options);
  if (checked.enabled === false) return client;
  const plan: Plan = {
    ...checked,
    name: 'anthropic.messages',
    runType: 'llm',
    describe: describeMessages,
    follow: (result, run) => followApiPromise(result, run, messageShape),
  };
  const resources = resourcesOf(client);
  if (resources.length === 0) {
    diagnostics.warnOnce(PLACE, `${PLACE}(client): expected a client of @anthropic-ai/sdk; it is not traced.`);
    return client;
  }
  for (const resource of resources) replaceMethod(PLACE, resource, 'create', (create) => tracedBy(plan, create));
  if (typeof fieldsOf(client).withOptions === 'function') {
    replaceMethod(PLACE, client, 'withOptions', (withOptions) =>
      disguised(function (this: unknown, ...args: unknown[]): unknown {
        return wrapAnthropic(Reflect.apply(withOptions, this, args) as AnthropicLike, options);
      }, withOptions),
    );
  }
  return client;
}

/** Undoes `wrapAnthropic` on this client; those that its `withOptions` has made stay as they are. */
export function unwrapAnthropic<Client extends AnthropicLike>(client: Client): Client {
  for (const resource of resourcesOf(client)) restoreMethods('unwrapAnthropic', resource);
  if (resourcesOf(client).length > 0) restoreMethods('unwrapAnthropic', client);
  return client;
}

function resourcesOf(client: unknown): object[] {
  const found = guard(PLACE, () =>
    RESOURCES.map((path) => path.reduce<unknown>((at, key) => fieldsOf(at)[key], client)).filter(
      (resource): resource is object => typeof fieldsOf(resource).create === 'function',
    ),
  );
  return found ?? [];
}
