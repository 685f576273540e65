// Mistakes in the chat application, each of which has to make a test fail. `npm run test:peers` has to have installed its packages.
const config = 'vitest.peers.config.ts';
const folder = 'examples/chat/server';
const page = 'examples/chat/page';
const tests = 'examples/chat/test';
const inRuns = { config, tests: [`${tests}/protocol/runs.test.ts`] };
const inWaiting = { config, tests: [`${tests}/protocol/waiting-runs.test.ts`] };
const inEvents = { config, tests: [`${tests}/protocol/run-events.test.ts`] };
const inStream = { config, tests: [`${tests}/http/event-stream.test.ts`] };
const inFilter = { config, tests: [`${tests}/http/subscription.test.ts`] };
const inRoutes = { config, tests: [`${tests}/http/protocol-routes.test.ts`] };
const inClient = { config, tests: [`${tests}/client.test.ts`] };
const inTraces = { config, tests: [`${tests}/tracing/traces.test.ts`] };
const inRules = { config, tests: [`${tests}/agent/local-rules.test.ts`] };
const inCalls = { config, tests: [`${tests}/page/call-status.test.ts`] };
const inStates = {
  config,
  tests: [
    `${tests}/protocol/state-writer.test.ts`,
    `${tests}/protocol/state-tail.test.ts`,
    `${tests}/http/state-reader.test.ts`,
  ],
};
const inLongThread = { config, tests: [`${tests}/long-thread.test.ts`] };
const inServiceModel = { config, tests: [`${tests}/agent/service-model.test.ts`] };
const inOutage = { config, tests: [`${tests}/store-outage.test.ts`] };
const inModel = { config, tests: [`${tests}/agent/model.test.ts`] };

