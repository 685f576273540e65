// A chain in a traced function, with LangChain's own tracer and with the handler of runspan.

import { awaitAllCallbacks } from '@langchain/core/callbacks/promises';
import { traceable } from 'langsmith/traceable';
import { RunspanCallbackHandler } from 'runspan/langchain';
import { chain } from './chain.ts';

const handler = new RunspanCallbackHandler();
await traceable(async (question: string) => chain.invoke(question, { callbacks: [handler as never] }), {
  name: 'answer',
  metadata: { user: 'u1' },
})('why');
await awaitAllCallbacks();
