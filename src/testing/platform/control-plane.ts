import type { RevisionStatus } from '../../clients/control-plane/revision.ts';
import type { Route } from '../../receiver/http/route.ts';
import type { PlatformOptions } from '../create-platform.ts';
import type { Requests } from './requests.ts';

export interface ControlPlaneSettings extends Required<Pick<PlatformOptions, 'hosting' | 'statusMs' | 'spelling'>> {
  readonly requests: Requests;
  /** Returns the base URL of the platform. */
  readonly url: () => string;
  /** Uploaded objects by object path. */
  readonly uploads: Map<string, Uint8Array>;
}

/** Deployments and their revisions, in memory. */
export class PlatformControlPlane {
  readonly routes: readonly Route[];

  constructor(settings: ControlPlaneSettings) {
    this.routes = [];
    void settings;
  }

  setStatuses(statuses: readonly RevisionStatus[]): void {
    void statuses;
  }

  push(deploymentId: string): string {
    return deploymentId;
  }

  /** Returns whether a deployment of a workspace has an active revision, so that its agent server responds. */
  isDeployed(tenant: string, deploymentId: string): boolean {
    return tenant === deploymentId;
  }
}
