import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { replaceMethod, restoreMethods } from '../instrument/method.ts';
import type { CallDescription, Plan } from '../instrument/plan.ts';
import { disguised, tracedBy } from '../instrument/traceable.ts';
import { CompletionFold, describeCompletion, recordCompletion } from './anthropic-completions.ts';
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

/** A resource whose `create` asks a model. What else asks one (`stream`, `parse`, tool runners) calls it. */
interface Resource {
  readonly path: readonly string[];
  readonly name: string;
  readonly describe: (args: unknown[]) => CallDescription;
  readonly shape: AnswerShape;
}

const requestIdHeader = 'request-id';

const messages: Omit<Resource, 'path'> = {
  name: 'anthropic.messages',
  describe: describeMessages,
  shape: { requestIdHeader, record: recordMessage, fold: () => new MessageFold() },
};

const RESOURCES: readonly Resource[] = [
  { path: ['messages'], ...messages },
  { path: ['beta', 'messages'], ...messages },
  {
    path: ['completions'],
    name: 'anthropic.completions',
    describe: describeCompletion,
    shape: { requestIdHeader, record: recordCompletion, fold: () => new CompletionFold() },
  },
];

/**
 * Traces a client of `@anthropic-ai/sdk`: each call of a model becomes an `llm` run below the run that is current, with
 * messages, parameters, the answer, whether streamed or not, and its tokens. It gives back the same client, with the
 * `create` of `messages`, of `beta.messages` and, in older versions, of `completions` replaced on it; promises, streams
 * and errors stay the objects they are. Clients made by its `withOptions` are traced too. To wrap a client again changes
 * nothing.
 *
 * Anything but such a client is given back unchanged, with one line that says so.
 */
export function wrapAnthropic<Client extends AnthropicLike>(client: Client, options?: WrapOptions): Client {
  const checked = wrapOptions(PLACE, options);
  if (checked.enabled === false) return client;
  if (ownerOf(client, ['messages']) === undefined) {
    diagnostics.warnOnce(PLACE, `${PLACE}(client): expected a client of @anthropic-ai/sdk; it is not traced.`);
    return client;
  }
  for (const { path, name, describe, shape } of RESOURCES) {
    const owner = ownerOf(client, path);
    const follow: Plan['follow'] = (result, run) => followApiPromise(result, run, shape);
    const plan: Plan = { ...checked, name, runType: 'llm', describe, follow };
    if (owner !== undefined) replaceMethod(PLACE, owner, 'create', (create) => tracedBy(plan, create));
  }
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
  const owners = RESOURCES.map(({ path }) => ownerOf(client, path)).filter((owner) => owner !== undefined);
  if (owners.length > 0) for (const owner of [client, ...owners]) restoreMethods('unwrapAnthropic', owner);
  return client;
}

/** The object at a path that has a `create`; undefined where there is none. */
function ownerOf(client: unknown, path: readonly string[]): object | undefined {
  return guard(PLACE, () => {
    const owner = path.reduce<unknown>((at, key) => fieldsOf(at)[key], client);
    return typeof fieldsOf(owner).create === 'function' ? (owner as object) : undefined;
  });
}
