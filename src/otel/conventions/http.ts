import { withoutCredentials } from './url.ts';
import { type Attributes, json, number, text } from './values.ts';
import { NOTHING_NEW, type Rename, type Vocabulary } from './vocabulary.ts';

/**
 * OpenTelemetry's conventions for HTTP, on both ends of a request; older names stand below those that took their place:
 * https://opentelemetry.io/docs/specs/semconv/http/http-spans/
 *
 * A request tells its whole URL where that is known, and else, on servers, its path and query.
 */
export const http: Vocabulary = {
  name: 'http',
  roots: ['http'],
  isSpoken: (attributes) => methodOf(attributes) !== undefined,
  kindOf: (attributes) => ({ runType: 'chain', rename: renameOf(attributes) }),
  inputs: [
    ['http.request.method_original', 'method', text],
    ['http.request.method', 'method', text, 'repeats'],
    ['http.method', 'method', text, 'repeats'],
    ['url.full', 'url', withoutCredentials],
    ['http.url', 'url', withoutCredentials, 'repeats'],
    ['http.route', 'route', text],
    ['url.path', 'path', partOfUrl],
    ['url.query', 'query', partOfUrl],
    ['http.target', 'path', partOfUrl, 'repeats'],
    ['http.request.body.content', 'body', json],
  ],
  outputs: [
    ['http.response.status_code', 'status_code', number],
    ['http.status_code', 'status_code', number, 'repeats'],
    ['http.response.body.size', 'size', number],
    ['http.response_content_length', 'size', number, 'repeats'],
    ['http.response.body.content', 'body', json],
  ],
  cleaned: new Map([
    ['url.full', withoutCredentials],
    ['url.query', withoutCredentials],
    ['url.original', withoutCredentials],
    ['http.url', withoutCredentials],
    ['http.target', withoutCredentials],
  ]),
};

/** The method as the span's name has it. */
function methodOf(attributes: Attributes): string | undefined {
  return text(attributes['http.request.method']) ?? text(attributes['http.method']);
}

function urlOf(attributes: Attributes): string | undefined {
  return text(attributes['url.full']) ?? text(attributes['http.url']);
}

function partOfUrl(value: unknown, attributes: Attributes): unknown {
  if (urlOf(attributes) !== undefined || value === '') return NOTHING_NEW;
  return withoutCredentials(value);
}

/** A span is named after its method where no route is known; which one of many requests it was, the URL tells. */
function renameOf(attributes: Attributes): Rename | undefined {
  const method = methodOf(attributes);
  const place = text(attributes['http.route']) ?? placeOf(attributes);
  return method === undefined || place === undefined ? undefined : { plain: method, telling: `${method} ${place}` };
}

function placeOf(attributes: Attributes): string | undefined {
  const url = withoutCredentials(urlOf(attributes));
  const path = text(attributes['url.template']) ?? text(attributes['url.path']) ?? text(attributes['http.target']);
  if (url === undefined) return path === undefined ? undefined : withoutQuery(path);
  if (!URL.canParse(url)) return withoutQuery(url);
  const { host, pathname } = new URL(url);
  return host + (text(attributes['url.template']) ?? pathname);
}

function withoutQuery(url: string): string {
  return url.split(/[?#]/, 1)[0] ?? url;
}
