import type { Server } from 'node:http';
import { replaceMethod } from '../instrument/methods.ts';
import { answerFetch } from '../integrations/fetch/record-fetch.ts';
import { nodeModule } from '../platform/node.ts';

/**
 * Answers the model calls of this process from a fixture. If the recorded trace is that of an HTTP request, the request
 * is sent to the first server that listens.
 */
export function answerFromFixture(file: string): void {
  const replayed = import('../replay/child.ts').then(({ replayOf }) => replayOf(file));
  answerFetch(async (...call) => (await replayed).answer(...call));
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
