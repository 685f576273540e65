/** The fixed texts of the page. */

export const INTRODUCTION =
  'The processor time of one run, delivery included. The program is the same in every row: an agent whose turns have three runs and ' +
  '8 KB of inputs and outputs. *By hand* is a program that does nothing but build and send the requests. Lower is better.';

export const METHOD = `## Method

\`npm run bench -- --node 24\` measures the table above in three minutes, \`npm run bench:full -- --node 24\` measures every table in
forty. \`npm run bench:page\` generates this page from [\`benchmarks/results.json\`](benchmarks/results.json).

- Each driver is a process. All drivers send to the same service, which is another process: it accepts every request, and counts the
  runs. Drivers run one at a time, in interleaved rounds that each start with another driver.
- A figure is the median of the rounds, with the lowest and the highest round in brackets. Ratios are made within each round.
- Warm-up turns are delivered before the clock starts. The clock stops when everything is delivered.
- A row is invalid if a run or its end did not arrive exactly once.
- *By hand* stringifies each payload once, builds one buffer for 100 runs, and sends it with \`undici\`. It has no limits, masks, retries or
  ledger. *Untraced* is the program without tracing.
- runspan has its default configuration, with masks and limits. \`RunSpanProcessor\` gets the same spans as the OpenTelemetry rows.
- Peers have their default configuration, except for the size of queues. At full speed, the batch processor of OpenTelemetry and of langfuse
  (2 048 spans) and the logger of braintrust (15 000 rows) drop what does not fit, and dropped runs cost nothing. Here each has room for
  1 000 000, and OpenTelemetry's exporter for 10 000 requests. braintrust records all chunks of a stream (by default none of more than 1 000).
- Slow peers do fewer turns: see the column *runs*. Model calls of 2 s start at 3 000 a second, with braintrust at 600 and with langsmith at
  300. A table without a row for braintrust and langsmith would take minutes with them.
- langfuse uses the newest OpenTelemetry SDK that it works with.`;

export const HOW_TO_READ = `## How to read the tables

- *CPU µs/run*: user and system time of the process, all threads, divided by the runs. Compare the ratios, because absolute times
  vary between machines.
- *call*: the time of a traced turn, the work of the program included.
- *loop p99* and *longest*: the delay of timers, which is about 1 ms in an idle program.
- *peak*: the largest resident memory of the process.
- *import*: the time that an import adds to an empty program. runspan imports its HTTP client with the first request.
- A difference within the spread of the rounds is no difference.`;
