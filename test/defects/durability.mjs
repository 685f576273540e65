// Mistakes in what goes to the disk and comes back, each of which has to make a test fail.
const spooling = 'src/export/spooling.ts';
const tests = ['test/export/disk.test.ts'];

export const defects = [
  {
    title: 'with write-ahead a start is not written before its call returns',
    file: spooling,
    find: 'if (isWriteAhead) delivery.startSegment',
    replace: 'if (!isWriteAhead) delivery.startSegment',
    tests,
  },
  {
    title: 'with write-ahead the stack of an error is read in the call',
    file: spooling,
    find: 'const isUnread = error instanceof ErrorText && !error.isRead;',
    replace: 'const isUnread = error instanceof ErrorText && String(error) === "";',
    tests,
  },
  {
    title: 'what waits goes to the disk only after the time for which a service may be away',
    file: spooling,
    find: 'outage.lastsMs >= limits.spillAfterMs',
    replace: 'outage.lastsMs > limits.spillAfterMs',
    tests,
  },
  {
    title: 'a run is refused where the disk could make room for it',
    file: 'src/export/exporter.ts',
    find: "if (!this.#disk.makeRoom()) return 'queue_full';",
    replace: "return 'queue_full';",
    tests,
  },
  {
    title: 'a run is refused because of what has come back from the disk',
    file: 'src/export/exporter.ts',
    find: 'this.#load.isFullFor(run, this.#queue.fresh)',
    replace: 'this.#load.isFullFor(run, this.#queue)',
    tests,
  },
  {
    title: 'what has come from the disk is written there again',
    file: 'src/export/queue.ts',
    find: 'const isFresh = next.ticket === undefined;',
    replace: 'const isFresh = next.stage !== "settled";',
    tests: ['test/export/queue.test.ts'],
  },
  {
    title: 'what has been on disk for too long is sent',
    file: 'src/export/disk.ts',
    find: '    if (isExpired) {',
    replace: '    if (isExpired && load.runs < 0) {',
    tests,
  },
  {
    title: 'runs that cannot be read any more are not told',
    file: 'src/export/replay.ts',
    find: 'deliveries.length < spilled.runs',
    replace: 'deliveries.length > spilled.runs',
    tests,
  },
  {
    title: 'what earlier processes have left and is damaged is counted nowhere',
    file: 'src/export/replay.ts',
    find: '      this.#tellLost(ticket.lost);\n',
    replace: '',
    tests,
  },
  {
    title: 'a damaged file is counted by each process that reads it',
    file: 'src/export/replay.ts',
    find: '    if (!ticket.isKept) {\n      spool.done(ticket.segment);',
    replace: '    if (ticket.isKept) this.#tellLost(ticket.lost);\n    else {\n      spool.done(ticket.segment);',
    tests,
  },
  {
    title: 'the two records of a run count as two that are lost',
    file: 'src/export/replay.ts',
    find: '(!ids.has(id) && ids.add(id))',
    replace: '!ids.has(id)',
    tests,
  },
  {
    title: 'a run whose end is damaged counts as sent',
    file: 'src/export/replay.ts',
    find: "this.#parts.corrupt(run, this.#unfinished.delete(run.id) ? 'unfinished' : 'earlier process');",
    replace: "if (!this.#unfinished.has(run.id)) this.#parts.corrupt(run, 'earlier process');",
    tests,
  },
  {
    title: 'an exporter that closes drops what the disk could keep',
    file: 'src/export/exporter.ts',
    find: '    this.#open.close();\n    this.#disk?.keep(this.#unsettled(), (delivery) => this.#leave(delivery));\n',
    replace: '    this.#open.close();\n',
    tests,
  },
];
