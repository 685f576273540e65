/**
 * The programs that are measured, in the order of the tables; `limit` is what the others are divided by. Each does `share` of
 * the turns: what sends nothing is over in a moment, and more turns make its figures as steady as the others; what is slow does
 * fewer, so that all of it stays within its time. Of the turns to warm up every one does `warmupShare`, all of them where none is
 * said: some thousands of runs go by before the compiler has been over what they do, and whatever is measured before that would
 * look dearer than it is.
 */
const DRIVERS = {
  untraced: { share: 5, isTraced: false },
  limit: { share: 1 },
  traceable: { share: 1 },
  processor: { share: 1 },
  'otlp-json': { share: 1 },
  'otlp-protobuf': { share: 1 },
  langfuse: { share: 0.5 },
  braintrust: { share: 0.1, warmupShare: 0.4 },
  langsmith: { share: 0.05, warmupShare: 0.25 },
  off: { share: 5, isTraced: false },
};

export const DRIVER_NAMES = Object.keys(DRIVERS);

/** Those that are made of packages of others: they stand in `bench/peers/`, where these are installed. */
export const PEERS = ['otlp-json', 'otlp-protobuf', 'langfuse', 'braintrust', 'langsmith'];

/** No queue of theirs may be the reason why a figure is low: spans that are dropped cost nothing. */
const QUEUE_ROOM = '1000000';

export function isTraced(name) {
  return DRIVERS[name].isTraced ?? true;
}

export function isPeer(name) {
  return PEERS.includes(name);
}

/** How many turns it does where this many are asked for. */
export function turnsOf(name, turns) {
  return atLeastOne(turns * DRIVERS[name].share);
}

/** How many it does to warm up where this many are asked for. */
export function warmupTurnsOf(name, turns) {
  return atLeastOne(turns * (DRIVERS[name].warmupShare ?? 1));
}

/**
 * The address by the names that it reads, and nothing else that departs from what it does by itself, but for the room of queues, and
 * for the chunks of a stream, of which braintrust keeps none when there are more than 1 000.
 */
export function environmentOf(name, url) {
  switch (name) {
    case 'otlp-json':
    case 'otlp-protobuf':
      return { BENCH_URL: url, OTEL_BSP_MAX_QUEUE_SIZE: QUEUE_ROOM };
    case 'langfuse':
      return {
        LANGFUSE_BASE_URL: url,
        LANGFUSE_PUBLIC_KEY: 'pk-lf-bench',
        LANGFUSE_SECRET_KEY: 'sk-lf-bench',
        OTEL_BSP_MAX_QUEUE_SIZE: QUEUE_ROOM,
      };
    case 'langsmith':
      return { LANGSMITH_TRACING: 'true', LANGSMITH_ENDPOINT: url, LANGSMITH_API_KEY: 'bench' };
    case 'braintrust':
      return {
        BRAINTRUST_APP_URL: url,
        BRAINTRUST_API_KEY: 'bench',
        BRAINTRUST_QUEUE_DROP_EXCEEDING_MAXSIZE: QUEUE_ROOM,
        BRAINTRUST_MAX_GENERATOR_ITEMS: '-1',
      };
    default:
      return { RUNSPAN_ENDPOINT: url };
  }
}

export function atLeastOne(turns) {
  return Math.max(1, Math.round(turns));
}
