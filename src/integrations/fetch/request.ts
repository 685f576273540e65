import {
  definedOrNone,
  emptyFields,
  type Fields,
  fieldsOf,
  isFields,
  isPlainObject,
  parsedJson,
  signalOf,
  textOf,
} from '../../payload/fields.ts';

/** Returns whether the first argument of `fetch` is a `Request` of any implementation. */
export function isRequest(input: unknown): input is Request {
  return typeof input === 'object' && input !== null && typeof (input as Partial<Request>).clone === 'function';
}

export function requestUrl(input: unknown): string {
  if (typeof input === 'string') return input;
  return textOf(fieldsOf(input).url) ?? `${input}`;
}

export function requestMethod(input: unknown, init: unknown): string {
  const method = fieldsOf(init).method ?? (isRequest(input) ? input.method : undefined);
  return textOf(method) ?? 'GET';
}

export function requestSignal(input: unknown, init: unknown): AbortSignal | undefined {
  return signalOf(fieldsOf(init).signal ?? (isRequest(input) ? input.signal : undefined));
}

/**
 * Reads a request header. `name` must be in lower case. If the headers are a plain object, names with capital letters
 * are not found.
 */
export function requestHeader(input: unknown, init: unknown, name: string): string | undefined {
  const headers = fieldsOf(init).headers ?? fieldsOf(input).headers;
  return (headers instanceof Headers ? headers.get(name) : textOf(fieldsOf(headers)[name])) ?? undefined;
}

/** Headers that change what a body means, or what it may contain. */
export const MEANING: readonly string[] = ['anthropic-version', 'anthropic-beta', 'openai-beta'];

/** Returns the address of a request and the headers that its body needs. Undefined if the body is a form. May throw. */
export function requestHead(
  input: unknown,
  init: unknown,
): { readonly url: string; readonly headers?: Fields } | undefined {
  const given = fieldsOf(init).headers ?? fieldsOf(input).headers;
  // An iterator is not read, because the request could not read it again.
  const isCopied = Array.isArray(given) || isPlainObject(given);
  const sent = { headers: isCopied ? new Headers(given as Record<string, string>) : given };
  const isForm = requestHeader(input, sent, 'content-type')?.startsWith('multipart/form-data');
  if (isForm || fieldsOf(init).body instanceof FormData) return undefined;
  const headers = definedOrNone(Object.fromEntries(MEANING.map((name) => [name, requestHeader(input, sent, name)])));
  return { url: requestUrl(input), ...(headers && { headers }) };
}

/**
 * Reads a request body as an object. Returns undefined if the body is neither JSON nor a form, for example a stream.
 * The body of a `Request` is read from a clone, because reading consumes a body.
 */
export function requestBody(input: unknown, init: unknown): unknown {
  const { body } = fieldsOf(init);
  if (body !== undefined && body !== null) return fieldsOfBody(body);
  if (!isRequest(input) || input.bodyUsed || !input.body || input.body.locked) return undefined;
  const isForm = input.headers.get('content-type')?.startsWith('multipart/form-data') === true;
  const copy = input.clone();
  return (isForm ? copy.formData() : copy.text()).then(fieldsOfBody);
}

function fieldsOfBody(body: unknown): Fields | undefined {
  if (typeof body === 'string') return parsed(body);
  if (body instanceof FormData) return fieldsOfForm(body);
  const isBytes = body instanceof ArrayBuffer || ArrayBuffer.isView(body);
  return isBytes ? parsed(new TextDecoder().decode(body as Uint8Array)) : undefined;
}

function parsed(json: string): Fields | undefined {
  const value = parsedJson(json);
  return isFields(value) ? value : undefined;
}

/** Converts a form to an object. Repeated fields and fields whose name ends with `[]` become lists. */
function fieldsOfForm(form: FormData): Fields {
  const fields = emptyFields();
  for (const name of new Set(form.keys())) {
    const values = form.getAll(name);
    fields[name.replace(/\[\]$/, '')] = values.length === 1 && !name.endsWith('[]') ? values[0] : values;
  }
  return fields;
}
