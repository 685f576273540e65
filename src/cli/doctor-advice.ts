/** What to do when the service answers so and has not taken what it was sent; undefined when it did not answer. */
export function adviceFor(status: number | undefined, hasKey: boolean): string {
  switch (status) {
    case 400:
    case 422:
      return 'check that the endpoint is a service that takes runs; if it is, report this as a defect of runspan';
    case 401:
    case 403:
      return hasKey ? KEY : 'set RUNSPAN_API_KEY';
    case 402:
      return 'the account of this key may have to pay, or need another plan; ask the service';
    case 404:
    case 405:
    case 415:
    case 501:
      return 'check the path in the endpoint: /info, /runs/multipart and /runs are below it';
    case 413:
      return 'raise how much the service, or a proxy before it, takes in one request';
    case 429:
      return 'the service takes no more for now; try again later, or raise what it allows';
  }
  if (status !== undefined && status >= 300 && status < 400) return 'set the endpoint to the address behind it';
  if (status === undefined || status === 408 || status === 425 || status >= 500) {
    return 'the service is in trouble; try again later';
  }
  return 'see what the service means by that';
}

const KEY = 'copy RUNSPAN_API_KEY again, and set RUNSPAN_WORKSPACE_ID where it is linked to several workspaces';
