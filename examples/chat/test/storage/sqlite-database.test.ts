import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, it } from 'vitest';
import { SqliteDatabase } from '../../server/storage/sqlite-database.ts';
import { SqliteSessions } from '../../server/storage/sqlite-sessions.ts';
import { temporaryFolder } from '../support/folder.ts';

describe('the file of a chat', () => {
  it('is made for its owner alone, in a folder for its owner alone', () => {
    using folder = temporaryFolder();
    const data = join(folder.path, 'new', 'data');
    SqliteDatabase.open(data).close();
    expect(statSync(data).mode & 0o777).toBe(0o700);
    for (const file of ['chat.db', 'chat.db-lock']) expect(statSync(join(data, file)).mode & 0o777).toBe(0o600);
  });

  it('throws what ended a transaction, also where SQLite has ended it itself', () => {
    using folder = temporaryFolder();
    const database = SqliteDatabase.open(folder.path);
    const fail = (): void => {
      database.run('ROLLBACK');
      throw new Error('The disk is full.');
    };
    expect(() => database.transaction(fail)).toThrow('The disk is full.');
    database.close();
  });

  it('is refused to a second one, and given again after the first', () => {
    using folder = temporaryFolder();
    const first = SqliteDatabase.open(folder.path);
    expect(() => SqliteDatabase.open(folder.path)).toThrow('chat.db is open in another process');
    first.close();
    SqliteDatabase.open(folder.path).close();
  });

  it('is refused where it is of a newer version', () => {
    using folder = temporaryFolder();
    SqliteDatabase.open(folder.path).close();
    const database = new DatabaseSync(join(folder.path, 'chat.db'));
    database.exec('PRAGMA user_version = 3');
    database.close();
    expect(() => SqliteDatabase.open(folder.path)).toThrow('is of version 3, and this application knows 2');
  });

  it.each(['no database', ''])('is not written over where it is of others: %j', (content) => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'chat.db');
    if (content !== '') writeFileSync(path, content);
    else {
      const database = new DatabaseSync(path);
      database.exec('CREATE TABLE of_others (n)');
      database.close();
    }
    const before = statSync(path).size;
    expect(() => SqliteDatabase.open(folder.path)).toThrow(/no file of this application|not a database/);
    expect(statSync(path).size).toBe(before);
  });

  it('is said to be unusable where its folder is none', () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'file');
    writeFileSync(path, '');
    expect(() => SqliteDatabase.open(path)).toThrow(`${path} is a file, and has to be a folder; name one with --data.`);
  });

  it('does all of a transaction or nothing', () => {
    using folder = temporaryFolder();
    const database = SqliteDatabase.open(folder.path);
    const fail = (): void =>
      database.transaction(() => {
        database.run('UPDATE numbering SET forgotten_seq = 7');
        throw new Error('midway');
      });
    expect(fail).toThrow('midway');
    expect(database.one('SELECT forgotten_seq FROM numbering')).toEqual({ forgotten_seq: 0 });
    database.close();
  });
});

const LAST = { channel: 'lifecycle', namespace: [], body: '{}' };

describe('sessions of a file', () => {
  it('give the runs that were under way when it was closed to one caller, and keep their threads until they are told of', async () => {
    using folder = temporaryFolder();
    const before = opened(folder.path);
    await before.sessions.claim('thread', 'run');
    await before.sessions.claim('done', 'other');
    await before.sessions.end('done', 'other', LAST);
    expect(await before.sessions.takeCutRuns()).toEqual([]);
    before.database.close();
    const after = opened(folder.path);
    expect(await after.sessions.renew('thread', 'run')).toBe('lost');
    expect(await after.sessions.claim('thread', 'next')).toBe('run');
    expect(await after.sessions.takeCutRuns()).toEqual([{ threadId: 'thread', runId: 'run' }]);
    expect(await after.sessions.takeCutRuns()).toEqual([]);
    await after.sessions.end('thread', 'run', LAST);
    expect(await after.sessions.claim('thread', 'next')).toBe('next');
    expect(await after.sessions.renew('thread', 'next')).toBe('held');
    after.database.close();
  });

  it('give the runs that waited when it was closed one after the other, behind the one that had the thread', async () => {
    using folder = temporaryFolder();
    const before = opened(folder.path);
    for (const run of ['first', 'second', 'third']) await before.sessions.claim('thread', run, 'last');
    before.database.close();
    const after = opened(folder.path);
    await after.sessions.claim('thread', 'fourth', 'last');
    for (const runId of ['first', 'second', 'third']) {
      expect(await after.sessions.takeCutRuns()).toEqual([{ threadId: 'thread', runId }]);
      expect(await after.sessions.renew('thread', runId)).toBe('lost');
      await after.sessions.end('thread', runId, LAST);
    }
    expect(await after.sessions.takeCutRuns()).toEqual([]);
    expect(await after.sessions.renew('thread', 'fourth')).toBe('held');
    after.database.close();
  });

  it('have what they had in a file that an older version has made', async () => {
    using folder = temporaryFolder();
    const before = opened(folder.path);
    await before.sessions.append('thread', [{ channel: 'messages', namespace: [], body: '{}' }]);
    await before.sessions.claim('thread', 'run');
    const told = await before.sessions.read('thread', 0, 10);
    before.database.close();
    const older = new DatabaseSync(join(folder.path, 'chat.db'));
    older.exec('DROP TABLE waiting; PRAGMA user_version = 1');
    older.close();
    const after = opened(folder.path);
    expect(await after.sessions.read('thread', 0, 10)).toEqual(told);
    expect(await after.sessions.claim('thread', 'next', 'last')).toBe('run');
    expect(await after.sessions.takeCutRuns()).toEqual([{ threadId: 'thread', runId: 'run' }]);
    await after.sessions.end('thread', 'run', LAST);
    expect(await after.sessions.renew('thread', 'next')).toBe('held');
    after.database.close();
  });

  it('keep events and numbers, until nobody has used the thread for long', async () => {
    using folder = temporaryFolder();
    const first = opened(folder.path);
    await first.sessions.append('thread', [{ channel: 'messages', namespace: [], body: '{}' }]);
    const [event] = (await first.sessions.read('thread', 0, 1)).events;
    first.database.close();
    const second = opened(folder.path);
    expect((await second.sessions.read('thread', 0, 1)).events).toEqual([event]);
    second.database.close();
    const third = opened(folder.path, -1);
    expect(await third.sessions.read('thread', 0, 1)).toEqual({ events: [], droppedThrough: event?.seq });
    await third.sessions.append('thread', [{ channel: 'messages', namespace: [], body: '{}' }]);
    expect((await third.sessions.read('thread', 0, 1)).events[0]?.seq).toBe((event?.seq as number) + 1);
    third.database.close();
  });
});

function opened(folder: string, idleMs = 1_000_000) {
  const database = SqliteDatabase.open(folder);
  return { database, sessions: new SqliteSessions(database, { idleMs }) };
}
