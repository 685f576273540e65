// Pages load the package in one module format only, so there is no state to share.

export const shared = <State>(_: string, create: () => State): State => create();

export const shareInstances = (): void => {};
