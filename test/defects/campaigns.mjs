// Mistakes in what happens at the edges of a process's life, which the durability model and its neighbours find.
export const defects = [
  {
    title: 'a closing exporter reads back what it leaves on disk',
    file: 'src/export/disk.ts',
    find: '    // It would take back what is written here.\n    this.#replay.close();\n',
    replace: '',
    tests: ['test/export/durability.test.ts'],
  },
  {
    title: 'a flush calls delivered what closing has left on disk',
    file: 'src/export/exporter.ts',
    find: 'const pending = isInTime ? (this.#disk?.keptRuns ?? 0) : this.#pending;',
    replace: 'const pending = isInTime ? 0 : this.#pending;',
    tests: ['test/export/durability.test.ts'],
  },
];
