// What can go wrong, and what is required of the library then. A test proves a row when its title ends in `[fault N]`;
// docs/faults.md is made of this table, and scripts/test.mjs holds that every row has such a test. `simulated` says what
// stands for a fault that a test cannot bring about.

export const groups = [
  {
    title: 'What a service answers',
    faults: [
      {
        number: 1,
        fault: '200, 202 or 204, with any body or none',
        required: 'The runs count as sent. At most 64 KiB of the response body are read, without waiting for the rest.',
      },
      {
        number: 2,
        fault: 'A redirect: 301, 302, 303, 307 or 308',
        required:
          'It is not followed, so that the key is sent to no other host, and does not count as delivery. The runs are kept, the endpoint is probed as for 401, and one line says to check the endpoint.',
      },
      {
        number: 3,
        fault: '400: a run in the batch is malformed',
        required:
          'The batch is halved until the malformed run is isolated. That run is dropped (`rejected`), the others arrive, and the number of requests grows with the logarithm of the batch size. If the endpoint accepts no run of two batches, the runs are kept, and the endpoint is probed as for 401.',
      },
      {
        number: 4,
        fault: '401',
        required:
          'The runs are kept, and one line says so. The endpoint is probed after 1 s, 5 s and 30 s, then at most every 5 minutes, as well as when `configure` sets another key, and twice during a flush. Queued runs arrive once the key is accepted.',
      },
      {
        number: 5,
        fault: '402, 403, 407, 421, 423, 451, 499, 511',
        required: 'As for 401: each batch in flight is sent at most once per pause, never in a loop.',
      },
      {
        number: 6,
        fault: '404, 405 or 501 for `POST /runs/multipart`',
        required:
          'The same batch is sent as single runs, each post before its patch, and nothing is lost. Multipart is tried again after 1 s, 5 s and 30 s, then at most every 10 minutes.',
      },
      {
        number: 7,
        fault: '404 for `PATCH /runs/{id}`',
        required:
          'A patch is held back until its post was accepted, so none comes too early. If the service does not know the run all the same, that run alone is dropped (`rejected`).',
      },
      {
        number: 8,
        fault: '404 for `POST /runs` as well',
        required:
          'The endpoint is wrong: the runs are kept, the endpoint is probed as for 401, and one line names both routes.',
      },
      { number: 9, fault: '408', required: 'The same runs are sent again after a back-off.' },
      {
        number: 10,
        fault: '409',
        required:
          'A single run counts as sent: it arrived in an earlier attempt whose response was lost. A batch is halved.',
      },
      {
        number: 11,
        fault: '413',
        required:
          'The batch is halved, and later batches are smaller for a while. A single run goes once more without its attachments, then with a marker for its payloads, and is then dropped (`too_large`).',
      },
      {
        number: 12,
        fault: '415',
        required:
          'A compressed batch goes once more uncompressed, as do later ones. Refused like that too, it goes by single runs.',
      },
      {
        number: 13,
        fault: '422',
        required:
          'Every request has a `Content-Length`, so a service that takes no streamed upload has no reason for it. Else it is treated as 400.',
      },
      { number: 14, fault: '425', required: 'The same runs are sent again after a back-off.' },
      {
        number: 15,
        fault: '429 with `Retry-After` in seconds',
        required:
          'Nothing at all is sent to that service before then, for at most five minutes. The pause does not count towards the age of what waits.',
      },
      {
        number: 16,
        fault: '429 with `Retry-After` as a date',
        required:
          'It is taken against the `Date` of the answer, or the clock of the process where there is none. A moment that has passed is a pause of one second.',
      },
      {
        number: 17,
        fault: '`Retry-After` of zero, negative, fractional, huge, a list, or no time at all',
        required:
          'What is a time is brought within one second and five minutes; anything else counts as no header. No delay is longer than a timer can be, which would fire at once.',
      },
      {
        number: 18,
        fault: '429 without `Retry-After`',
        required: 'The same runs are sent again after a back-off that doubles up to its limit, with full jitter.',
      },
      {
        number: 19,
        fault: '5xx except 501 and 511',
        required:
          'The same runs are sent again; `Retry-After` is honoured. 501 is treated as a missing route, 511 as 401.',
      },
      {
        number: 20,
        fault: 'A status that nobody knows',
        required: 'Any other 4xx is final (`rejected`), the rest is tried again, and nothing throws.',
      },
      {
        number: 21,
        fault: '5xx for one batch, for ever',
        required:
          'It is given up (`expired`) after 15 minutes in memory, or a day on disk, pauses aside. Other batches go on meanwhile.',
      },
    ],
  },
  {
    title: 'Network and time',
    faults: [
      {
        number: 22,
        fault: 'The connection is refused',
        required:
          'The runs are kept and sent again, with growing pauses. One line for the outage, and one when delivery works again.',
      },
      {
        number: 23,
        fault: 'The connection breaks while a body is being sent',
        required: 'The same runs are sent again, under the same ids.',
      },
      {
        number: 24,
        fault: 'The connection breaks after the request and before its answer',
        required: 'The same runs are sent again: they may arrive twice, under the same ids.',
      },
      {
        number: 25,
        fault: 'A response that stalls, or arrives byte by byte',
        required:
          'The deadline of the request also covers the response body. When runs are sent, the status of the response decides, and its body is read for at most one second.',
      },
      {
        number: 26,
        fault: 'The connection is accepted and never answered',
        required: 'The deadline ends it and frees its place; other batches go on meanwhile.',
      },
      {
        number: 27,
        fault: 'The other side has vanished',
        required: 'The deadline ends the request, and the socket is not used again.',
        simulated: 'a server that reads nothing stands for a cable that was pulled',
      },
      {
        number: 28,
        fault: 'The name of the host is not found, or the resolver is away',
        required: 'The runs are kept and sent again, and one line has the code of the failure.',
        simulated: 'the answer of the resolver is given by the test, or the name is of a domain that cannot exist',
      },
      {
        number: 29,
        fault: 'The certificate has expired, is self-signed, or is for another host; or it is no TLS',
        required: 'The runs are kept and one line has the code of the failure. No option turns the verification off.',
      },
      {
        number: 30,
        fault: 'The service closes a kept connection just as it is used',
        required: 'The same runs are sent again over a new one, and nothing is lost.',
      },
      {
        number: 31,
        fault: 'An answer that is no HTTP, or is cut off',
        required: 'The same runs are sent again.',
      },
      {
        number: 32,
        fault: 'An answer that is huge, or grows when it is unpacked',
        required: 'At most 64 KiB are read; the status alone decides.',
      },
      {
        number: 33,
        fault: '200 with a web page, as of a login',
        required: 'It counts as delivered, like any 2xx, and one line says that the endpoint answers with a web page.',
      },
      {
        number: 34,
        fault: '`GET /info` answers with nonsense, too much, or not at all',
        required:
          'The defaults hold; what is a number is brought within bounds. Nothing waits for it, neither a call nor a batch.',
      },
      {
        number: 35,
        fault: 'The service restarts under load',
        required: 'Nothing is lost while the queue has room.',
      },
      {
        number: 36,
        fault: 'A service that takes a part of a batch',
        required:
          'Any 2xx is for the whole batch, as the interface knows no answer for each record. By single runs each has its own answer, and what was refused is treated alone.',
      },
      {
        number: 37,
        fault: 'The service has taken the runs and answers 500',
        required: 'They are sent again under the same ids, so that each is one run.',
      },
      {
        number: 38,
        fault: 'Delivered again after a crash',
        required:
          'The same id and the same place in the trace; a record tells all of its run and not a difference, so it may come twice.',
      },
      {
        number: 39,
        fault: 'The wall clock is set forwards or backwards',
        required:
          'Durations, deadlines, pauses and ages come from the monotonic clock, and no run ends before its start.',
        simulated: 'the clock is one of the test',
      },
      {
        number: 40,
        fault: 'The machine sleeps, and timers fire late',
        required:
          'What is due is sent in its order and within the requests in flight. A pause that is over is over, and one that is not goes on.',
        simulated: 'the clock is one of the test',
      },
    ],
  },
  {
    title: 'Load',
    faults: [
      {
        number: 41,
        fault: 'More runs than the service takes',
        required:
          'The queue is bounded in runs and bytes. At the limit new traces are refused whole (`queue_full`); runs of accepted ones are taken up to 1.25 times that, and beyond it ends are kept without payloads.',
      },
      {
        number: 42,
        fault: 'Encoding keeps the event loop busy',
        required:
          'A payload is bounded before it is written, and batches are laid one for each turn of the event loop.',
      },
    ],
  },
  {
    title: 'The end of the process',
    faults: [
      {
        number: 43,
        fault: 'The program ends by itself',
        required: 'What is queued is delivered within 2 seconds. Nothing else of ours keeps the process alive.',
      },
      {
        number: 44,
        fault: '`process.exit()`',
        required:
          'With `spill` and `write-ahead` what is left is on disk; in `memory` it is lost, and one line says how much.',
      },
      {
        number: 45,
        fault: '`process.exit()` within `beforeExit` or `exit`',
        required: 'The same, once, and the exit code is that of the program.',
      },
      {
        number: 46,
        fault: 'An uncaught exception',
        required:
          'Exit code and error text are those of the program without tracing, but for the line on what is lost. What is kept is as for `process.exit()`.',
      },
      {
        number: 47,
        fault: 'An unhandled rejection',
        required: 'The same; none is ever ours, and none is handled by us.',
      },
      {
        number: 48,
        fault: 'SIGTERM or SIGINT, and the program has no handler',
        required:
          'No handler is installed unasked. With `handleSignals` what is queued is delivered within 2 seconds or goes to disk, and the process ends by the same signal.',
      },
      {
        number: 49,
        fault: 'SIGTERM, and the program has a handler',
        required: 'Nothing of ours happens; the handler may call `shutdown({ timeoutMs })`.',
      },
      {
        number: 50,
        fault: 'Ctrl-C a second time, while we deliver',
        required: 'The process ends at once.',
      },
      {
        number: 51,
        fault: 'SIGKILL, or no memory left',
        required:
          'With `write-ahead`, every run whose call had returned is delivered by the next process that reaches the service, even if other processes are killed first. With `memory` the runs are lost; with `spill`, those that were not yet on disk.',
        simulated: 'SIGKILL stands for the kernel that is out of memory',
      },
      {
        number: 52,
        fault: 'Power is lost',
        required:
          'What the system had not yet written is lost, as nothing asks it to. What is left is read, and a torn record costs only itself.',
        simulated: 'the bytes that were not yet on disk are taken away by the test',
      },
      {
        number: 53,
        fault: 'A worker thread of ours dies',
        required: 'There is none: encoding and sending need no thread, so none can fail.',
      },
      {
        number: 54,
        fault: 'Tracing within a worker thread that is terminated',
        required:
          'Its exporter has a folder of its own in the spool, which another process takes over. No handler of signals is installed by a worker.',
      },
    ],
  },
  {
    title: 'The spool',
    faults: [
      {
        number: 55,
        fault: 'The disk is full',
        required:
          'Runs stay in memory, one line says so, and the disk is tried again later. When the process ends, as many are kept as fit, the oldest first. What was delivered can be deleted all the same.',
        simulated: 'the file system of the test answers ENOSPC',
      },
      {
        number: 56,
        fault: 'The folder cannot be made or written',
        required: 'Runs stay in memory, and one line says so. Nothing throws.',
        simulated: 'a file stands where the folder should be, as root may write anywhere',
      },
      {
        number: 57,
        fault: 'No file descriptors are left',
        required: 'Runs stay in memory, and the spool is tried again later.',
        simulated: 'the file system of the test answers EMFILE',
      },
      {
        number: 58,
        fault: 'An error of the disk, or a write that is cut short',
        required: 'What was written before is kept, and writing goes on in another file.',
        simulated: 'the file system of the test answers EIO, or writes less than it was given',
      },
      {
        number: 59,
        fault: 'Torn, changed, empty and foreign files',
        required:
          'What is whole is read. The rest is set aside within bounds and dropped (`corrupt`): the runs that can still be told apart, and one for a stretch where none can. Nothing throws, loops or takes memory by what a file says.',
      },
      {
        number: 60,
        fault: 'A spool of another version',
        required: 'It is left as it is, and one line says so.',
      },
      {
        number: 61,
        fault: 'Several processes share the folder',
        required: 'Each has a folder of its own; what a dead one has left is taken over by exactly one.',
      },
      {
        number: 62,
        fault: 'A process id is used again, or is always 1',
        required: 'Whether an owner is alive is not told by its process id alone.',
        simulated: 'owners are laid out by the test',
      },
      {
        number: 63,
        fault: 'Child processes and cluster',
        required: 'Each process has a folder of its own; none shares a file or delivers for one that is alive.',
      },
      {
        number: 64,
        fault: 'The spool is over its limit at the start',
        required: 'It is delivered all the same, oldest first; only new records are refused.',
      },
      {
        number: 65,
        fault: 'The folder is deleted while it is in use',
        required: 'It is made again, and nothing throws.',
      },
      {
        number: 66,
        fault: 'A network file system; a link in the place of a folder or file',
        required: 'Links are not followed, a folder of another user is refused, and files are private.',
        simulated: 'links are real; no network file system is mounted',
      },
    ],
  },
  {
    title: 'What the platform does',
    faults: [
      {
        number: 67,
        fault: '`HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` are set',
        required: 'They are heeded. Credentials of a proxy are in no line.',
      },
      {
        number: 68,
        fault: 'The global `fetch` is missing, replaced or traced',
        required: 'It is not used: our own requests go past it and are never traced.',
      },
      {
        number: 69,
        fault: 'A dispatcher throws, rejects with nothing, or answers with nonsense',
        required: 'The request has failed, and the same runs are sent again.',
      },
    ],
  },
  {
    title: 'Payloads',
    faults: [
      {
        number: 70,
        fault: 'Circles, and objects in several places',
        required: '`[Circular]` where an object is within itself, and nowhere else.',
      },
      {
        number: 71,
        fault: 'BigInt, symbols, functions, undefined',
        required:
          '`123n`, `Symbol(description)`, `[Function name]`; undefined as JSON has it: left out, `null` in a list.',
      },
      {
        number: 72,
        fault: 'A getter that throws, throws null, or goes on without end',
        required: '`[Threw: message]` in its place, with the rest kept; depth and number of values end the last.',
      },
      {
        number: 73,
        fault: 'A proxy whose traps throw, or that was revoked',
        required: '`[Proxy]`, or what can be read of it.',
      },
      {
        number: 74,
        fault: 'A `toJSON` that throws, gives back its object or something huge, or is asynchronous',
        required:
          '`[Threw: message]`, the plain keys, the limits of any payload, `[Promise]`. It is called once, and its result is not asked again.',
      },
      {
        number: 75,
        fault: 'NaN, the infinities, -0, an invalid date',
        required: '`NaN`, `Infinity`, `-Infinity` and `Invalid Date` as text; -0 is 0.',
      },
      {
        number: 76,
        fault: 'Symbol keys, hidden properties, getters of a prototype',
        required: 'They are neither recorded nor called.',
      },
      {
        number: 77,
        fault: 'Map, Set, RegExp, errors with causes, URL, Headers, FormData, Request',
        required: 'What a reader would look for in each, within the limits. A URL has no user and no password.',
      },
      {
        number: 78,
        fault: 'Typed arrays, Buffer, ArrayBuffer, Blob',
        required:
          'Type and length with the first KiB as base64, or an attachment. Never an object with a key for each byte.',
      },
      {
        number: 79,
        fault: 'Streams, iterators, generators, responses',
        required: 'Named by their kind; never read, awaited or locked.',
      },
      {
        number: 80,
        fault: 'Sockets, requests, instances of any class, graphs of a framework',
        required:
          'Streams by their class, messages of HTTP by method, address and headers, the rest by its own properties, within the limits.',
      },
      { number: 81, fault: 'Half a surrogate pair', required: 'U+FFFD in its place, in values and keys.' },
      {
        number: 82,
        fault: '`__proto__` and `constructor` as keys',
        required: 'They are data; nothing is ever changed that all objects share.',
      },
      {
        number: 83,
        fault: '`Object.prototype` has properties of the application',
        required:
          'They are no options and no keys of a payload. `JSON.stringify` calls a `toJSON` of all objects, as everywhere else in the program.',
      },
      {
        number: 84,
        fault: 'A text of 100 MB',
        required: 'It is cut in the middle before it is written, with a marker that says by how much.',
      },
      {
        number: 85,
        fault: 'Lists and objects of a million members, a length that is a lie',
        required: 'The first 10 000, and the number of the others. Values beyond the limit are not read.',
      },
      {
        number: 86,
        fault: 'A million levels of nesting',
        required: '64 levels, then a marker.',
      },
      {
        number: 87,
        fault: 'JSON beyond the longest string that there can be',
        required:
          'The limits of a payload keep it far below, and a body is made of bytes. Where they were raised beyond that, a marker stands for the payload, or the run is dropped (`rejected`), and the others arrive.',
      },
      {
        number: 88,
        fault: 'The application changes a value after the call',
        required: 'What was passed is recorded: payloads become text at the call, and no value is held.',
      },
      {
        number: 89,
        fault: 'Values are frozen or sealed',
        required: 'They are recorded as any other; nothing is ever written to them.',
      },
      {
        number: 90,
        fault: 'Line breaks, quotes and any script in names and ids',
        required: 'Ids are UUIDs, names are escaped as forms do it, and what was given is what a reader gets.',
      },
      {
        number: 91,
        fault: 'The boundary of a body occurs in a payload',
        required: 'A boundary has 128 random bits, and every part its own length.',
      },
    ],
  },
  {
    title: 'The life of runs and exporters',
    faults: [
      {
        number: 92,
        fault: 'An invalid id, no name, a second end, a child before or after its parent',
        required:
          'Taken with what holds of it, in one line for what does not. The first end counts; nothing throws, and the ledger adds up.',
      },
      {
        number: 93,
        fault: 'Thousands of runs that never end',
        required:
          'Beyond 10 000 open runs, or after an hour, the oldest run is sent as incomplete. Its end is sent when the run ends.',
      },
      {
        number: 94,
        fault: 'A parent that lives for ever',
        required: 'It holds none of its children: they know its id, and it does not know them.',
      },
      {
        number: 95,
        fault: 'A hundred thousand runs are queued',
        required: 'Putting in and taking out cost the same however many there are; a batch is 100 runs or 20 MiB.',
      },
      {
        number: 96,
        fault: 'A run larger than a batch may be',
        required: 'It goes alone; what the service then says of it is 413, above.',
      },
      {
        number: 97,
        fault: 'Callbacks that throw, reject, hang, or call us',
        required:
          'None is waited for or trusted. Where a redaction fails, nothing is shown of what it was asked about.',
      },
      {
        number: 98,
        fault: 'The log function throws, or is itself traced',
        required: 'Nothing of it reaches the application, and no line leads to another without end.',
      },
      {
        number: 99,
        fault: 'A hundred flushes at once, during shutdown and after it; runs after shutdown',
        required:
          'Each answers for what was recorded before it and for nothing later. Late runs are counted as dropped (`closed`).',
      },
      {
        number: 100,
        fault: 'The time of a flush is over',
        required: '`{ ok: false, pending }`; it never rejects, and what is left goes on being delivered.',
      },
      {
        number: 101,
        fault: 'Fake timers and a fake clock, as tests install them',
        required: 'Delivery goes on, and times are real: timers and clock were taken when the library was loaded.',
      },
      {
        number: 102,
        fault: 'Two copies of the package in one process, by `import` and by `require`',
        required: 'They share the current run. Each has its own exporter and delivers its own runs, once.',
      },
      {
        number: 103,
        fault: 'A thousand exporters',
        required:
          'The process has one listener of ours for each event, however many there are, and none when the last has closed. No warning of a leak.',
      },
      {
        number: 104,
        fault: 'The process is frozen between two requests',
        required: 'What is left goes on when it thaws, over new connections; `await flush()` before leaves nothing.',
        simulated: 'SIGSTOP and SIGCONT stand for the platform',
      },
    ],
  },
  {
    title: 'Surroundings',
    faults: [
      {
        number: 105,
        fault: 'A key with white space around it, line breaks or other characters within',
        required: 'It is trimmed; one that no header can carry turns tracing off, in a line without the key.',
      },
      {
        number: 106,
        fault: 'Unhandled rejections are strict, code generation is forbidden, the permission model is on',
        required: 'All works; without leave to write, runs stay in memory.',
      },
      {
        number: 107,
        fault: 'An odd time zone or locale; `Date` replaced by something that gives no time',
        required: 'Times are ISO 8601 in UTC, and real.',
      },
      {
        number: 108,
        fault: 'A few objects that hold one another many times over: 23 objects, 75 MB of JSON',
        required: 'The number of values and the text of a payload are bounded, and a marker says what was cut.',
      },
      {
        number: 109,
        fault: 'The service hangs when the program ends by itself',
        required: 'The process ends within 2 seconds, with its own exit code.',
      },
      {
        number: 110,
        fault: 'A spool is found and the key is wrong or has changed',
        required:
          'No run is deleted before it was accepted: with a valid key, all of them arrive. Runs that wait for another key are reported once, with the command that delivers them, and expire by age.',
      },
      {
        number: 111,
        fault: '`shutdown()` twice, never, or within `exit`',
        required: 'The second is the first. Within `exit` only what needs no waiting is done.',
      },
      {
        number: 112,
        fault: 'Standard error is closed when we have something to say',
        required: 'It is left unsaid; the program goes on.',
      },
      {
        number: 113,
        fault: 'Two exporters of one process with the same folder',
        required: 'Each has a folder of its own within it.',
      },
      {
        number: 114,
        fault: 'Multipart goes away in the middle, and single runs fail half-way',
        required: 'Only what was not yet accepted is sent again, each run from where it stood.',
      },
      {
        number: 115,
        fault: 'Single runs under 429 or 5xx',
        required: 'Four at a time, 50 requests a second, and one pause for all: no storm of repetitions.',
      },
      {
        number: 116,
        fault: 'An attached file vanishes, changes, is too large, or is no file',
        required:
          'It is left out with one line, and its run is sent. A path is never followed: an attachment is bytes or a Blob.',
      },
    ],
  },
];

export const faults = groups.flatMap((group) => group.faults);
