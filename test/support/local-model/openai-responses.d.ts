export function responseEvents(response: object): string[];
