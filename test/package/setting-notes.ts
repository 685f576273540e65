import type { Limits } from '#src/config/limits.ts';

/** The rows of the table of settings in `docs/configuration.md`: options, their default if it is not one word, and what they do. */
export const settingNotes: readonly (readonly [
  options: readonly string[],
  otherwise: string | undefined,
  text: string,
])[] = [
  [['endpoint'], '', "the service's address; without an endpoint, tracing is off"],
  [
    ['protocol'],
    undefined,
    'with `otlp` (protobuf) or `otlp-json`, runs are sent as [OpenTelemetry spans](opentelemetry.md#runs-as-spans)',
  ],
  [
    ['apiKey'],
    '',
    'the API key: a string or a [function](#keys). The key is sent in the header `x-api-key`, only to the endpoint',
  ],
  [['workspaceId'], '', 'the id of the workspace, sent in the header `x-tenant-id`'],
  [
    ['project'],
    '`default`; under `runspan dev` the [name in package.json](dev.md#the-project-of-the-runs)',
    'the project that runs are recorded in: its name, sent as `session_name`, or `{ id }`, sent as `session_id`. The variable contains a name',
  ],
  [['tracing'], undefined, '`false` turns tracing off'],
  [
    ['sampleRate'],
    undefined,
    'the share of traces that are recorded, from 0 to 1, see [sampling](tracing.md#which-traces-are-recorded)',
  ],
  [
    ['keep'],
    '`[]`',
    '[rules](tracing.md#keep-the-failures) for traces to send although the `sampleRate` drops them. The variable contains them separated by commas',
  ],
  [
    ['sampler'],
    '',
    'a function that decides whether a trace is recorded; called when the first run of the trace starts',
  ],
  [['hideInputs'], undefined, 'records no inputs: the field `inputs` is empty'],
  [['hideOutputs'], undefined, 'records no outputs: the field `outputs` is empty'],
  [['keepAttributes'], '`[]`', 'attributes to record beside [hidden](#hidden-inputs-and-outputs) inputs or outputs'],
  [
    ['redact'],
    'masks values under names such as `authorization`',
    'the result of `redact()`; masks values in the [fields](redaction.md) of all runs',
  ],
  [
    ['propagateTo'],
    '`[]`',
    'origins of your own services, such as `https://search.example`. With [`runspan/register`](register.md#programs-that-call-each-other), requests to these origins get the current run as headers. Scheme, host and port must be equal. The variable contains origins separated by commas.',
  ],
  [['allowInsecure'], undefined, 'allows sending keys and other credentials over plain HTTP to other machines'],
  [
    ['durability'],
    '`memory`; `spill` with [`runspan/register`](register.md) on Node',
    'selects which undelivered runs survive the process: `memory`, `spill` or `write-ahead` ([delivery](delivery.md#durability))',
  ],
  [
    ['spoolDir'],
    '`.runspan/spool` in the home folder',
    'the folder for undelivered runs; other users cannot read its files',
  ],
  [
    ['log'],
    undefined,
    'the lowest level of lines that are logged: `silent`, `error`, `warn`, `info` or `debug`. The option may also be a function, which receives the lines. The last exporter created with this option sets `log` for the whole process',
  ],
  [['limits'], 'below', ''],
  [
    ['headers'],
    '',
    'headers for every request: an object, `Headers`, a `Map`, a list of pairs, or a [function](#keys) that returns one of these',
  ],
  [['dispatcher'], '', 'an undici dispatcher that sends the requests, for example a `ProxyAgent`'],
  [
    ['fetch'],
    '',
    'a function like `fetch` that sends the requests instead. A request in flight then keeps the process alive for up to `limits.requestTimeoutMs`',
  ],
  [['onDrop'], '', 'a function called with the reason and the run for each dropped run'],
  [
    ['onStart', 'onEnd'],
    '',
    'functions called when a run starts or ends ([hooks](tracing.md#when-runs-start-and-end))',
  ],
  [
    ['handleSignals'],
    '`false`; for SIGTERM, `true` with [`runspan/register`](register.md) on Node',
    'delivers queued runs before a signal ends the program ([delivery](delivery.md#when-a-signal-ends-it))',
  ],
  [
    [],
    'all',
    'what [`runspan/register`](register.md#what-is-recorded) records, for example `fetch,langchain` or `-openai`.',
  ],
];

/** The rows of the table of limits: the limits, and what happens at the limit. */
export const limitNotes: readonly (readonly [limits: readonly (keyof Limits)[], text: string])[] = [
  [['lingerMs'], 'a batch is sent this long after its first run was queued'],
  [
    ['startDelayMs'],
    'the start of an open run is sent, and the end follows later as a second record. A run that ends in time is sent once. A start is sent earlier by `flush` or if the queue contains a full batch. If `startDelayMs` is 0, a start is sent after `lingerMs`',
  ],
  [
    ['batchRuns', 'batchBytes'],
    'a batch is sent. If the service reports limits, these take precedence. All batches in flight together have at most a quarter of `queueBytes`, so that a batch has at most 4 MiB by default. After a 413, batches are [smaller for a while](delivery.md#when-the-service-is-in-trouble)',
  ],
  [
    ['queueRuns', 'queueBytes'],
    'new traces are dropped (`queue_full`). Traces that have already begun have [more room](delivery.md#limits). Each character of a text counts as one byte. Request bodies kept for a retry count too, as they are kept: compressed while the service is unavailable. With `spill` and `write-ahead`, runs are moved to disk when the queue is half full',
  ],
  [
    ['payloadCharacters'],
    'the middle of a long text is replaced by a marker that contains the number of removed characters',
  ],
  [
    ['attachmentBytes'],
    'further attachments of the run are omitted, and one line is logged. A marker in the payload replaces an omitted attachment',
  ],
  [['requestTimeoutMs'], 'the request fails and is retried'],
  [
    ['ageMs'],
    'an undelivered run is dropped (`expired`). Pauses that the service requests, and times in which it refuses every run, do not count. Applies to `memory`; with other durabilities, `spoolAgeMs` applies',
  ],
  [
    ['spoolBytes'],
    'no more runs are written to disk; further runs stay in memory within the queue limits. Counts all files of one exporter, including files taken over from other processes',
  ],
  [['spoolAgeMs'], 'an undelivered run is dropped (`expired`). Applies to `spill` and `write-ahead`'],
];
