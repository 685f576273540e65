import { RunspanError } from '../base/errors.ts';
import { shown } from '../base/text.ts';

/** Some of the items of a list, and the way to the next. */
export class Page<Item> implements AsyncIterable<Item> {
  readonly items: readonly Item[];
  readonly #next: (() => Promise<Page<Item>>) | undefined;

  /** @internal */
  constructor(items: readonly Item[], next: (() => Promise<Page<Item>>) | undefined) {
    this.items = items;
    this.#next = next;
  }

  /** Whether there may be more; the next page can be empty all the same. */
  get hasNext(): boolean {
    return this.#next !== undefined;
  }

  /** The next page; undefined after the last. */
  async next(): Promise<Page<Item> | undefined> {
    return this.#next?.();
  }

  /** The items of this page and all that follow, which are asked for as they are needed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    let page: Page<Item> | undefined = this;
    while (page !== undefined) {
      yield* page.items;
      page = await page.next();
    }
  }
}

/**
 * A list that is asked for when it is awaited or iterated, and once only: `await list` gives its first page, and
 * `for await (const item of list)` every item, page by page.
 */
export class PageList<Item> implements PromiseLike<Page<Item>>, AsyncIterable<Item> {
  readonly #ask: () => Promise<Page<Item>>;
  #first: Promise<Page<Item>> | undefined;

  /** @internal */
  constructor(ask: () => Promise<Page<Item>>) {
    this.#ask = ask;
  }

  // biome-ignore lint/suspicious/noThenProperty: a list is awaited like the call that it is.
  then<Result = Page<Item>, Failure = never>(
    fulfilled?: ((page: Page<Item>) => Result | PromiseLike<Result>) | null,
    rejected?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Result | Failure> {
    return this.#page().then(fulfilled, rejected);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    yield* await this.#page();
  }

  /** Each page in turn. */
  async *pages(): AsyncGenerator<Page<Item>, void, undefined> {
    for (let page: Page<Item> | undefined = await this.#page(); page !== undefined; page = await page.next())
      yield page;
  }

  /** The first items, so many at the most; `Infinity` for all of them. */
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

  #page(): Promise<Page<Item>> {
    this.#first ??= this.#ask();
    return this.#first;
  }
}
