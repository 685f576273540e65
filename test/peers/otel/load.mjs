/** A package of this folder, or else one of the development dependencies. */
export const load = (name) => import(name);
