// LangChain with its own tracer: a chain in a traced function, a traced function in a chain, and both alone.

import { awaitAllCallbacks } from '@langchain/core/callbacks/promises';
import { traceable } from 'langsmith/traceable';
import { chain } from './chain.ts';

await traceable(async (question: string) => chain.invoke(question), { name: 'answer', metadata: { user: 'u1' } })(
  'why',
);
await awaitAllCallbacks();
await chain.invoke('alone');
await awaitAllCallbacks();
