/** The request was not sent, and only a change of the set-up helps. The message is ours and holds nothing that would be sent. */
export class SetupError extends Error {
  override readonly name: string = 'SetupError';
}
