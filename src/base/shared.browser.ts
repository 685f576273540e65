// Pages load the package in one module format only, so no state is shared.

export const shared = <State>(_: string, create: () => State): State => create();

export const shareInstances = (): void => {};
