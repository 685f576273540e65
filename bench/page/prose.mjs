/** The page's fixed texts. */

export const INTRODUCTION =
  'The table shows the CPU time per run, including delivery. Every row runs the same program: an agent whose turns have three runs and ' +
  '8 KB of inputs and outputs. *By hand* only builds and sends the requests. Lower is better.';

export const METHOD = `## Method

\`npm run bench -- --node 24\` measures the table above in 3 minutes. \`npm run bench:full -- --node 24\` runs the
benchmarks for every table, which takes 40 minutes. \`npm run bench:page\` generates this page from [\`benchmarks/results.json\`](benchmarks/results.json).

- Each driver is a separate process. All drivers send to one service in another process, which accepts every request and counts the
  runs. Drivers run one at a time in interleaved rounds. Each round starts with a different driver.
- Each figure is the median of all rounds, with the lowest and the highest round in brackets. Ratios are computed within each round.
- Warm-up turns are delivered before the clock starts. The clock stops when all runs are delivered.
- A row is marked invalid unless the service received every run and its end exactly once.
- *By hand* stringifies each payload once, builds one buffer for 100 runs, and sends the buffer with \`undici\`, without limits,
  redaction, retries or ledger. *Untraced* is the program without tracing.
- runspan has its default configuration, including redaction and limits. \`RunSpanProcessor\` receives the same spans as the
  OpenTelemetry rows.
- Peers have their default configuration, except for queue sizes. At full speed, OpenTelemetry's and langfuse's batch processors (2 048
  spans) and braintrust's logger (15 000 rows) drop runs when their queues are full, and dropped runs cost no CPU time. In these
  benchmarks, each queue has room for 1 000 000 entries, and OpenTelemetry's exporter has room for 10 000 requests. braintrust is set to
  record all stream chunks; by default, it records none for streams with more than 1 000 chunks.
- Slow peers run fewer turns, as the column *runs* shows. In the table of 2 s model calls, 3 000 calls start per second, but only 600
  with braintrust and 300 with langsmith. Braintrust and langsmith are left out of the tables in which they would take minutes.
- langfuse uses the newest OpenTelemetry SDK that it supports.`;

export const HOW_TO_READ = `## How to read the tables

- *CPU µs/run*: the process's user and system time, divided by the number of runs. Compare the ratios, because absolute times vary
  between machines.
- *call*: the duration of one turn of the traced program, including the program's own work.
- *loop p99* and *longest*: how late timers fire, which is about 1 ms in an idle program.
- *peak*: the highest resident memory of the process.
- *import*: the time that importing the package adds to the start of an empty program. runspan imports its HTTP client only with the
  first request.
- Ignore differences that are smaller than the spread of the rounds.`;
