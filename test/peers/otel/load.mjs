/** Imports a package from this folder or from the development dependencies. */
export const load = (name) => import(name);
