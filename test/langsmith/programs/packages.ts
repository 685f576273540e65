// A package that itself uses LangSmith's package.
import { traceable } from 'langsmith/traceable';
import { makeRank } from '../packages/rank.ts';

const first = traceable(async (documents: string[]) => String(documents[0]), { name: 'first' });
const rank = makeRank(first);

await traceable(async (documents: string[]) => rank(documents), { name: 'answer', tags: ['outer'] })(['b', 'a']);
