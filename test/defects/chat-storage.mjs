// Mistakes in the stores of the chat application, each of which has to make a test fail. `npm run test:peers` has to have installed its packages.
const config = 'vitest.peers.config.ts';
const folder = 'examples/chat/server/storage';
const tests = 'examples/chat/test/storage';
const inSessions = { config, tests: [`${tests}/session-store.test.ts`] };
const inThreads = { config, tests: [`${tests}/thread-index.test.ts`] };
const inFile = { config, tests: [`${tests}/sqlite-database.test.ts`] };
const inStorage = { config, tests: [`${tests}/storage.test.ts`] };

export const defects = [
  {
    ...inStorage,
    title: 'two branches of a thread have values of the same version',
    file: `${folder}/channel-version.ts`,
    find: ' + Math.random()',
    replace: '',
  },
  {
    ...inStorage,
    title: 'metadata goes into PostgreSQL with what it refuses',
    file: `${folder}/postgres-saver.ts`,
    find: 'checkpoint, storable(metadata), newVersions',
    replace: 'checkpoint, metadata, newVersions',
  },
  {
    ...inStorage,
    title: 'a history in a file is not filtered',
    file: `${folder}/sqlite-saver.ts`,
    find: 'isDeepStrictEqual(metadata[key], value)',
    replace: 'isDeepStrictEqual(value, value)',
  },
  {
    ...inStorage,
    title: 'an error names the password of the store',
    file: `${folder}/store-error.ts`,
    find: 'const { protocol, host, pathname } = new URL(address);',
    replace: "const { protocol, host, pathname } = { protocol: address, host: '', pathname: '' };",
  },
  {
    ...inStorage,
    title: 'instances that start together make the same tables',
    file: `${folder}/postgres-schema.ts`,
    find: "await client.query('SELECT pg_advisory_lock($1)', [LOCK]);",
    replace: '',
  },
  {
    ...inFile,
    title: 'two processes have the file open',
    file: `${folder}/sqlite-database.ts`,
    find: 'PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE',
    replace: 'PRAGMA busy_timeout = 0',
  },
  {
    ...inFile,
    title: 'a file of others is written over',
    file: `${folder}/sqlite-database.ts`,
    find: 'application !== APPLICATION_ID && tables.n > 0',
    replace: 'application === APPLICATION_ID && tables.n < 0',
  },
  {
    ...inFile,
    title: 'others can read the file',
    file: `${folder}/sqlite-database.ts`,
    find: 'chmodSync(path, 0o600);',
    replace: 'chmodSync(path, 0o644);',
  },
  {
    ...inFile,
    title: 'a run whose process is gone has its thread for ever',
    file: `${folder}/sqlite-sessions.ts`,
    find: "'UPDATE sessions SET is_cut = 1, told_until_ms = 0 WHERE run_id IS NOT NULL'",
    replace: "'UPDATE sessions SET told_until_ms = 0 WHERE run_id IS NOT NULL'",
  },
  {
    ...inFile,
    title: 'events that nobody needs are kept for ever',
    file: `${folder}/sqlite-sessions.ts`,
    find: 'const before = Date.now() - this.#limits.idleMs;',
    replace: 'const before = 0;',
  },
  {
    ...inSessions,
    title: 'events in PostgreSQL are numbered with gaps',
    file: `${folder}/postgres-sessions.ts`,
    find: 'SET last_seq = s.last_seq + cardinality($3::text[]),',
    replace: 'SET last_seq = s.last_seq + cardinality($3::text[]) + 1,',
  },
  {
    ...inSessions,
    title: 'a reader of PostgreSQL is given its last event again',
    file: `${folder}/postgres-sessions.ts`,
    find: 'seq > $2 ORDER BY seq LIMIT $3',
    replace: 'seq >= $2 ORDER BY seq LIMIT $3',
  },
  {
    ...inSessions,
    title: 'one event less than the bound is kept in PostgreSQL',
    file: `${folder}/postgres-sessions.ts`,
    find: 'greatest(session.last_seq - $2,',
    replace: 'greatest(session.last_seq - $2 + 1,',
  },
  {
    ...inSessions,
    title: 'leases are taken away in PostgreSQL that have not run out',
    file: `${folder}/postgres-sessions.ts`,
    find: 'run_id IS NOT NULL AND lease_until < clock_timestamp()',
    replace: 'run_id IS NOT NULL',
  },
  {
    ...inSessions,
    title: 'in Redis a run whose lease was taken away thinks that it goes on',
    file: `${folder}/redis-scripts.ts`,
    find: "  redis.call('HSET', session, 'cut', '1')\n",
    replace: '',
  },
  {
    ...inSessions,
    title: 'in Redis a thread goes to whoever asks last',
    file: `${folder}/redis-scripts.ts`,
    find: 'if holder then return holder end\n',
    replace: '',
  },
  {
    ...inSessions,
    title: 'the log of a deleted thread begins anew in Redis with numbers that were given',
    file: `${folder}/redis-scripts.ts`,
    find: "  redis.call('HSET', KEYS[1], 'seq', seq)\n",
    replace: "  redis.call('HSET', KEYS[1], 'seq', '1')\n",
  },
  {
    ...inSessions,
    title: 'a reader is not told what Redis has dropped',
    file: `${folder}/redis-scripts.ts`,
    find: "  redis.call('HSET', KEYS[1], 'dropped', dropped:match('^%d+'))\n",
    replace: '',
  },
  {
    ...inSessions,
    title: 'a reader is not told what memory has dropped',
    file: `${folder}/event-log.ts`,
    find: 'this.#droppedThrough = dropped.seq;',
    replace: '',
  },
  {
    ...inThreads,
    title: 'each message changes the title in PostgreSQL',
    file: `${folder}/postgres-threads.ts`,
    find: 'THEN excluded.title ELSE t.title END',
    replace: 'THEN excluded.title ELSE excluded.title END',
  },
  {
    ...inThreads,
    title: 'a thread in a file stays where it was in the list',
    file: `${folder}/sqlite-threads.ts`,
    find: ', place = excluded.place',
    replace: '',
  },
];
