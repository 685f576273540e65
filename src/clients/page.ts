import { RunspanError } from '../base/errors.ts';
import { shown } from '../base/text.ts';

/** One page in a list. */
export class Page<Item> implements AsyncIterable<Item> {
  readonly items: readonly Item[];
  readonly #next: (() => Promise<Page<Item>>) | undefined;

  /** @internal */
  constructor(items: readonly Item[], next: (() => Promise<Page<Item>>) | undefined) {
    this.items = items;
    this.#next = next;
  }

  /** Whether there may be another page. The next page may be empty. */
  get hasNext(): boolean {
    return this.#next !== undefined;
  }

  /** Requests the next page. Resolves to undefined after the last page. */
  async next(): Promise<Page<Item> | undefined> {
    return this.#next?.();
  }

  /** Iterates over the items of this page and all later pages. Each page is requested on demand. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    let page: Page<Item> | undefined = this;
    while (page !== undefined) {
      yield* page.items;
      page = await page.next();
    }
  }
}

/**
 * A paginated list whose pages are requested on demand. `await list` returns the first page and requests it only once.
 * `for await (const item of list)` iterates over all items. Each loop requests all pages again.
 */
export class PageList<Item> implements PromiseLike<Page<Item>>, AsyncIterable<Item> {
  readonly #ask: () => Promise<Page<Item>>;
  #first: Promise<Page<Item>> | undefined;

  /** @internal */
  constructor(ask: () => Promise<Page<Item>>) {
    this.#ask = ask;
  }

  // biome-ignore lint/suspicious/noThenProperty: a list is awaited like a call.
  then<Result = Page<Item>, Failure = never>(
    fulfilled?: ((page: Page<Item>) => Result | PromiseLike<Result>) | null,
    rejected?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Result | Failure> {
    this.#first ??= this.#ask();
    return this.#first.then(fulfilled, rejected);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    yield* await this.#ask();
  }

  /** Iterates over pages instead of items. */
  async *pages(): AsyncGenerator<Page<Item>, void, undefined> {
    for (let page: Page<Item> | undefined = await this.#ask(); page !== undefined; page = await page.next()) yield page;
  }

  /** Returns the first `limit` items as an array. Pass `Infinity` for all items. */
  async toArray(limit: number): Promise<Item[]> {
    if (typeof limit !== 'number' || Number.isNaN(limit)) {
      throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected \`limit\` to be a number, got ${shown(limit)}`);
    }
    const items: Item[] = [];
    if (limit <= 0) return items;
    for await (const item of this) {
      items.push(item);
      if (items.length >= limit) break;
    }
    return items;
  }
}

/** Returns a list that requests pages with `load`. If `first` throws, awaiting the list rejects with that error. */
export function pagesFrom<Item, Cursor>(
  first: () => Cursor,
  load: (cursor: Cursor) => Promise<{ readonly items: readonly Item[]; readonly next: Cursor | undefined }>,
): PageList<Item> {
  const page = async (cursor: Cursor): Promise<Page<Item>> => {
    const { items, next } = await load(cursor);
    return new Page(items, next === undefined ? undefined : () => page(next));
  };
  return new PageList(async () => page(first()));
}
