import type { GroupKey, SortKey } from './query.ts';

export const SORT_KEYS: readonly SortKey[] = ['start_time', 'latency', 'tokens', 'cost'];

export const GROUP_KEYS: readonly GroupKey[] = ['name', 'model', 'run_type', 'project', 'status'];
