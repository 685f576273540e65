import { HttpError } from '../http-error.ts';
import { idOf, type Route } from '../route.ts';
import { attachmentAnswer } from './attachment-answer.ts';

export const attachmentRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/query/runs/:id/attachments/:name',
    handle: async (call) => {
      const runId = idOf(call);
      const attachment = await call.store.attachment(call.scope, runId, call.parameters.name ?? '');
      if (attachment === undefined) throw new HttpError(404, `There is no such attachment of a run ${runId} here`);
      return attachmentAnswer(attachment);
    },
  },
];
