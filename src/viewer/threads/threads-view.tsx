import type { JSX } from 'preact';
import { address } from '../data/navigation.ts';
import { ThreadList } from './thread-list.tsx';
import { ThreadView } from './thread-view.tsx';

/** View of all threads, or of the thread that is open. */
export default function ThreadsView(): JSX.Element {
  const { thread } = address.value;
  return thread === undefined ? <ThreadList /> : <ThreadView key={thread} id={thread} />;
}
