import type { Server } from 'node:http';
import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import { replaceMethod } from '../instrument/methods.ts';
import { isModelAddress } from '../integrations/fetch/dialects.ts';
import { answerFetch } from '../integrations/fetch/record-fetch.ts';
import { nodeModule } from '../platform/node.ts';
import { addressOf, onHttpRequest } from './http-requests.ts';

/**
 * Answers the model calls of this process from a fixture. If the recorded trace is that of an HTTP request, the request
 * is sent to the first server that listens. Model calls that are not sent with `fetch` fail.
 */
export function answerFromFixture(file: string): void {
  const replayed = import('../replay/child.ts').then(({ replayOf }) => replayOf(file));
  replayed.catch((error) => diagnostics.error(`RUNSPAN_REPLAY: ${messageOf(error)}`));
  answerFetch(async (...call) => (await replayed).answer(...call));
  onHttpRequest((request) => {
    const url = addressOf(request);
    if (request.method !== 'POST' || url === undefined || !isModelAddress(url)) return;
    const problem = `a model call to ${url.host} is not sent with fetch, so that it cannot be replayed`;
    request.destroy(new Error(`runspan replay: ${problem}`));
    void replayed.then(({ refuse }) => refuse(problem));
  });
  let isFirst = true;
  replaceMethod('runspan/register replay', nodeModule('node:http').Server.prototype, 'emit', (emit) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      if (args[0] === 'listening' && isFirst) {
        isFirst = false;
        void replayed.then(({ listening }) => listening(this as Server));
      }
      return Reflect.apply(emit, this, args);
    };
  });
}
