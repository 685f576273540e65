import type { Route } from '../../receiver/http/route.ts';
import type { Store } from '../../receiver/store/store.ts';
import type { Assistant } from './assistant.ts';
import type { PlatformControlPlane } from './control-plane.ts';
import type { Requests } from './requests.ts';

/** Path of the agent server of a deployment. */
export const AGENT_SERVER = '/agents/:deployment';

export interface AgentServerSettings {
  readonly requests: Requests;
  readonly assistants: Readonly<Record<string, Assistant>>;
  readonly controlPlane: PlatformControlPlane;
  /** Store of the receiver, in which the runs of assistants are recorded. */
  readonly store: Store;
}

/** Returns the routes of the agent servers: one of each deployment, and one named `local`. */
export function agentServerRoutes(settings: AgentServerSettings): readonly Route[] {
  void settings;
  return [];
}
