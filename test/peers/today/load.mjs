/** Imports a package from this folder. */
export const load = (name) => import(name);
