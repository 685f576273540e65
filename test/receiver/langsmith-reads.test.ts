import { Client } from 'langsmith';
import { describe } from 'vitest';
import { testReads } from './langsmith-reads.ts';

describe('the LangSmith client', () => testReads(Client));
