import { api } from './api.ts';
import { type Message, messageOf, textIn } from './message.ts';
import { checkpointOf, type Fields, stringOf, type ThreadState } from './protocol.ts';
import { wholeStates } from './whole-states.ts';

/** States that are asked for at once, and how many are looked through for one of them. The server reads all messages of each, and most looks end in the last turn. */
const PAGE_STATES = 50;
const FIRST_STATES = 10;
const SEARCHED_STATES_MAX = 2_000;

/** A turn as the checkpoints tell it. */
export interface PastTurn {
  /** The checkpoint that it begins with. */
  readonly id: string;
  readonly question: string;
  readonly answer: string;
  /** Its states, newest first; the first is its end, as far as it has come. */
  readonly states: readonly [ThreadState, ...ThreadState[]];
  /** Which of how many that were made at the same place. */
  readonly version: number;
  readonly versions: number;
}

export interface HistoryPage {
  readonly states: readonly ThreadState[];
  readonly hasMore: boolean;
}

/** States of a thread, newest first: the page that is before a checkpoint. */
export async function historyPage(threadId: string, before?: string, limit = PAGE_STATES): Promise<HistoryPage> {
  const states = wholeStates(await api.history(threadId, limit, before));
  return { states, hasMore: states.length === limit };
}

/** The newest state that fits, of those that led to a checkpoint. */
export async function stateBehind(
  threadId: string,
  checkpointId: string,
  fits: (state: ThreadState) => boolean,
): Promise<ThreadState | undefined> {
  let wanted: string | undefined = checkpointId;
  let before: string | undefined;
  for (let seen = 0, limit = FIRST_STATES; seen < SEARCHED_STATES_MAX; seen += limit, limit = PAGE_STATES) {
    const { states, hasMore } = await historyPage(threadId, before, limit);
    for (const state of states) {
      if (checkpointOf(state) !== wanted) continue;
      if (fits(state)) return state;
      wanted = state.parent_checkpoint?.checkpoint_id ?? undefined;
    }
    before = checkpointOf(states.at(-1) ?? ({} as ThreadState));
    if (!hasMore || wanted === undefined || before === undefined) return undefined;
  }
  return undefined;
}

interface Group {
  readonly id: string;
  readonly origin: string;
  readonly states: [ThreadState, ...ThreadState[]];
}

/** The turns that these states are of, newest first. Of the oldest one some states may be missing. */
export function pastTurns(states: readonly ThreadState[]): PastTurn[] {
  const groups = groupsOf(states);
  const versions = new Map<string, string[]>();
  for (const { id, origin } of groups) versions.set(origin, [...(versions.get(origin) ?? []), id]);
  return groups.reverse().map(({ id, origin, states: own }) => {
    const messages = messagesOf(own[0]);
    const asked = messages.findLastIndex(({ role }) => role === 'human');
    const answer = messages.slice(asked + 1).findLast((message) => message.role === 'ai' && textIn(message) !== '');
    const together = versions.get(origin) ?? [];
    return {
      id,
      question: asked === -1 ? '' : textIn(messages[asked] as Message),
      answer: answer === undefined ? '' : textIn(answer),
      states: own,
      version: together.indexOf(id) + 1,
      versions: together.length,
    };
  });
}

/** Oldest first. A turn begins where a checkpoint was made from without. */
function groupsOf(states: readonly ThreadState[]): Group[] {
  const groups: Group[] = [];
  const byState = new Map<string, Group>();
  for (const state of [...states].reverse()) {
    const id = checkpointOf(state);
    if (id === undefined) continue;
    const parentId = state.parent_checkpoint?.checkpoint_id ?? '';
    const parent = byState.get(parentId);
    let group = parent;
    if (group === undefined || isBeginning(state)) {
      group = { id, origin: parentId, states: [state] };
      groups.push(group);
    } else group.states.unshift(state);
    byState.set(id, group);
  }
  return withOrigins(groups, byState).filter(({ states: [end] }) => messagesOf(end).length > 0);
}

/** The same question again is another version of the turn that it was asked in first. */
function withOrigins(groups: readonly Group[], byState: ReadonlyMap<string, Group>): Group[] {
  const origins = new Map<Group, string>();
  return groups.map((group) => {
    const first = byState.get(group.origin);
    const isAgain = first !== undefined && questionId(first) === questionId(group);
    const origin = isAgain ? (origins.get(first) ?? first.origin) : group.origin;
    origins.set(group, origin);
    return { ...group, origin };
  });
}

function isBeginning({ metadata }: ThreadState): boolean {
  return metadata.source === 'input' || metadata.source === 'fork' || metadata.source === 'update';
}

function questionId({ states: [end] }: Group): string | undefined {
  const { messages = [] } = end.values;
  return stringOf(messages.findLast((message: Fields) => message.type === 'human')?.id);
}

function messagesOf({ values }: ThreadState): Message[] {
  return (values.messages ?? []).flatMap((message) => messageOf(message) ?? []);
}
