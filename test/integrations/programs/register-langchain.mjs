import { RunnableLambda } from '@langchain/core/runnables';
import { FakeListChatModel } from '@langchain/core/utils/testing';
const model = new FakeListChatModel({ responses: ['one'] });
const chain = RunnableLambda.from((x) => `say ${x}`).pipe(model);
console.log((await chain.invoke('it')).content);
