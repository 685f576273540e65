// Mistakes in the client of the control plane, each of which has to make a test fail.
const fields = 'src/clients/control-plane-fields.ts';
const fieldTests = ['test/clients/control-plane-fields.test.ts'];
const fieldCheck = 'src/clients/field-check.ts';
const rules = 'src/clients/deployment-rules.ts';
const checkTests = ['test/clients/request-check.test.ts'];
const api = 'src/clients/control-plane-api.ts';
const deployments = 'src/clients/deployments.ts';
const tests = ['test/clients/control-plane.test.ts'];
const watch = 'src/clients/revision-watch.ts';
const wait = 'src/clients/deployment-wait.ts';
const waitTests = ['test/clients/deployment-wait.test.ts'];
const upload = 'src/clients/source-upload.ts';
const uploadTests = ['test/clients/source-upload.test.ts'];
const ignoreRules = 'src/clients/ignore-rules.ts';
const archive = 'src/clients/source-archive.ts';
const files = 'src/clients/source-files.ts';
const archiveTests = ['test/clients/source-archive.test.ts'];

export const defects = [
  {
    title: 'a field is missing in the tables',
    file: fields,
    find: '    db_max_connections: WHOLE,\n',
    replace: '',
    tests: fieldTests,
  },
  {
    title: 'the tables bound limits of cores as cores',
    file: fields,
    find: 'const CPU_LIMIT = { ...CPU, max: 16 } as const;',
    replace: 'const CPU_LIMIT = CPU;',
    tests: fieldTests,
  },
  {
    title: 'the cache gets twice its memory as its limit',
    file: fields,
    find: "default: { field: 'redis_memory_mb', times: 1 }",
    replace: "default: { field: 'redis_memory_mb', times: 2 }",
    tests: ['test/clients/effective-resources.test.ts'],
  },
  {
    title: 'a bound is refused itself',
    file: fieldCheck,
    find: 'value < min',
    replace: 'value <= min',
    tests: checkTests,
  },
  {
    title: 'what is read-only is sent',
    file: fieldCheck,
    find: "  if (field.readOnly) return [mistake(place, 'Read-only: the service sets it')];\n",
    replace: '',
    tests: checkTests,
  },
  {
    title: 'an update changes what cannot be changed',
    file: fieldCheck,
    find: "  if (field.immutable && mode === 'patch') return [mistake(place, 'Cannot be changed')];\n",
    replace: '',
    tests: checkTests,
  },
  {
    title: 'null counts as given for fields of other sources',
    file: fieldCheck,
    find: '  return value !== undefined && value !== null;',
    replace: '  return value !== undefined;',
    tests: checkTests,
  },
  {
    title: 'only the first part of a tag is looked at',
    file: rules,
    find: "const TAG = 'refs/tags/';",
    replace: "const TAG = 'refs/';",
    tests: checkTests,
  },
  {
    title: 'an update may give what no source has together',
    file: rules,
    find: '    if (left.length > 0) possible',
    replace: '    if (left.length >= 0) possible',
    tests: checkTests,
  },
  {
    title: 'a list goes on where the offset does not advance',
    file: api,
    find: '!(next > from)',
    replace: 'next < from',
    tests,
  },
  {
    title: 'the values of secrets are in the runs of calls',
    file: api,
    find: '  const shown = withoutSecretValues(value);',
    replace: '  const shown = value;',
    tests,
  },
  {
    title: 'errors repeat the values of secrets',
    file: api,
    find: '      secrets: secretValuesOf(call.body),\n',
    replace: '',
    tests,
  },
  {
    title: 'the values of secrets are shown by inspect',
    file: api,
    find: '    return hideSecretValues(read);',
    replace: '    return read;',
    tests,
  },
  {
    title: 'names are taken for words of the service',
    file: 'src/clients/spelling.ts',
    find: "  for (const field of ['source', 'revision_source']) {",
    replace: "  for (const field of ['name', 'source', 'revision_source']) {",
    tests: ['test/clients/spelling.test.ts'],
  },
  {
    title: 'a deletion that was sent twice fails',
    file: 'src/clients/gone.ts',
    find: 'thrown.request.attempts > 1',
    replace: 'thrown.request.attempts > 2',
    tests,
  },
  {
    title: 'a creation says nothing of secrets where there are none',
    file: deployments,
    find: '  const body = { ...deployment, secrets: deployment.secrets ?? [] };',
    replace: '  const body = deployment;',
    tests,
  },
  {
    title: 'an interrupted revision is waited for',
    file: watch,
    find: "new Set(['SKIPPED', 'INTERRUPTED'])",
    replace: "new Set(['SKIPPED'])",
    tests: waitTests,
  },
  {
    title: 'each look is told as a change',
    file: watch,
    find: 'if (isChange) await this.#options.onStatus?.(revision);',
    replace: 'await this.#options.onStatus?.(revision);',
    tests: waitTests,
  },
  {
    title: 'a later revision goes unnoticed',
    file: watch,
    find: '    if (latestRevisionId === revisionId || latestRevisionId === this.#toldLatest) return false;',
    replace: '    if (latestRevisionId !== this.#toldLatest) return false;',
    tests: waitTests,
  },
  {
    title: 'a 404 is waited out for ever',
    file: watch,
    find: 'return this.#revision === undefined && this.#isEarly;',
    replace: 'return true;',
    tests: waitTests,
  },
  {
    title: 'an address that is wrong is waited for',
    file: watch,
    find: 'if (thrown instanceof ConnectionError) return this.#isReached || this.#isEarly;',
    replace: 'if (thrown instanceof ConnectionError) return true;',
    tests: ['test/clients/revision-watch.test.ts'],
  },
  {
    title: 'a wait does not heed Retry-After',
    file: watch,
    find: 'Math.max(this.#options.intervalMs ?? lookDelayMs(looks), this.#retryAfterMs)',
    replace: 'this.#options.intervalMs ?? lookDelayMs(looks)',
    tests: waitTests,
  },
  {
    title: 'a wait goes on when the client is closed',
    file: api,
    find: '    this.#waits.end(closed);\n',
    replace: '',
    tests: waitTests,
  },
  {
    title: 'an update waits for the revision that was there before',
    file: wait,
    find: 'latest === before ?',
    replace: 'latest === undefined ?',
    tests: waitTests,
  },
  {
    title: 'an update that makes no revision waits for the last one',
    file: 'src/clients/creates-revision.ts',
    find: '      ([name, one]) => isGiven(one) && controlPlaneFields[resource][name]?.makesRevision === true,',
    replace: '      ([, one]) => isGiven(one),',
    tests: waitTests,
  },
  {
    title: 'the key goes to the store',
    file: upload,
    find: '        headers: HEADERS,',
    replace: "        headers: { ...HEADERS, 'x-api-key': 'key' },",
    tests: uploadTests,
  },
  {
    title: 'errors repeat what signs the address of an upload',
    file: upload,
    find: 'secrets: [search, ...signing, ...decoded] };',
    replace: 'secrets: [] };',
    tests: uploadTests,
  },
  {
    title: 'an archive depends on when its files were written',
    file: archive,
    find: ' mtime: FILE_TIME,',
    replace: '',
    tests: archiveTests,
  },
  {
    title: 'an archive that is too large stays behind',
    file: archive,
    find: '    await remove();\n    throw thrown;',
    replace: '    throw thrown;',
    tests: archiveTests,
  },
  {
    title: 'links lead out of the source',
    file: files,
    find: '  if (isAbsolute(target) || isOutside(root, resolve(root, dirname(path), target))) return true;\n',
    replace: '',
    tests: archiveTests,
  },
  {
    title: 'the root decides over the .gitignore that is nearest',
    file: ignoreRules,
    find: '    if (ignored || unignored || this.#above === undefined)',
    replace: '    if (ignored || this.#above === undefined)',
    tests: archiveTests,
  },
  {
    title: 'patterns of .dockerignore hold in every directory',
    file: ignoreRules,
    find: '.add(`/',
    replace: '.add(`',
    tests: archiveTests,
  },
];
