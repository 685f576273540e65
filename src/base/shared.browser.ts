// Browsers load only one copy of the package, so no state needs to be shared.

export const shared = <State>(_: string, create: () => State): State => create();

export const shareInstances = (): void => {};
