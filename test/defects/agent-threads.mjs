// Mistakes in the client of threads, each of which has to make a test fail.
const feed = 'src/clients/thread-feed.ts';
const seen = 'src/clients/seen-events.ts';
const events = 'src/clients/thread-events.ts';
const threads = 'src/clients/agent-threads.ts';
const states = 'src/clients/thread-states.ts';
const command = 'src/clients/thread-command.ts';
const refusal = 'src/clients/command-error.ts';
const assembler = 'src/clients/message-assembler.ts';

const feeds = ['test/clients/thread-feed.test.ts'];
const calls = ['test/clients/agent-threads.test.ts'];
const parts = ['test/clients/seen-events.test.ts'];
const messages = ['test/clients/message-assembler.test.ts'];
const forms = ['test/clients/thread-event-form.test.ts'];

export const defects = [
  {
    title: 'a run whose events a server has lost is waited for for ever',
    file: feed,
    find: 'this.#isDoubtful && this.#options.isOfRun',
    replace: 'this.#isDoubtful && !this.#options.isOfRun',
    tests: feeds,
  },
  {
    title: 'a stream of a thread goes on behind its last event, and cannot tell whether the server has kept it',
    file: feed,
    find: 'since: (lastSeq ?? 0) - 1',
    replace: 'since: lastSeq ?? 0',
    tests: feeds,
  },
  {
    title: 'whatever comes first after a break is where the stream goes on',
    file: feed,
    find: 'if (this.#isUnproven && !this.#proves(event)) return this.#doubt();',
    replace: 'this.#isUnproven = false;',
    tests: feeds,
  },
  {
    title: 'a server that says nothing after a break is waited for',
    file: feed,
    find: 'this.#isUnproven ? PROOF_MS : undefined',
    replace: 'undefined',
    tests: feeds,
  },
  {
    title: 'heartbeats stand for the last event',
    file: feed,
    find: '        if (this.#isUnproven && heartbeats > PROOF_HEARTBEATS) return this.#doubt();\n',
    replace: '',
    tests: feeds,
  },
  {
    title: 'what is told to be missed makes the stream begin anew',
    file: feed,
    find: '!(this.#seen.isHighest(event) || missedEvents(event) !== undefined)',
    replace: '!this.#seen.isHighest(event)',
    tests: feeds,
  },
  {
    title: 'events that are sent again count as a connection that works',
    file: feed,
    find: '        if (!this.#seen.take(event)) continue;\n        this.#connection.worked();\n',
    replace: '        this.#connection.worked();\n        if (!this.#seen.take(event)) continue;\n',
    tests: feeds,
  },
  {
    title: 'a quiet thread is given up though its server is there',
    file: feed,
    find: 'this.#connection.worked();\n  }',
    replace: '}',
    tests: feeds,
  },
  {
    title: 'an attempt to get all events forgets why it was made',
    file: feed,
    find: '    const { lastSeq } = this;\n',
    replace: '    const { lastSeq } = this;\n    queueMicrotask(() => {\n      this.#isDoubtful = false;\n    });\n',
    tests: feeds,
  },
  {
    title: 'events of a server that counts anew are taken for old ones',
    file: seen,
    find: 'if (isKnown && !isLater) return false;',
    replace: 'if (isKnown) return false;',
    tests: [...parts, ...feeds],
  },
  {
    title: 'an event of the same time counts as later',
    file: seen,
    find: 'timestamp > (this.#latestMs ?? timestamp);',
    replace: 'timestamp >= (this.#latestMs ?? timestamp);',
    tests: parts,
  },
  {
    title: 'events before the window are forgotten',
    file: seen,
    find: 'if (seq !== undefined) this.#floor = Math.max(this.#floor, seq);',
    replace: '',
    tests: parts,
  },
  {
    title: 'the end of another run ends the events of this one',
    file: events,
    find: 'if (run !== undefined && !isOf(run, event)) continue;',
    replace: '',
    tests: calls,
  },
  {
    title: 'the end of a subagent ends the events of a run',
    file: events,
    find: "event.method !== 'lifecycle' || event.params.namespace.length > 0",
    replace: "event.method !== 'lifecycle'",
    tests: calls,
  },
  {
    title: 'events of a run go without what ends them',
    file: events,
    find: "run === undefined || channels.includes('lifecycle') ? channels",
    replace: "run === undefined || channels.includes('values') ? channels",
    tests: calls,
  },
  {
    title: 'a run that fails ends well',
    file: events,
    find: '        if (failure !== undefined) throw failure;\n',
    replace: '',
    tests: [...calls, ...feeds],
  },
  {
    title: 'to leave the events waits for the next one',
    file: events,
    find: '        await this.close();\n        return events.return();',
    replace: '        const left = await events.return();\n        await this.close();\n        return left;',
    tests: feeds,
  },
  {
    title: 'the interruption before an answer ends what goes on with it',
    file: threads,
    find: 'wanted.since ?? run.applied_through_seq',
    replace: 'wanted.since',
    tests: calls,
  },
  {
    title: 'options of events are looked at when the run is under way',
    file: threads,
    find: '    const { options } = eventsOptions(name, wanted);\n',
    replace: '    const options = given;\n',
    tests: calls,
  },
  {
    title: 'a run whose events cannot be opened is lost to whoever has started it',
    file: threads,
    find: 'throw toldUnopened(thrown, { runId: run.run_id, threadId });',
    replace: 'throw thrown;',
    tests: calls,
  },
  {
    title: 'any refusal of a state makes a thread',
    file: states,
    find: '!(thrown instanceof ApiError && thrown.status === 404)',
    replace: '!(thrown instanceof ApiError && thrown.status === 405)',
    tests: calls,
  },
  {
    title: 'a history that does not move on is asked for ever',
    file: states,
    find: ' && next !== body.before;',
    replace: ';',
    tests: calls,
  },
  {
    title: 'a run without an id is started',
    file: command,
    find: "method === 'run.start' && run.run_id === undefined",
    replace: "method === 'run.start' && data === undefined",
    tests: calls,
  },
  {
    title: 'a checkpoint takes the place of the configuration',
    file: command,
    find: '{ ...(configurable as object), checkpoint_id }',
    replace: '{ checkpoint_id }',
    tests: calls,
  },
  {
    title: 'a refused command shows the key that the server repeats',
    file: refusal,
    find: '? masked(body.message) : undefined;',
    replace: '? body.message : undefined;',
    tests: calls,
  },
  {
    title: 'a server that is overloaded has refused the command',
    file: refusal,
    find: 'if (status >= 500 || status === 429) return thrown;',
    replace: '',
    tests: calls,
  },
  {
    title: 'messages of one place that come at the same time run into each other',
    file: assembler,
    find: "typeof data.run_id === 'string' ? data.run_id : null",
    replace: 'null',
    tests: messages,
  },
  {
    title: 'a message changes under the hands of whoever has it',
    file: assembler,
    find: 'new Map(this.#parts.blocks).set(index, block)',
    replace: '(this.#parts.blocks as Map<number, ContentBlock>).set(index, block)',
    tests: messages,
  },
  {
    title: 'a broken event is taken for the one before it',
    file: 'src/clients/thread-event-form.ts',
    find: '...(hasOwnId && idOf(id))',
    replace: '...idOf(id)',
    tests: [...forms, ...feeds],
  },
  {
    title: 'an event of a later version is taken for one that is known',
    file: 'src/clients/thread-event-form.ts',
    find: "form?.(params.data) === true ? method : 'other'",
    replace: "form !== undefined ? method : 'other'",
    tests: forms,
  },
  {
    title: 'an id in a path leads to another path',
    file: 'src/clients/thread-paths.ts',
    find: "pathOf(ids[name] ?? '').slice(1)",
    replace: "ids[name] ?? ''",
    tests: ['test/clients/thread-paths.test.ts'],
  },
  {
    title: 'a path may have no place for its id',
    file: 'src/clients/thread-paths.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a file.
    find: ' && `${idsOf(path)}` === `${ids}`',
    replace: '',
    tests: ['test/clients/thread-paths.test.ts'],
  },
];
