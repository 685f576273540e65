export { ApiError, type CallFacts, ConnectionError, InvalidAnswerError, TimeoutError } from './clients/api-error.ts';
export type {
  CallOptions,
  ClientHooks,
  ClientOptions,
  RequestEvent,
  ResponseEvent,
  RetryEvent,
} from './clients/client-options.ts';
export { ControlPlane, type ControlPlaneOptions } from './clients/control-plane.ts';
export { createsRevision } from './clients/creates-revision.ts';
export type {
  Deployment,
  DeploymentCreate,
  DeploymentPatch,
  DeploymentSource,
  DeploymentStatus,
  DeploymentTier,
  DeploymentType,
  ListenerConfig,
  RevisionSource,
  Secret,
  SecretReference,
  SourceConfig,
  SourceRevisionConfig,
} from './clients/deployment.ts';
export type { Deployed, SupersededEvent, Updated, WaitOptions } from './clients/deployment-wait.ts';
export type {
  DeleteDeploymentOptions,
  DeletedDeployments,
  Deployments,
  ListDeploymentsOptions,
} from './clients/deployments.ts';
export { effectiveResources } from './clients/effective-resources.ts';
export {
  type FeedbackSubmission,
  feedbackLink,
  type SubmitFeedbackOptions,
  submitFeedback,
} from './clients/feedback.ts';
export { FeedbackError, type FeedbackRefusal } from './clients/feedback-error.ts';
export {
  createFeedbackToken,
  createFeedbackTokens,
  type FeedbackServiceOptions,
  type FeedbackToken,
  type FeedbackTokenRequest,
} from './clients/feedback-token.ts';
export type { Integration, Repository } from './clients/integration.ts';
export type { Integrations } from './clients/integrations.ts';
export type { ListOptions } from './clients/list-options.ts';
export type { ComputeConfig, Listener, ListenerCreate, ListenerPatch } from './clients/listener.ts';
export type { Listeners } from './clients/listeners.ts';
export type { Page, PageList } from './clients/page.ts';
export type {
  Container,
  EnvVar,
  LocalObjectReference,
  ResourceRequirements,
  ResourceSpec,
  Volume,
  VolumeMount,
} from './clients/resource-spec.ts';
export type { Revision, RevisionStatus } from './clients/revision.ts';
export { RevisionError } from './clients/revision-error.ts';
export type { ListRevisionsOptions, Revisions } from './clients/revisions.ts';
export type { UploadedSource, UploadProgress, UploadSourceOptions } from './clients/source-upload.ts';
export type { Spelling } from './clients/spelling.ts';
export type { UploadUrl } from './clients/upload-url.ts';
export { InvalidRequestError, type ValidationError } from './clients/validation-error.ts';
