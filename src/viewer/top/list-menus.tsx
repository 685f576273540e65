import type { ComponentType, JSX } from 'preact';
import { address } from '../data/navigation.ts';
import { nameOfRange, rangeIn } from '../data/time-range.ts';
import { Pending } from '../elements/controls.tsx';
import { lazy } from '../elements/lazy.tsx';
import { Menu } from '../elements/menu.tsx';

export function TimeMenu(): JSX.Element {
  return <Menu name="Time" icon="time" value={nameOfRange(rangeIn(address.value.filter))} panel={TimePanel} />;
}

export function ListMenus(): JSX.Element {
  const { view } = address.value;
  return (
    <>
      <Menu name="Views" icon="views" panel={ViewsPanel} />
      {(view === 'traces' || view === 'runs') && <Menu name="Columns" icon="columns" panel={ColumnsPanel} />}
      <Menu name="Download" icon="download" panel={DownloadPanel} />
    </>
  );
}

const TimePanel = panel('TimePanel');
const ViewsPanel = panel('ViewsPanel');
const ColumnsPanel = panel('ColumnsPanel');
const DownloadPanel = panel('DownloadPanel');

/** Loads the panels when the first menu is opened. */
function panel(name: 'TimePanel' | 'ViewsPanel' | 'ColumnsPanel' | 'DownloadPanel'): ComponentType {
  return lazy(
    async () => ({ default: (await import('./menu-panels.tsx'))[name] }),
    ({ problem }) => <Pending problem={problem} note="Loading…" />,
  );
}
