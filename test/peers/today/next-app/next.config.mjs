// The packages are in folders above this one.
export default { turbopack: { root: new URL('../../../..', import.meta.url).pathname } };
