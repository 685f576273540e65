/** The page's fixed texts. */

export const INTRODUCTION =
  'The table shows the CPU time per run, including delivery. All rows run the same agent program. Each turn of the agent records three ' +
  'runs with 8 KB of inputs and outputs. The row *by hand* builds and sends the requests without a library. The ' +
  'column *× OTLP/JSON* compares each row with the OTLP/JSON exporter of OpenTelemetry. It shows the median of the ratios of all rounds, ' +
  'which differs from the ratio of the medians. Lower is better.';

export const METHOD = `## Method

\`npm run bench -- --node 24\` measures the first table in 3 minutes. \`npm run bench:full -- --node 24\` measures all tables in
40 minutes. \`npm run bench:page\` generates this page from [\`benchmarks/results.json\`](benchmarks/results.json).

- Each library runs in its own process. All processes send to the same test service in another process, which accepts every request and
  counts the runs. The libraries are measured one after the other, in several rounds. Each round starts with a different library.
- Each figure is the median of all rounds. The lowest and the highest round are in brackets. Ratios are computed within each round.
- Warm-up turns are delivered before the clock starts. The clock stops when all runs are delivered.
- If the service did not receive every run exactly once, the row is marked invalid.
- *By hand* stringifies each payload once and sends 100 runs per request with \`undici\`. *By hand* has no limits, redaction, retries or
  statistics. *Untraced* runs the program without tracing.
- runspan runs with its default configuration, including redaction and limits. \`RunSpanProcessor\` receives the same spans as the
  OpenTelemetry rows.
- The other libraries run with their default configuration, except for larger queues. With the default queues, OpenTelemetry and Langfuse
  (2,048 spans) and Braintrust (15,000 rows) would drop runs, and dropped runs cost no CPU time. In the benchmarks, each queue holds up
  to 1,000,000 entries, and OpenTelemetry's exporter up to 10,000 requests. The benchmarks configure Braintrust to
  record all stream chunks. By default, Braintrust records no chunks of streams with more than 1,000 chunks.
- Slow libraries run fewer turns. The column *runs* shows the number of runs. In the benchmark of 2 s model calls, 3,000 calls start per
  second, but only 600 with Braintrust and 300 with LangSmith. Benchmarks that would take minutes with Braintrust and LangSmith leave
  them out.
- Langfuse uses the newest OpenTelemetry SDK that it supports.`;

export const HOW_TO_READ = `## How to read the tables

- *CPU µs/run*: the user and system CPU time of the process per run. Compare the ratios, because absolute times vary between machines.
- *call*: the duration of one turn of the traced program, including the program's own work.
- *loop p99* and *longest*: the delay of timers. In an idle program, timers fire about 1 ms late.
- *peak*: the highest resident memory of the process.
- *import*: the time that importing the package adds to the start of an empty program. The HTTP client of
  runspan is loaded with the first request.
- Ignore differences that are smaller than the spread of the rounds.`;
