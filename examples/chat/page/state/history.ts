import { checkpointOf, statesBefore, type ThreadState } from './client.ts';
import { messageOf, textIn } from './message.ts';

const PAGE_STATES = 50;
/**
 * Number of states per page when the history is searched. The pages are small, because most searches end in the last
 * turn and each state contains all messages.
 */
const SEARCH_STATES = 20;
const SEARCHED_STATES_MAX = 2_000;

/** A turn in the thread's history. */
export interface PastTurn {
  /** Id of the turn's first checkpoint. */
  readonly id: string;
  readonly question: string;
  readonly answer: string;
  /** The states of the turn, newest first. */
  readonly states: readonly [ThreadState, ...ThreadState[]];
  /** Number of this version among all versions of the turn. */
  readonly version: number;
  readonly versions: number;
}

export interface HistoryPage {
  readonly states: readonly ThreadState[];
  readonly hasMore: boolean;
}

export async function historyPage(threadId: string, before?: string): Promise<HistoryPage> {
  const states = await statesBefore(threadId, PAGE_STATES, before);
  return { states, hasMore: states.length === PAGE_STATES };
}

/** Returns the newest state that matches, among the given checkpoint and its ancestors. */
export async function stateBefore(
  threadId: string,
  checkpointId: string,
  matches: (state: ThreadState) => boolean,
): Promise<ThreadState | undefined> {
  let wanted: string | undefined = checkpointId;
  let before: string | undefined;
  for (let searched = 0; searched < SEARCHED_STATES_MAX; searched += SEARCH_STATES) {
    const states = await statesBefore(threadId, SEARCH_STATES, before);
    for (const state of states) {
      if (checkpointOf(state) !== wanted) continue;
      if (matches(state)) return state;
      wanted = parentOf(state);
    }
    before = checkpointOf(states.at(-1));
    if (wanted === undefined || states.length < SEARCH_STATES) return undefined;
  }
  return undefined;
}

/**
 * Returns the ids of a checkpoint and its ancestors, as far as they are among these states. All other states belong to
 * other branches.
 */
export function ancestorsOf(states: readonly ThreadState[], checkpointId: string | undefined): ReadonlySet<string> {
  const line = new Set<string>();
  let wanted = checkpointId;
  for (const state of states) {
    const id = checkpointOf(state);
    if (id === undefined || id !== wanted) continue;
    line.add(id);
    wanted = parentOf(state);
  }
  return line;
}

interface Group {
  readonly id: string;
  /** Id of the checkpoint from which the turn started. All versions of a turn have the same origin. */
  origin: string;
  readonly states: [ThreadState, ...ThreadState[]];
}

/** Groups states into turns, newest first. The oldest turn may be incomplete. */
export function pastTurns(states: readonly ThreadState[]): PastTurn[] {
  const groups: Group[] = [];
  const byState = new Map<string, Group>();
  for (const state of [...states].reverse()) {
    const [id, parentId = ''] = [checkpointOf(state), parentOf(state)];
    if (id === undefined) continue;
    let group = byState.get(parentId);
    if (group === undefined || ['input', 'fork', 'update'].includes(String(state.metadata?.source))) {
      group = { id, origin: parentId, states: [state] };
      groups.push(group);
    } else group.states.unshift(state);
    byState.set(id, group);
  }
  for (const group of groups) {
    // A retry starts from a checkpoint within the turn that it repeats.
    const first = byState.get(group.origin);
    if (first !== undefined && questionOf(first)?.id === questionOf(group)?.id) group.origin = first.origin;
  }
  const turns = groups.filter(({ states: [end] }) => (end.values.messages ?? []).length > 0);
  return turns.map((group) => pastTurn(group, turns)).reverse();
}

function pastTurn(group: Group, turns: readonly Group[]): PastTurn {
  const { id, origin, states } = group;
  const messages = (states[0].values.messages ?? []).flatMap((message) => messageOf(message) ?? []);
  const question = questionOf(group);
  const asked = messages.findIndex((message) => message.id === question?.id);
  const answer = messages.slice(asked + 1).findLast((message) => message.role === 'ai' && textIn(message) !== '');
  const versions = turns.filter((turn) => turn.origin === origin);
  return {
    id,
    question: question === undefined ? '' : textIn(question),
    answer: answer === undefined ? '' : textIn(answer),
    states,
    version: versions.indexOf(group) + 1,
    versions: versions.length,
  };
}

function questionOf({ states: [end] }: Group) {
  const fields = (end.values.messages ?? []).findLast(({ type }) => type === 'human');
  return fields === undefined ? undefined : messageOf(fields);
}

function parentOf(state: ThreadState): string | undefined {
  return state.parent_checkpoint?.checkpoint_id ?? undefined;
}
