/** The words of the page that no figure changes. */

export const INTRODUCTION =
  'The same program, traced by runspan, by OpenTelemetry, langfuse, braintrust and langsmith, each as its own pages say, and by ' +
  'hand. `npm run bench` measures the first of the tables below in two minutes, `npm run bench:full` all of them in forty; ' +
  '`npm run bench:page` makes this page of the results in [`benchmarks/results.json`](benchmarks/results.json). More of it in ' +
  '[CONTRIBUTING.md](../CONTRIBUTING.md).';

export const CLAIMS = 'Each of these links to the row that it is read from.';

export const METHOD = `## Method

- Each driver is a process of its own that does the work, and all send to one service in another process, which reads what comes
  and accepts it. They run one at a time, in rounds that each begin with another driver. A row is the median of the rounds, with
  the least and the most of its CPU in brackets; *× limit* is made within each round. Where two other rows are compared, it is
  their medians.
- Turns to warm up come first, are delivered, and are not counted. The clock stops when everything has arrived.
- The service counts distinct runs or spans, and their ends. Where anything that was created did not arrive exactly once, the row
  says \`invalid\` and has no figures.
- *Limit* is a program by hand that does the least: payloads made into JSON once, ids and times with what can be kept kept,
  whole runs laid into one buffer for each hundred, sent over the same wire by \`undici\`. It has no bounds, no masks, no retry, and a
  variable stands for the context where turns do not overlap. *Untraced* is the program alone.
- runspan is as it comes: masks and limits are on. The processor records the same OpenTelemetry spans as the two OTLP rows.
- Peers are as they come, but for queues: OpenTelemetry's batch processor has room for 2 048 spans and drops what is beyond,
  which happens at full speed, and what is dropped costs nothing. Here it has room for 1 000 000, and its exporter for
  10 000 requests; langfuse's processor has the same room in its queue, braintrust's logger room for 1 000 000 rows, and no
  limit of 1 000 for the chunks of a stream, beyond which it would keep none. Where the
  service is away they have their own queues, and the clock stops with the last turn.
- Bodies are compressed at the level that each has by itself: the cheapest of zlib by runspan and the limit, which costs less and
  shrinks less, the sixth by OpenTelemetry and langsmith.
- Slow peers do fewer turns, which the column *runs* says. They do fewer to warm up too, though enough for some thousands of runs
  where runs are small: a program is dearest while the compiler has not been over it.
- Rows are left out of a table where a peer cannot keep up with the rate (braintrust and langsmith from 10 000 runs a second on) or would
  take minutes (both at 100 000 runs; all but OTLP/JSON at 1 000 000), and where the table is about bounds of runspan's own: requests in
  flight, a full queue, runs that are held open. langfuse sends by the exporter of OTLP/protobuf, which has the row under gzip.
- Where the parts of a turn take 400 ms, braintrust goes at 600 runs a second and langsmith at 300, since neither could keep up with
  6 000; fewer runs may share a request then.
- At fixed rates turns are due whether or not the one before is done, and a turn's time counts from when it was due. Timers
  wake a program up to a millisecond late: the untraced program's row has that too, and what is added is over it.`;

export const HOW_TO_READ = `## How to read it

- *CPU µs/run* is user and system time of the whole process, all threads, delivery included, divided by runs. Look at the ratio:
  another machine has other microseconds.
- *Turn* is the time of the traced call itself, work included: what a user waits for. Its p99.9 holds collections and batches that
  were laid meanwhile; of fewer than 1 000 turns it is the longest.
- *Loop* is how late timers fire at p99. An idle loop shows about one millisecond.
- *Peak* is the resident memory of the process at its highest, *retained* what the heap holds after a collection at the end, over
  what it held before.
- *gc* is the share of the time in which the collector held the program up.
- *import ms* is what the import adds to the start of an empty program. runspan loads its HTTP client at the first request, which is not
  in it.
- Differences within the spread of the rounds are no differences.`;
