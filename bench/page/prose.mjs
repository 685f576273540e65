/** The page's fixed texts. */

export const INTRODUCTION =
  'The table shows the CPU time per run, including delivery. All rows run the same agent program. Each turn of the agent records three ' +
  'runs with 8 KB of inputs and outputs. The row *by hand* builds and sends the requests without a library. The ' +
  'column *× OTLP/JSON* compares each row with the OTLP/JSON exporter of OpenTelemetry. It shows the median of the ratios of all rounds, ' +
  'which differs from the ratio of the medians. Lower is better.';

export const THROUGHPUT = `## Throughput

The table shows how many runs of the same program the [receiver](receiver.md) stores per second, with the receiver's SQLite file on the
same machine. \`npm run bench -- ingest --node 24\` measures the table in 2 minutes. Higher is better.

- The program and the receiver are two processes that share the cores. Each measurement starts a new receiver with an empty file.
- The clock stops at the last response. A response with status 202 means that the runs are in the file.
- If the receiver did not take every start and every end exactly once, or if its store does not hold every run with its end, the row is
  marked invalid.
- The program creates runs faster than the receiver stores them. In this benchmark, the queue of runspan has room for all of them.
- *Simple ingestion* is the exporter's fallback for services without \`/runs/multipart\`. It sends two requests per run. By default, the
  exporter sends at most 50 requests per second, so the row shows this limit.
- *Prepared requests* are those of \`traceable\`, built before the clock starts. The row shows what the receiver can store without an
  application beside it.
- *MB/s* in the tables below are millions of bytes of request bodies. The requests in this benchmark are not compressed.
- The receiver indexes the texts of runs for its search between writes and after the last write. *Until indexed* includes the time and
  the CPU time until all runs of the row *prepared requests* are indexed.
- The rows *LangSmith* and *simple ingestion* send fewer runs. The column *runs* shows the number.`;

export const METHOD = `## Method

\`npm run bench -- --node 24\` measures the first table in 3 minutes. \`npm run bench -- full --node 24\` measures all tables in
42 minutes. \`npm run bench -- page\` generates this page from [\`benchmarks/results.json\`](benchmarks/results.json).

- Each library runs in its own process. All processes send to the same test service in another process, which accepts every request and
  counts the runs. The libraries are measured one after the other, in several rounds. Each round starts with a different library.
- Each figure is the median of all rounds. The lowest and the highest round are in brackets. Ratios are computed within each round.
- Warm-up turns are delivered before the clock starts. The clock stops when all runs are delivered.
- If the service did not receive every run exactly once, the row is marked invalid.
- *By hand* stringifies each payload once and sends 100 runs per request with \`undici\`. *By hand* has no limits, redaction, retries or
  statistics. *Untraced* runs the program without tracing.
- runspan runs with its default configuration, including redaction and limits. \`RunSpanProcessor\` receives the same spans as the
  OpenTelemetry rows.
- The rows *\`sampleRate\`* and *\`keep\`* are \`traceable\` with \`sampleRate: 0.1\`, the latter with \`keep: ['error', 'slow>10s']\`. No turn
  fails or is slow, so \`keep\` holds nine of ten turns until they end, and then leaves them out. CPU time is per run of the program, sent
  or not.
- The other libraries run with their default configuration, except for larger queues. With the default queues, OpenTelemetry and Langfuse
  (2,048 spans) and Braintrust (15,000 rows) would drop runs, and dropped runs cost no CPU time. In the benchmarks, each queue holds up
  to 1,000,000 entries, and OpenTelemetry's exporter up to 10,000 requests. The benchmarks configure Braintrust to
  record all stream chunks. By default, Braintrust records no chunks of streams with more than 1,000 chunks.
- Requests are compressed only in the tables that measure compression.
- Slow libraries run fewer turns. The column *runs* shows the number of runs. In the benchmark of 2 s model calls, 3,000 calls start per
  second, but only 600 with Braintrust and 300 with LangSmith. Benchmarks that would take minutes with Braintrust and LangSmith leave
  them out.
- Langfuse uses the newest OpenTelemetry SDK that it supports.`;

export const HOW_TO_READ = `## How to read the tables

- *CPU µs/run*: the user and system CPU time of the process per run. Compare the ratios, because absolute times vary between machines.
- *call*: the duration of one turn of the traced program, including the program's own work.
- *loop p99* and *longest*: the delay of timers. In an idle program, timers fire about 1 ms late.
- *CPU of the receiver*: the user and system CPU time of the receiver's process per run, until the last response.
- *peak*: the highest resident memory of the process.
- *held*, *in memory* and *resident*: what the exporter keeps while there is no service: by its own count, and the growth of the used and
  the resident memory of the process.
- *import*: the time that importing the package adds to the start of an empty program. The HTTP client of
  runspan is not included, because it loads after the first \`configure\` or run.
- Ignore differences that are smaller than the spread of the rounds.`;
