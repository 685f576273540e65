/**
 * The measured programs, in table order. `limit` is the hand-written baseline. A driver does `share` of a cell's turns,
 * and `warmupShare` of its warm-up turns: slow drivers would take minutes, and untraced ones need more turns for a
 * steady figure.
 */
const DRIVERS = {
  untraced: { share: 5, isTraced: false },
  limit: {},
  traceable: {},
  sampled: { file: 'drivers/traceable', settings: { RUNSPAN_SAMPLE_RATE: '0.1' } },
  keep: {
    file: 'drivers/traceable',
    settings: { RUNSPAN_SAMPLE_RATE: '0.1', RUNSPAN_KEEP: 'error,slow>10s' },
  },
  spill: { file: 'drivers/traceable', durability: 'spill' },
  'write-ahead': { file: 'drivers/traceable', durability: 'write-ahead' },
  processor: { isFromRegistry: true },
  'traceable-otlp': { file: 'drivers/traceable', protocol: 'otlp' },
  'traceable-beside': { file: 'drivers/traceable', isBeside: true },
  'processor-beside': { file: 'drivers/processor', isBeside: true, isFromRegistry: true },
  'otlp-json': { file: 'peers/otlp-json', isFromRegistry: true },
  'otlp-protobuf': { file: 'peers/otlp-protobuf', isFromRegistry: true },
  langfuse: { file: 'peers/langfuse/langfuse', share: 0.5, isFromRegistry: true },
  braintrust: { file: 'peers/braintrust', share: 0.1, warmupShare: 0.4, isFromRegistry: true },
  langsmith: { file: 'peers/langsmith', share: 0.05, warmupShare: 0.25, isFromRegistry: true },
  // The exporter sends 50 requests a second, and two requests a run.
  simple: { file: 'drivers/traceable', share: 0.005, warmupShare: 0.02, isForReceiver: true },
  prepared: { isForReceiver: true },
};

export const DRIVER_NAMES = Object.keys(DRIVERS);

/** `traceable` with a spool. */
export const DURABLE = DRIVER_NAMES.filter((name) => DRIVERS[name].durability !== undefined);

/** At full speed, a queue with the default size would drop spans, and dropped spans cost nothing. */
const QUEUE_ROOM = '1000000';

export function isTraced(name) {
  return DRIVERS[name].isTraced ?? true;
}

/** Whether the driver needs the packages under `bench/peers/`. */
export function isFromRegistry(name) {
  return DRIVERS[name].isFromRegistry ?? false;
}

/** The program of a driver, relative to this folder. */
export function fileOf(name) {
  return `${DRIVERS[name].file ?? `drivers/${name}`}.mjs`;
}

/** The same driver with the build of another checkout, if there is one for it. */
export function besideOf(name) {
  return DRIVER_NAMES.find((other) => other === `${name}-beside`);
}

/** Whether the driver runs another checkout's build. Such drivers must be requested. */
export function isBeside(name) {
  return DRIVERS[name].isBeside ?? false;
}

/** Whether cells measure the driver by default. Some drivers need runspan's receiver. */
export function isUsual(name) {
  return !isBeside(name) && !DRIVERS[name].isForReceiver;
}

export function durabilityOf(name) {
  return DRIVERS[name].durability;
}

/** Returns the driver's number of turns if a cell asks for `turns`. */
export function turnsOf(name, turns) {
  return atLeastOne(turns * (DRIVERS[name].share ?? 1));
}

export function warmupTurnsOf(name, turns) {
  return atLeastOne(turns * (DRIVERS[name].warmupShare ?? 1));
}

/**
 * Returns the driver's own variables for the service's address. All other settings keep their defaults, with these
 * exceptions: bodies are compressed only in the cells that measure compression, queues have room for all runs while the
 * service answers, `sampled` and `keep` have the settings of the same names, and braintrust keeps all of a stream's
 * chunks (by default, it keeps none if there are more than 1,000).
 */
export function environmentOf(name, url, { isDelivered, encoding }) {
  switch (name) {
    case 'otlp-json':
    case 'otlp-protobuf':
      return { BENCH_URL: url, ...(isDelivered && { BENCH_QUEUE_ROOM: QUEUE_ROOM }) };
    case 'langfuse':
      return {
        LANGFUSE_BASE_URL: url,
        LANGFUSE_PUBLIC_KEY: 'pk-lf-bench',
        LANGFUSE_SECRET_KEY: 'sk-lf-bench',
        ...(isDelivered && { OTEL_BSP_MAX_QUEUE_SIZE: QUEUE_ROOM }),
      };
    case 'langsmith':
      return {
        LANGSMITH_TRACING: 'true',
        LANGSMITH_ENDPOINT: url,
        LANGSMITH_API_KEY: 'bench',
        ...(encoding === undefined && { LANGSMITH_DISABLE_RUN_COMPRESSION: 'true' }),
      };
    case 'braintrust':
      return {
        BRAINTRUST_APP_URL: url,
        BRAINTRUST_API_KEY: 'bench',
        ...(isDelivered && { BRAINTRUST_QUEUE_DROP_EXCEEDING_MAXSIZE: QUEUE_ROOM }),
        BRAINTRUST_MAX_GENERATOR_ITEMS: '-1',
      };
    default:
      return {
        RUNSPAN_ENDPOINT: encoding ? otherHost(url) : url,
        RUNSPAN_PROTOCOL: DRIVERS[name].protocol ?? 'runs',
        ...DRIVERS[name].settings,
      };
  }
}

/** The same service at an address that is not localhost, because requests to localhost are not compressed. */
export function otherHost(url) {
  return url.replace('127.0.0.1', '0.0.0.0');
}

export function atLeastOne(turns) {
  return Math.max(1, Math.round(turns));
}
