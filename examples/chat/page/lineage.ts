import { checkpointOf, type ThreadState } from './protocol.ts';

/** The checkpoints that led to one, and that one, as far as these states tell, newest first. What is not among them is on other branches. */
export function lineageOf(states: readonly ThreadState[], checkpointId: string | undefined): ReadonlySet<string> {
  const line = new Set<string>();
  let wanted = checkpointId;
  for (const state of states) {
    const id = checkpointOf(state);
    if (id === undefined || id !== wanted) continue;
    line.add(id);
    wanted = state.parent_checkpoint?.checkpoint_id ?? undefined;
  }
  return line;
}
