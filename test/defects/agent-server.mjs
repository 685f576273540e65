// Mistakes in the client of agent servers, and in reading server-sent events, each of which has to make a test fail.
const feed = 'src/clients/event-feed.ts';
const connection = 'src/clients/stream-connection.ts';
const stream = 'src/clients/run-stream.ts';
const service = 'src/clients/agent-service.ts';
const sse = 'src/http/event-stream.ts';

const faults = ['test/clients/agent-server-faults.test.ts'];
const streams = ['test/clients/run-stream.test.ts'];
const traces = ['test/clients/stream-trace.test.ts'];
const calls = ['test/clients/agent-server.test.ts'];
const events = ['test/http/event-stream.test.ts'];

export const defects = [
  {
    title: 'a run is made again after 500',
    file: 'src/clients/retry-delay.ts',
    find: '!(isIdempotent || status === 429)',
    replace: '!(isIdempotent || status >= 429)',
    tests: faults,
  },
  {
    title: 'a stream goes on although the server keeps nothing',
    file: stream,
    find: 'if (request.isKept !== true && request.lastEventId === undefined) return undefined;',
    replace: '',
    tests: faults,
  },
  {
    title: 'a stream goes on from its beginning',
    file: feed,
    find: "this.#lastId === '' && call.method === 'POST' ? '-1' : this.#lastId",
    replace: "'-1'",
    tests: faults,
  },
  {
    title: 'what is sent again behind a break is given again',
    file: feed,
    find: '        if (isRepeated) continue;\n',
    replace: '',
    tests: faults,
  },
  {
    title: 'an event without an id of its own is taken for the last one, and passed over',
    file: feed,
    find: "isFirst && item.event.hasOwnId && known !== ''",
    replace: "isFirst && known !== ''",
    tests: faults,
  },
  {
    title: 'attempts to go on are not counted anew',
    file: feed,
    find: '        this.#connection.worked();\n',
    replace: '',
    tests: faults,
  },
  {
    title: 'the key follows a Location to another origin',
    file: 'src/clients/resumption.ts',
    find: '  if (origin !== base.origin) return undefined;\n',
    replace: '',
    tests: faults,
  },
  {
    title: 'a stream is not ended by silence when there were heartbeats',
    file: connection,
    find: "if (item.kind === 'comment') this.#sawHeartbeat = true;",
    replace: '',
    tests: faults,
  },
  {
    title: 'the signal of a call keeps its listener',
    file: connection,
    find: "    this.#signal?.removeEventListener('abort', this.#abort);\n    this.#ending.abort();",
    replace: '    this.#ending.abort();',
    tests: faults,
  },
  {
    title: 'a stream whose head was refused keeps its listener',
    file: connection,
    find: "      signal?.removeEventListener('abort', abort);\n      throw thrown;",
    replace: '      throw thrown;',
    tests: faults,
  },
  {
    title: 'a page is read as a stream',
    file: connection,
    find: '  if (/^text\\/event-stream\\b/i.test(type)) return head;',
    replace: "  if (type !== '') return head;",
    tests: faults,
  },
  {
    title: 'the wait for a run ends though the server keeps the connection',
    file: 'src/clients/run-wait.ts',
    find: '      clearTimer(timer);\n      timer = arm();\n',
    replace: '',
    tests: faults,
  },
  {
    title: 'a failed run is told of as what it came to',
    file: 'src/clients/run-wait.ts',
    find: '  if (error === undefined) return data as Values;',
    replace: '  if (error !== null) return data as Values;',
    tests: [...faults, ...calls],
  },
  {
    title: 'a client that is closed in a pause makes a stream go on',
    file: connection,
    find: '        if (this.#api.isClosed) throw new FeedBreak(problem, CLOSED, { cause: thrown });\n',
    replace: '',
    tests: faults,
  },
  {
    title: 'a stream with the error of its run ends well',
    file: stream,
    find: "this.#finish(this.#runError === undefined ? 'clean' : { error: this.#failure() })",
    replace: "this.#finish('clean')",
    tests: streams,
  },
  {
    title: 'a break behind the error of a run hides it',
    file: stream,
    find: "(event.event === 'error' || event.event === 'end')) this.#feed.isOver = true;",
    replace: "event.event === 'end') this.#feed.isOver = true;",
    tests: streams,
  },
  {
    title: 'a stream is given to two readers',
    file: stream,
    find: "if (this.#reader !== 'none') throw unreadable",
    replace: "if (this.#reader === 'left') throw unreadable",
    tests: streams,
  },
  {
    title: 'feedback reads ahead without bounds',
    file: 'src/clients/event-queue.ts',
    find: 'return this.#characters >= WAITING_CHARACTERS_MAX;',
    replace: 'return false;',
    tests: streams,
  },
  {
    title: 'a stream that is left lying keeps its connection',
    file: stream,
    find: '    leftLying.register(this, feed);\n',
    replace: '',
    tests: streams,
  },
  {
    title: 'data that is no JSON ends the stream',
    file: 'src/clients/agent-event.ts',
    find: '  } catch {\n    return undefined;\n  }',
    replace: '  } catch (thrown) {\n    throw thrown;\n  }',
    tests: streams,
  },
  {
    title: 'addresses for feedback are recorded',
    file: 'src/clients/stream-trace.ts',
    find: "kind === 'metadata' || kind === 'feedback' || kind === 'end'",
    replace: "kind === 'metadata' || kind === 'end'",
    tests: traces,
  },
  {
    title: 'the state of a subgraph is recorded as that of the graph',
    file: 'src/clients/stream-trace.ts',
    find: "event === 'values' && namespace.length === 0",
    replace: "event === 'values'",
    tests: traces,
  },
  {
    title: 'the server is told of a run though it is not to be',
    file: service,
    find: 'if (!this.#propagate || !isInRun()) return {};',
    replace: 'if (!isInRun()) return {};',
    tests: traces,
  },
  {
    title: 'the baggage of the client is lost',
    file: service,
    find: 'toHeaders(undefined, this.#headers)',
    replace: 'toHeaders()',
    tests: traces,
  },
  {
    title: 'a service that does not move on is asked for ever',
    file: service,
    find: 'const hasNext = next !== undefined && next > offset;',
    replace: 'const hasNext = next !== undefined && items.length < 1_000 && offset < 50;',
    tests: calls,
  },
  {
    title: 'an id of a path may be empty',
    file: service,
    find: '  checkIds(call, Object.assign({}, ...ids));\n',
    replace: '',
    tests: calls,
  },
  {
    title: 'an id of two dots is sent, encoded, which proxies take for the folder above',
    file: 'src/clients/body-rules.ts',
    find: "id !== '.' && id !== '..'",
    replace: "id !== '.'",
    tests: calls,
  },
  {
    title: 'the other half of CRLF in the next chunk ends a line',
    file: sse,
    find: "    if (this.#endedByCr && text.startsWith('\\n')) text = text.slice(1);\n",
    replace: '',
    tests: events,
  },
  {
    title: 'an id without data is forgotten',
    file: sse,
    find: "    if (line === '') this.#lastId = this.#nextId;\n",
    replace: "    if (line === '' && this.#characters === -1) this.#lastId = this.#nextId;\n",
    tests: events,
  },
  {
    title: 'characters that are cut in two are broken',
    file: sse,
    find: 'this.#decoder.decode(chunk, { stream: true })',
    replace: 'this.#decoder.decode(chunk)',
    tests: events,
  },
  {
    title: 'an event may be of any length',
    file: sse,
    find: '    if (this.#characters + begun <= this.#charactersMax) return;',
    replace: '    if (this.#charactersMax > 0) return;',
    tests: events,
  },
];
