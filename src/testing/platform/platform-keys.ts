import type { Grant, Keyring } from '../../receiver/http/access/keyring.ts';
import { HttpError } from '../../receiver/http/http-error.ts';

/** The keys of a platform, each with the workspaces that it reaches. */
export class PlatformKeys implements Keyring {
  readonly loginKeys = 'a key of the platform';
  readonly isGuessable = false;
  readonly isShared: boolean;
  readonly #keys: readonly (readonly [key: string, tenants: readonly string[]])[];

  constructor(keys: Readonly<Record<string, readonly string[]>>) {
    this.#keys = Object.entries(keys);
    this.isShared = new Set(Object.values(keys).flat()).size > 1;
  }

  async find(key: string, workspaceId?: string): Promise<Grant | undefined> {
    const index = this.#keys.findIndex(([known]) => known === key);
    const [, tenants] = this.#keys[index] ?? [];
    if (tenants === undefined) return undefined;
    if (workspaceId === undefined && tenants.length > 1)
      throw new HttpError(403, 'This API key requires workspace specification: send X-Tenant-Id');
    const tenant = tenants.find((id) => id === (workspaceId ?? id));
    if (tenant === undefined) throw new HttpError(403, `This API key does not reach the workspace ${workspaceId}`);
    return { id: `${index}`, key, scope: { tenant }, permission: 'admin' };
  }

  async byId(id: string): Promise<Grant | undefined> {
    const [key] = this.#keys.find((_, index) => `${index}` === id) ?? [];
    return key === undefined ? undefined : this.find(key);
  }

  isTenant(name: string): boolean {
    return this.#keys.some(([, tenants]) => tenants.includes(name));
  }
}
