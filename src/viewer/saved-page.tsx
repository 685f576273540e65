import { render } from 'preact';
import { parseExact } from '../payload/fields.ts';
import type { RunOutline, SavedData } from '../receiver/domain/run-view.ts';
import { openSaved } from './data/trace-file.ts';
import { visibleText } from './elements/visible-text.ts';
import TraceView from './trace/trace-view.tsx';

const data: SavedData = parseExact(document.getElementById('saved')?.textContent ?? '');
const responses = new Map(data.responses);
const runs = responses.get(`/query/traces/${data.id}`) as { items: readonly RunOutline[] };

openSaved({ ...data, responses, search });
document.title = visibleText(runs.items[0]?.name ?? 'runspan');
render(
  <main class="column">
    <TraceView id={data.id} />
  </main>,
  document.body,
);

function search(text: string): ReadonlySet<string> {
  const found = data.responses.filter(([, value]) => JSON.stringify(value).toLowerCase().includes(text.toLowerCase()));
  return new Set(found.flatMap(([path]) => /^\/query\/runs\/([^/]+)/.exec(path)?.[1] ?? []));
}
