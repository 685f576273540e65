import { diagnostics } from '../../base/diagnostics.ts';
import { currentContext } from '../../run/context/current.ts';
import { ownerWith, sinkOf } from '../../run/context/inherited.ts';
import { modelSteps } from '../langchain/steps.ts';
import { serviceAt } from '../providers.ts';

/** Paths at model services that call no model: storage, keys, counts of tokens, and requests that stop another one. */
const NO_CALL =
  /\/(files|uploads|vector_stores|conversations|cachedContents|oauth|auth|organization|event_logging)(\/|$)|[/:]((count|compute|input)_?tokens|client_secrets|(de)?tokenize|cancel)$/i;
const VERSION = /^v\d+((alpha|beta)\d*)?$/;
/** Matches parts of a path that may be different in each request, such as ids. */
const VARIABLE = /\d|.{33}/;

const HTTPS = 'https://';
/** The host of the last request that is not a model call. */
let last = { hostname: '', isService: false };

/** Returns whether an address is one of a known model service. This must be fast, because it runs for most POST requests. */
export function isAtService(address: string): boolean {
  if (!address.startsWith(HTTPS)) return false;
  const end = address.indexOf('/', HTTPS.length);
  const hostname = address.slice(HTTPS.length, end < 0 ? address.length : end);
  if (hostname !== last.hostname) last = { hostname, isService: serviceAt({ hostname }) !== undefined };
  return last.isService;
}

/** Logs a line, once per path, for a POST request to a model service that neither the recorder nor a call around it records. */
export function warnIfUnread(address: string): undefined {
  if (!isAtService(address) || !URL.canParse(address)) return;
  const { host, pathname } = new URL(address);
  if (NO_CALL.test(pathname) || isRecordedAround()) return;
  const path = pathname.replace(/[^/:]+/g, (part) => (VARIABLE.test(part) && !VERSION.test(part) ? '*' : part));
  const request = `POST ${host}${path}`;
  diagnostics.warnOnce(
    request,
    `not recorded: ${request}; call it in a function wrapped by traceable with runType 'llm'`,
  );
}

/** Returns whether tracing is off, or a call around the current request records it. A tool's requests are not its call. */
export function isRecordedAround(): boolean {
  const context = currentContext();
  const sink = sinkOf(context);
  if (sink === undefined || context?.sampled === false) return true;
  return !['tool', undefined].includes(ownerWith(sink, context)?.call?.type) || modelSteps(context, sink).length > 0;
}
