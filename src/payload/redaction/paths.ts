/** One step of a path: a key, or the index of an item. */
export type Step = string | number;

/** The path of a value. Replacement functions receive the path as a string joined with dots. */
export type Trail = readonly Step[];

/** The path of a value, starting with a field of the run, for example `inputs`. An unknown index is undefined. */
export type ValuePath = readonly (Step | undefined)[];

export function trailOf(path: ValuePath): Step[] {
  return path.map((step) => step ?? '*');
}

/**
 * Returns the matcher for the value at `path`. If an object that contains the value is masked, returns the matcher for
 * the outermost such object.
 */
export function matcherAt(root: PathMatcher | undefined, path: ValuePath): PathMatcher | undefined {
  let matcher = root;
  for (const step of path) {
    matcher = matcher?.step(step);
    if (matcher === undefined || matcher.isMatch) return matcher;
  }
  return matcher;
}

/** One segment of a redaction path: `*`, `**`, `[*]`, a key such as `.user`, or an index such as `.0`. */
type Segment = string;

/**
 * Maximum number of levels below each field of a run. Undefined for fields with objects, because objects have no
 * maximum depth.
 */
const FIELDS: Readonly<Record<string, number | undefined>> = {
  inputs: undefined,
  outputs: undefined,
  events: Number.POSITIVE_INFINITY,
  metadata: undefined,
  error: 0,
  tags: 1,
  name: 0,
  attachments: 1,
};

const STEPS_KEPT = 1_000;

/**
 * Matches the value at one path against all redaction paths. Caches matchers, so the time for a cached step does not
 * depend on the number of redaction paths.
 */
export class PathMatcher {
  readonly isMatch: boolean;
  /** The segments of each redaction path that remain to be matched. */
  readonly #rests: readonly (readonly Segment[])[];
  readonly #known = new Map<Step | undefined, PathMatcher | undefined>();

  private constructor(rests: readonly (readonly Segment[])[]) {
    this.#rests = rests;
    this.isMatch = rests.some((rest) => rest.length === 0);
  }

  /** Returns the matcher for whole runs, or undefined if there are no paths. Throws if a path is invalid. */
  static root(paths: readonly string[]): PathMatcher | undefined {
    return PathMatcher.#at(paths.map(segmentsOf));
  }

  /**
   * Returns the matcher for a key or an item, or undefined if no path can match. Pass undefined for an unknown index.
   */
  step(step: Step | undefined): PathMatcher | undefined {
    if (this.#known.has(step)) return this.#known.get(step);
    const rests = this.#rests.filter(([segment]) => segment !== undefined && matches(segment, step));
    const next = PathMatcher.#at(rests.map((rest) => (rest[0] === '**' ? rest : rest.slice(1))));
    if (this.#known.size < STEPS_KEPT) this.#known.set(step, next);
    return next;
  }

  static #at(rests: readonly (readonly Segment[])[]): PathMatcher | undefined {
    const all = new Map<string, readonly Segment[]>();
    for (const rest of rests) {
      // `**` also matches zero levels, so the next step may already match the segment after `**`.
      for (let at = 0; at <= rest.length; at++) {
        all.set(JSON.stringify(rest.slice(at)), rest.slice(at));
        if (rest[at] !== '**') break;
      }
    }
    return all.size === 0 ? undefined : new PathMatcher([...all.values()]);
  }
}

function matches(segment: Segment, step: Step | undefined): boolean {
  if (segment === '*' || segment === '**') return true;
  if (segment === '[*]') return typeof step !== 'string';
  return step === undefined ? /^\.\d+$/.test(segment) : segment === `.${step}`;
}

/** Matches one segment, for example `key`, `*`, `**`, `[0]`, `[*]` or `["any key"]`. */
const SEGMENT = /(?:^|(?!^)\.)(\*\*|\*|[^.[\]*"\s]+)|\.?\[(\d{1,9}|\*|"(?:[^"\\]|\\.)*")\]/y;

function segmentsOf(path: string): Segment[] {
  const segments: Segment[] = [];
  SEGMENT.lastIndex = 0;
  while (SEGMENT.lastIndex < path.length) {
    const [found, plain, bracketed = ''] = SEGMENT.exec(path) ?? [];
    if (found === undefined) throw new SyntaxError(`${JSON.stringify(path)} is not a valid path`);
    if (plain !== undefined) segments.push(plain.startsWith('*') ? plain : `.${plain}`);
    else segments.push(bracketed === '*' ? '[*]' : `.${JSON.parse(bracketed)}`);
  }
  const [first = ''] = segments;
  if (first !== '*' && first !== '**' && !Object.hasOwn(FIELDS, first.slice(1))) {
    throw new SyntaxError(`${JSON.stringify(path)} must begin with **, * or one of ${Object.keys(FIELDS).join(', ')}`);
  }
  if (cannotMatch(first, segments.slice(1))) {
    const kinds = 'name and error are strings; tags, attachments and events are lists';
    throw new SyntaxError(`${JSON.stringify(path)} cannot match a value: ${kinds}`);
  }
  return segments;
}

/** Whether a path can never match a value, for example `error.message` or `events.kwargs`. */
function cannotMatch(field: Segment, below: readonly Segment[]): boolean {
  const levels = FIELDS[field.slice(1)];
  if (levels === undefined) return false;
  const steps = below.filter((segment) => segment !== '**');
  const [first] = levels === 1 ? steps : below;
  return steps.length > levels || (first !== undefined && !matches(first, undefined));
}
