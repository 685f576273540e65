import { join } from 'node:path';
import { specTest } from '@langchain/langgraph-checkpoint-validation';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SqliteDatabase } from '../../server/storage/sqlite-database.ts';
import { SqliteSaver } from '../../server/storage/sqlite-saver.ts';
import { temporaryFolder } from '../support/folder.ts';

// The suite of LangGraph for savers takes these from the globals of the runner.
Object.assign(globalThis, { describe, it, expect, beforeAll, beforeEach, afterAll, afterEach });

describe('the saver on SQLite', () => {
  const folder = temporaryFolder();
  const databases: SqliteDatabase[] = [];
  specTest({
    checkpointerName: 'SqliteSaver',
    createCheckpointer: () => {
      const database = SqliteDatabase.open(join(folder.path, `${databases.length}`));
      databases.push(database);
      return new SqliteSaver(database);
    },
    afterAll: () => {
      for (const database of databases) database.close();
      folder[Symbol.dispose]();
    },
  });
});
