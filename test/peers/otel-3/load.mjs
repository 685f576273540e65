/** A package of this folder. */
export const load = (name) => import(name);
