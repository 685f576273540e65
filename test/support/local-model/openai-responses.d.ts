/** Returns the server-sent events of a response of OpenAI. */
export function responseEvents(response: object): string[];
