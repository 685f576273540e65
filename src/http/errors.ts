/** Thrown if no response arrives. The message contains no request data. */
export class NoResponseError extends Error {
  override readonly name: string = 'NoResponseError';
}

export class DeadlineError extends NoResponseError {
  override readonly name: string = 'DeadlineError';
}

/** Thrown if no request can be sent until the configuration changes. The message contains no request data. */
export class SetupError extends Error {
  override readonly name: string = 'SetupError';
}
