import { HttpError } from '../../receiver/http/http-error.ts';
import type { RouteResponse } from '../../receiver/http/route.ts';

/** Resources of one kind by id. A workspace has no access to those of other workspaces. */
export class Resources<Item extends { readonly id: string }> {
  readonly #name: string;
  readonly #items = new Map<string, { readonly tenant: string; readonly item: Item }>();

  constructor(name: string) {
    this.#name = name;
  }

  set(tenant: string, item: Item): void {
    this.#items.set(item.id, { tenant, item });
  }

  delete(tenant: string, id: string): void {
    this.#items.delete(this.get(tenant, id).id);
  }

  /** Returns the resources of a workspace, oldest first. */
  of(tenant: string): Item[] {
    return [...this.#items.values()].filter((one) => one.tenant === tenant).map(({ item }) => item);
  }

  find(tenant: string | undefined, id = ''): Item | undefined {
    const found = this.#items.get(id.toLowerCase());
    return tenant === undefined || found?.tenant === tenant ? found?.item : undefined;
  }

  /** Throws an HTTP error, by default 404, if the workspace has no resource with this id. */
  get(tenant: string, id: string | undefined, status = 404): Item {
    const found = this.find(tenant, id);
    if (found === undefined) throw new HttpError(status, `${this.#name} ID ${id} not found.`);
    return found;
  }
}

/** Returns a page of a list, and the offset of the next page. */
export function page<Item>(
  items: readonly Item[],
  search: URLSearchParams,
  shown: (item: Item) => unknown,
): RouteResponse {
  const offset = Number(search.get('offset') ?? 0);
  const resources = items.slice(offset, offset + Number(search.get('limit') ?? 20)).map(shown);
  return { status: 200, body: { resources, offset: offset + resources.length } };
}
