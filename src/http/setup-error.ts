/**
 * Thrown if a request cannot be sent until the configuration changes. The message is our own and contains none of the data
 * to be sent.
 */
export class SetupError extends Error {
  override readonly name: string = 'SetupError';
}
