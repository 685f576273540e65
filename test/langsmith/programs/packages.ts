// A package that itself uses LangSmith's package.
import { traceable } from 'langsmith/traceable';
import { rank } from '../packages/rank.ts';

const first = traceable(async (documents: string[]) => String(documents[0]), { name: 'first' });

await traceable(async (documents: string[]) => rank(documents, first), { name: 'answer', tags: ['outer'] })(['b', 'a']);
