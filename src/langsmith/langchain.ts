import { RunspanCallbackHandler } from '../integrations/langchain/handler.ts';
import { steps } from '../integrations/langchain/steps.ts';
import { defined } from '../payload/fields.ts';
import { nodeModule } from '../platform/node.ts';
import { currentContext } from '../run/context/current.ts';
import { Run } from '../run/run.ts';
import { currentSink } from '../run/sink.ts';
import { withRun } from '../run/start-run.ts';
import { RunTree } from './run-tree.ts';
import { getCurrentRunTree, shareCurrentRun } from './storage.ts';
import type { AnyFunction, KVMap } from './types.ts';

/**
 * Returns callbacks that record LangChain's steps below `currentRunTree`, which defaults to the current run. Pass them as
 * the `callbacks` of a call. Unlike LangSmith, returns a list of handlers and not a `CallbackManager`.
 */
export async function getLangchainCallbacks(currentRunTree: RunTree = getCurrentRunTree()): Promise<KVMap[]> {
  shareCurrentRun();
  const parent = RunTree.parentOf(currentRunTree);
  const sink = parent instanceof Run ? parent.sink : currentSink();
  const handler = new RunspanCallbackHandler(defined({ exporter: sink }));
  for (const kind of ['Chain', 'ChatModel', 'LLM', 'Tool', 'Retriever'] as const) {
    const name = `handle${kind}Start` as const;
    const start = handler[name].bind(handler) as AnyFunction;
    handler[name] = (...args: unknown[]) => {
      // The fourth argument is the id of the enclosing step or traced function.
      const isOutermost =
        steps.find(args[3] as string | undefined) === undefined && currentContext()?.sampled !== false;
      return isOutermost ? withRun(parent, () => start(...args)) : start(...args);
    };
  }
  return [handler];
}

/** A runnable of LangChain. */
export type RunnableLike = AnyFunction & Record<'batch' | 'invoke' | 'pipe' | 'stream', AnyFunction>;

/** Returns LangChain's runnable for a traced function. Loads `@langchain/core` from the program's working folder. */
export class RunnableTraceable {
  constructor({ func }: { func: AnyFunction }) {
    const load = nodeModule('node:module').createRequire(`${process.cwd()}/`);
    const { RunnableLambda } = load('@langchain/core/runnables');
    // biome-ignore lint/correctness/noConstructorReturn: LangChain's class must be the class of the object
    return new RunnableLambda({ func });
  }

  static from(func: AnyFunction): RunnableLike {
    return new RunnableTraceable({ func }) as unknown as RunnableLike;
  }
}
