/** One level of a path; a number is a place in a list. */
export type Step = string | number;

/** The path of a value: its field and the steps below. An unknown index is undefined. */
export type Way = readonly (Step | undefined)[];

/** Returns a path as a replacement function gets it. */
export function trailOf(way: Way): Step[] {
  return way.map((step) => step ?? '*');
}

/** Follows a path as far as the paths of the redaction lead. */
export function placeOf(root: PathPlace | undefined, way: Way): PathPlace | undefined {
  let place = root;
  for (const step of way) {
    place = place?.step(step);
    if (place === undefined || place.isEnd) return place;
  }
  return place;
}

/** What one segment of a path goes along with: `**`, `*`, `[*]`, a place in a list, or a key. */
type Segment = '**' | '*' | '[*]' | { readonly index: number } | { readonly key: string };

/** The fields that a path may begin with. */
export const FIELDS: readonly string[] = [
  'inputs',
  'outputs',
  'events',
  'metadata',
  'error',
  'tags',
  'name',
  'attachments',
];

/** Those that are no objects, and how many levels there are below: text has none, a list of text one. */
const LEVELS_BELOW: Readonly<Record<string, number>> = {
  name: 0,
  error: 0,
  tags: 1,
  attachments: 1,
  events: Number.POSITIVE_INFINITY,
};

/** Bound of what is remembered of the steps that were taken. */
const STEPS_KEPT = 1_000;

/**
 * Where one stands among the paths that are to be masked: which of them the steps so far go along with, and how far. The
 * next place of a step is found once and remembered, so that however many paths there are, a step costs the same.
 */
export class PathPlace {
  /** Whether a path ends here. */
  readonly isEnd: boolean;
  readonly #rests: readonly (readonly Segment[])[];
  readonly #known = new Map<Step | undefined, PathPlace | undefined>();

  private constructor(rests: readonly (readonly Segment[])[]) {
    this.#rests = rests;
    this.isEnd = rests.some((rest) => rest.length === 0);
  }

  /** The place above all fields; undefined without paths. Throws what is wrong with the first path that is none. */
  static root(paths: readonly string[]): PathPlace | undefined {
    return PathPlace.#at(paths.map(segmentsOf));
  }

  /** One level further down. Undefined where no path leads; the step itself is undefined for a place in a list that is not known. */
  step(step: Step | undefined): PathPlace | undefined {
    if (this.#known.has(step)) return this.#known.get(step);
    const next = PathPlace.#at(this.#rests.flatMap((rest) => after(rest, step)));
    if (this.#known.size < STEPS_KEPT) this.#known.set(step, next);
    return next;
  }

  static #at(rests: readonly (readonly Segment[])[]): PathPlace | undefined {
    // `**` stands for no level too, so that what follows it may come at once.
    const all = new Map<string, readonly Segment[]>();
    for (const rest of rests) {
      for (let at = 0; at <= rest.length; at++) {
        all.set(JSON.stringify(rest.slice(at)), rest.slice(at));
        if (rest[at] !== '**') break;
      }
    }
    return all.size === 0 ? undefined : new PathPlace([...all.values()]);
  }
}

/** What is left of a path after a step; nothing when the step leads away from it. */
function after(rest: readonly Segment[], step: Step | undefined): (readonly Segment[])[] {
  const [segment, ...others] = rest;
  if (segment === undefined) return [];
  if (segment === '**') return [rest];
  return takes(segment, step) ? [others] : [];
}

function takes(segment: Exclude<Segment, '**'>, step: Step | undefined): boolean {
  if (segment === '*') return true;
  if (typeof step === 'string') return typeof segment === 'object' && 'key' in segment && segment.key === step;
  if (segment === '[*]') return true;
  const index = 'index' in segment ? segment.index : Number(segment.key);
  return step === undefined ? Number.isInteger(index) : index === step;
}

/** `key`, `*`, `**`; `[0]`, `[*]`, `["any key"]`. */
const SEGMENT = /(?:^|(?!^)\.)(\*\*|\*|[^.[\]*"\s]+)|\.?\[(\d{1,9}|\*|"(?:[^"\\]|\\.)*")\]/y;

function segmentsOf(path: string): Segment[] {
  const segments: Segment[] = [];
  SEGMENT.lastIndex = 0;
  while (SEGMENT.lastIndex < path.length) {
    const found = SEGMENT.exec(path);
    if (found === null) throw new SyntaxError(`${JSON.stringify(path)} is no path`);
    segments.push(segmentOf(found[1], found[2]));
  }
  const [first] = segments;
  const isRooted =
    first === '*' || first === '**' || (typeof first === 'object' && 'key' in first && FIELDS.includes(first.key));
  if (!isRooted)
    throw new SyntaxError(`${JSON.stringify(path)} has to begin with **, * or one of ${FIELDS.join(', ')}`);
  if (leadsNowhere(segments))
    throw new SyntaxError(
      `${JSON.stringify(path)} leads nowhere: name and error are text; tags, attachments and events are lists`,
    );
  return segments;
}

/** Whoever writes `error.message`, or `events.kwargs`, means to hide something, and would hide nothing. */
function leadsNowhere([field, ...below]: readonly Segment[]): boolean {
  const levels = typeof field === 'object' && 'key' in field ? LEVELS_BELOW[field.key] : undefined;
  if (levels === undefined) return false;
  const steps = below.filter((segment) => segment !== '**');
  const [first] = levels === 1 ? steps : below;
  return steps.length > levels || (first !== undefined && first !== '**' && !takes(first, undefined));
}

function segmentOf(plain: string | undefined, bracketed: string | undefined): Segment {
  if (plain !== undefined) return plain === '*' || plain === '**' ? plain : { key: plain };
  if (bracketed === '*') return '[*]';
  const inside: unknown = JSON.parse(bracketed ?? 'null');
  return typeof inside === 'number' ? { index: inside } : { key: String(inside) };
}
