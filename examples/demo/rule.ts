/** A request that breaks a rule of the interface, and how the platform refuses it. */
export type Rule = readonly [
  sentence: string,
  /** `METHOD /path`. An id in braces is that of a resource of the demo. */
  request: string,
  /** A value to send as JSON, or the text of a multipart body. */
  body: unknown,
  /** The field in `loc`, the field with its message (`secrets.0.name: Field required`), or a text in `detail`. */
  names: string,
  /** @default 422 */
  status?: number,
  more?: {
    readonly headers?: Readonly<Record<string, string>>;
    /** The same body with other values of the field. Undefined if only the platform can know of the mistake. */
    readonly valid?: readonly unknown[];
  },
];

export type Fields = Readonly<Record<string, unknown>>;

export const TEAM_KEY = 'key-of-two-workspaces';
export const UNKNOWN = '01890000-0000-7000-8000-000000000000';

export const each = (names: string, toRule: (name: string) => Rule): Rule[] => names.split(' ').map(toRule);

/** Returns a function for rules that a valid request breaks after one field has another value, or none. */
export function breaking(request: string, valid: Fields, encoded = (body: Fields): unknown => body) {
  return (path: string, sentence: string, value?: unknown): Rule => {
    const name = path.split('.').at(-1) ?? '';
    const body = encoded(withField(valid, path, value));
    return [`${path} ${sentence}`, request, body, name, 422, { valid: [encoded(valid)] }];
  };
}

/** Sets a field at a path such as `secrets.0.name`. */
export function withField(fields: Fields, path: string, value: unknown): Fields {
  const [name = '', ...rest] = path.split('.');
  const copy: Record<string, unknown> = Array.isArray(fields) ? Object.assign([], fields) : { ...fields };
  copy[name] = rest.length === 0 ? value : withField((fields[name] ?? {}) as Fields, rest.join('.'), value);
  return copy;
}

export function keyRules(request: string, body?: unknown): Rule[] {
  const rule = (sentence: string, names: string, status: number, key: string): Rule => {
    return [sentence, request, body, names, status, { headers: { 'x-api-key': key } }];
  };
  return [
    rule('a request has a key', 'key', 401, ''),
    rule('the key is valid', 'key', 401, 'wrong'),
    rule('a key of several workspaces names one', 'workspace', 403, TEAM_KEY),
  ];
}

export function idRules(id: string, request: string, body?: unknown): Rule[] {
  return [
    [`${id} is a UUID`, request.replace(`{${id}}`, 'mine'), body, id],
    [`the ${id} exists`, request.replace(`{${id}}`, UNKNOWN), body, UNKNOWN, 404],
  ];
}