export const defects = [
  {
    config,
    tests: [`${tests}/settings.test.ts`],
    title: 'an empty --host listens at every address',
    file: `${folder}/settings.ts`,
    find: "if (values[name] === '')",
    replace: "if (values[name] === ' ')",
  },
  {
    ...inOutage,
    title: 'a store that is away counts as a failure of the chat',
    file: `${folder}/http/fault.ts`,
    find: 'if (isAway(error)) {',
    replace: 'if (error.name === "away" && isAway(error)) {',
  },
  {
    ...inOutage,
    title: 'a command that a store is away for is answered as if it were understood',
    file: `${folder}/http/protocol-routes.ts`,
    find: 'return isAway ? context.json(answer, 503, RETRY_LATER)',
    replace: 'return isAway ? context.json(answer)',
  },
  {
    ...inServiceModel,
    title: 'readers are told the key that a service repeats',
    file: `${folder}/agent/service-model.ts`,
    find: 'new ModelError(this.#mask(said))',
    replace: 'new ModelError(said)',
  },
  {
    ...inServiceModel,
    title: 'the error of a service keeps the request that it was of',
    file: `${folder}/agent/service-model.ts`,
    find: 'return new ModelError(this.#mask(said));',
    replace: 'error.message = this.#mask(said);\n    return error;',
  },
  {
    ...inServiceModel,
    title: 'a model with tools is one of another kind',
    file: `${folder}/agent/service-model.ts`,
    find: 'const model = new ServiceModel(this.#fields, this.#mask);',
    replace: 'const model = new ChatOpenAI(this.#fields);',
  },
  {
    ...inRuns,
    title: 'a run that asks for input counts as completed',
    file: `${folder}/protocol/run-execution.ts`,
    find: "this.#events.isInputRequested ? 'interrupted' : 'completed'",
    replace: "'completed'",
  },
  {
    ...inRuns,
    title: 'a thread keeps the title of a branch that it has left',
    file: `${folder}/protocol/run-execution.ts`,
    find: "updatedAt }, 'renamed');",
    replace: 'updatedAt });',
  },
  {
    ...inRuns,
    title: 'a run is cancelled, and its agent is not told',
    file: `${folder}/protocol/run-execution.ts`,
    find: 'this.#state = state;\n    this.#stop.abort();',
    replace: 'this.#state = state;',
  },
  {
    ...inRuns,
    title: 'a thread is not told of a run whose events could not be kept',
    file: `${folder}/protocol/run-execution.ts`,
    find: 'await this.#endLater();',
    replace: '',
  },
  {
    ...inWaiting,
    title: 'a run that is urgent waits behind the others',
    file: `${folder}/protocol/runs.ts`,
    find: "interrupt: 'next',",
    replace: "interrupt: 'last',",
  },
  {
    ...inWaiting,
    title: 'a thread that is left while it is asked for is not asked for again',
    file: `${folder}/protocol/waiting-runs.ts`,
    find: '    bell.ring();\n    const lease',
    replace: '    const lease',
  },
  {
    ...inWaiting,
    title: 'a run that waits gives up where its store is away once',
    file: `${folder}/protocol/waiting-runs.ts`,
    find: ".catch(() => 'waiting')",
    replace: ".catch(() => 'lost')",
  },
  {
    ...inWaiting,
    title: 'a run that another instance has told of as interrupted begins all the same',
    file: `${folder}/protocol/waiting-runs.ts`,
    find: "if (lease === 'lost') {",
    replace: "if (lease === 'waiting') {",
  },
  {
    ...inWaiting,
    title: 'a run that was cancelled while it waited does its work',
    file: `${folder}/protocol/waiting-runs.ts`,
    find: "if (lease === 'cancelled') run.cancel();",
    replace: '',
  },
  {
    ...inWaiting,
    title: 'of the runs of a process that is gone one is told of at a time',
    file: `${folder}/protocol/runs.ts`,
    find: 'cut.length > 0; cut = await sessions.takeCutRuns()) {',
    replace: 'cut.length > 0; cut = []) {',
  },
  {
    ...inWaiting,
    title: 'nobody is told of the runs that wait when a server is closed',
    file: `${folder}/protocol/runs.ts`,
    find: 'for (const { threadId, runId } of waiting) await sessions.end(threadId, runId, this.#cut(runId));',
    replace: '',
  },
  {
    ...inWaiting,
    title: 'a run that is on its way when a server is closed is left behind',
    file: `${folder}/protocol/runs.ts`,
    find: 'await Promise.allSettled(this.#starting);',
    replace: '',
  },
  {
    ...inWaiting,
    title: 'a server begins runs while it is closed',
    file: `${folder}/protocol/runs.ts`,
    find: 'this.#isClosing = true;',
    replace: '',
  },
  {
    ...inRuns,
    title: 'a message to a thread that waits for an answer leaves the answer open',
    file: `${folder}/protocol/run-input.ts`,
    find: 'isAsking ? new Command({ resume: input }) : input',
    replace: 'input',
  },
  {
    ...inRuns,
    title: 'an approval is taken from whatever is said',
    file: `${folder}/agent/note-tool.ts`,
    find: "if (decision !== 'approve')",
    replace: "if (decision === 'decline')",
  },
  {
    ...inEvents,
    title: 'messages go out in the envelope of LangChain',
    file: `${folder}/protocol/plain-json.ts`,
    find: 'if (Message.isInstance(original)) return plainMessage(original);',
    replace: '',
  },
  {
    ...inEvents,
    title: 'an interrupt is asked for as often as the graph tells of it',
    file: `${folder}/protocol/run-events.ts`,
    find: 'this.#requested.has(id)',
    replace: 'id === undefined',
  },
  {
    ...inEvents,
    title: 'a tool that asks is told of as one that has failed',
    file: `${folder}/protocol/run-events.ts`,
    find: 'return isInterrupt(data) ? [] :',
    replace: 'return data === undefined ? [] :',
  },
  {
    ...inEvents,
    title: 'the graph tells of the end of the run before its last checkpoint is there',
    file: `${folder}/protocol/run-events.ts`,
    find: 'namespace.length === 0 ? [] : [make(method,',
    replace: 'namespace.length === -1 ? [] : [make(method,',
  },
  {
    ...inStream,
    title: 'events that come while a reader reads are forgotten until the next',
    file: `${folder}/protocol/bell.ts`,
    find: 'if (!this.#isRung) {',
    replace: 'this.#isRung = false;\n    if (!this.#isRung) {',
  },
  {
    ...inStream,
    title: 'a reader is not told of events that are no longer kept',
    file: `${folder}/http/event-stream.ts`,
    find: 'frames = missed(after, droppedThrough);',
    replace: '',
  },
  {
    ...inStream,
    title: 'a reader who left is told of events for ever',
    file: `${folder}/http/event-stream.ts`,
    find: 'isOver = true;\n        unwatch();',
    replace: 'isOver = true;',
  },
  {
    ...inStream,
    title: 'what is not for a reader stands for a heartbeat',
    file: `${folder}/http/event-stream.ts`,
    find: 'const leftMs = heartbeatAt - performance.now();',
    replace: 'const leftMs = heartbeatAt > 0 ? HEARTBEAT_MS : 0;',
  },
  {
    ...inStates,
    title: 'a state is said to keep messages that have changed',
    file: `${folder}/protocol/logged-state.ts`,
    find: 'other !== some[place]',
    replace: 'some[place] === undefined && other !== undefined',
  },
  {
    ...inStates,
    title: 'a state never has all of its messages again, however much has come since',
    file: `${folder}/protocol/state-writer.ts`,
    find: ' || this.#events >= STATE_EVENTS_MAX || this.#chars >= chars;',
    replace: ';',
  },
  {
    ...inStates,
    title: 'a task is taken for the state that the next one is based on',
    file: `${folder}/protocol/state-writer.ts`,
    find: "if (method !== 'values')\n",
    replace:
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a file.
      "if (method !== 'values') this.#last = { id: `${this.#runId}/${this.#states}`, messages };\n    if (method !== 'values')\n",
  },
  {
    ...inStates,
    title: 'messages are added to whatever state was read last',
    file: `${folder}/protocol/logged-state.ts`,
    find: 'return state.base === base?.id ?',
    replace: 'return base !== undefined ?',
  },
  {
    ...inStates,
    title: 'a reader of changes is shown nothing but changes',
    file: `${folder}/http/state-reader.ts`,
    find: 'if (isNext) return changedBody(marked);',
    replace: 'if (isNext || base !== undefined) return changedBody(marked);',
  },
  {
    ...inStates,
    title: 'all states that have been are sent whole, however many',
    file: `${folder}/http/state-reader.ts`,
    find: 'total >= STATES_CHARS_MAX ? undefined :',
    replace: 'total < 0 ? undefined :',
  },
  {
    ...inStates,
    title: 'a state is looked for no further back than one page',
    file: `${folder}/protocol/state-tail.ts`,
    find: 'before - last <= EVENTS_MAX;',
    replace: 'before - last <= PAGE_EVENTS;',
  },
  {
    ...inStream,
    title: 'a reader is not told of states that are missing',
    file: `${folder}/http/event-stream.ts`,
    find: 'missedAfter ??= event.seq - 1;',
    replace: 'missedAfter = undefined;',
  },
  {
    ...inStream,
    title: 'a reader of tasks alone has them without the messages that stay',
    file: `${folder}/http/event-stream.ts`,
    find: 'const reader = isValues ? values : states;',
    replace: 'const reader = values;',
  },
  {
    ...inLongThread,
    title: 'a run does not go on where the log of its thread has ended',
    file: `${folder}/protocol/run-execution.ts`,
    find: 'if (tail !== undefined) this.#events.goOn(tail);',
    replace: '',
  },
  {
    ...inLongThread,
    title: 'the history has all messages with each state',
    file: `${folder}/protocol/thread-state.ts`,
    find: 'const kept = sameAtStart(shown, texts);',
    replace: 'const kept = 0;',
  },
  {
    ...inRules,
    title: 'the rules repeat a book word by word',
    file: `${folder}/agent/local-rules.ts`,
    find: 'const topic = cut(question, QUOTED_CHARS_MAX);',
    replace: 'const topic = question;',
  },
  {
    ...inFilter,
    title: 'a depth counts from the root, and not from the namespace that is asked for',
    file: `${folder}/http/subscription.ts`,
    find: 'namespace.length - prefix.length <= depth',
    replace: 'namespace.length <= depth',
  },
  {
    ...inRoutes,
    title: 'a body is read whatever its type',
    file: `${folder}/http/bodies.ts`,
    find: "if (!/^application\\/([\\w.+-]+\\+)?json\\b/i.test(context.req.header('content-type') ?? '')) {",
    replace: 'if (false) {',
  },
  {
    ...inRoutes,
    title: 'a client is told the reason of a failure that nobody has foreseen',
    file: `${folder}/protocol/commands.ts`,
    find: "message: 'The command failed; the log of the server says why.',",
    replace: 'message: (error as Error).message,',
  },
  {
    ...inRoutes,
    title: 'a checkpoint leads to the thread that it names',
    file: `${folder}/protocol/thread-state.ts`,
    find: 'configurable: { thread_id: threadId, checkpoint_ns,',
    replace: 'configurable: { thread_id: threadId, ...place, checkpoint_ns,',
  },
  {
    ...inClient,
    title: 'a run begins, by what the command says, with the events of the one before',
    file: `${folder}/protocol/commands.ts`,
    find: 'applied_through_seq: afterSeq',
    replace: 'applied_through_seq: 0',
  },
  {
    ...inTraces,
    title: 'a run does not join the trace of whoever asked for it',
    file: `${folder}/protocol/runs.ts`,
    find: 'const caller = fromHeaders(request.headers);',
    replace: 'const caller = fromHeaders({});',
  },
  {
    ...inTraces,
    title: 'what is to be hidden is kept of the turns of the page',
    file: `${folder}/tracing/trace-service.ts`,
    find: '...run, ...hidden,',
    replace: '...hidden, ...run,',
  },
  {
    ...inTraces,
    title: 'what is said of a run once more is said beside what was said before',
    file: `${folder}/tracing/trace-service.ts`,
    find: 'feedbackId: runIdFrom(',
    replace: 'feedbackId: ((_: string) => crypto.randomUUID())(',
  },
  {
    ...inRules,
    title: 'the rules quote lines of commands',
    file: `${folder}/agent/local-rules.ts`,
    find: 'share >= 0.5 && isProse(beginning)',
    replace: 'share >= 0.5',
  },
  {
    ...inRules,
    title: 'the rules answer with what has little to do with the question',
    file: `${folder}/agent/local-rules.ts`,
    find: 'share >= 0.5 && isProse(beginning)',
    replace: 'isProse(beginning)',
  },
  {
    ...inModel,
    title: 'a model is given calls that nothing has answered',
    file: `${folder}/agent/tool-loop.ts`,
    find: 'messages: [await asked.invoke([system, ...allAnswered(messages)], config)],',
    replace: 'messages: [await asked.invoke([system, ...messages], config)],',
  },
  {
    ...inCalls,
    title: 'a call that was left begins to spin again with the next run',
    file: `${page}/call-status.ts`,
    find: "if (!isLive) return 'stopped';",
    replace: '',
  },
];
