/** Whether the runtime reads the body of a response without calling replaced methods, so that its end is not observed. */
export const needsRelay: boolean = false;

export function relayed(response: Response): Response {
  return response;
}
